package output

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// Terminal is an output that people read. Objects of a cluster may hold any characters, so what acts on
// a terminal is shown as its escape; the colours of the report pass. Programs read the output beneath it:
// JSON and YAML have escapes of their own.
type Terminal struct{ out io.Writer }

// ForPeople is the output as a Terminal.
func ForPeople(out io.Writer) *Terminal { return &Terminal{out: out} }

// Write implements io.Writer. A character is within one call.
func (t *Terminal) Write(text []byte) (int, error) {
	if _, err := io.WriteString(t.out, report.PrintableLines(string(text))); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Plain is the output without escapes, for programs and for what a command itself draws.
func Plain(out io.Writer) io.Writer {
	if t, ok := out.(*Terminal); ok {
		return t.out
	}
	return out
}

// StyleOf is how text is shown on an output; false means that it is no terminal. NO_COLOR and
// TERM=dumb are respected.
func StyleOf(out io.Writer) (report.Style, bool) {
	file, ok := Plain(out).(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return report.Style{}, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		columns = 0
	}
	return report.Style{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: columns}, true
}

// Note says something beside what was asked for, on one line: what it quotes of others cannot begin another.
func Note(out io.Writer, text string) {
	_, _ = fmt.Fprintln(out, "note:", report.Printable(strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")))
}

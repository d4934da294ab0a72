package harness

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// Clock returns a function that says what happens, with the time since now before it.
func (c *Call) Clock() func(format string, values ...any) {
	began := time.Now()
	return func(format string, values ...any) {
		_, _ = fmt.Fprintf(c.Log, "%6s  %s\n", time.Since(began).Round(time.Second), fmt.Sprintf(format, values...))
	}
}

// Counter returns a function that is called after each of so many runs. On a terminal it
// says how many there were, in one line that overwrites itself; the last one leaves nothing.
func (c *Call) Counter(runs int) func(what string) {
	file, ok := c.Log.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return func(string) {}
	}
	done := 0
	return func(what string) {
		done++
		line := fmt.Sprintf("%d of %d runs: %s", done, runs, what)
		if done == runs {
			line = ""
		}
		_, _ = fmt.Fprintf(file, "\r%s\033[K", line)
	}
}

// Verdict collects what figures were asked for, and whether they are met.
type Verdict struct {
	text   strings.Builder
	missed bool
}

// Printf adds a line that judges nothing.
func (v *Verdict) Printf(format string, values ...any) { fmt.Fprintf(&v.text, format+"\n", values...) }

// Ask adds a figure, and whether it is met.
func (v *Verdict) Ask(met bool, format string, values ...any) {
	verdict := "ok"
	if !met {
		v.missed, verdict = true, "MISSED"
	}
	fmt.Fprintf(&v.text, "  %-70s %s\n", fmt.Sprintf(format, values...), verdict)
}

// String is all that was added.
func (v *Verdict) String() string { return v.text.String() }

// Err is ErrMissed where a figure is not met.
func (v *Verdict) Err() error {
	if v.missed {
		return ErrMissed
	}
	return nil
}

// ProcessorTime is what this process has taken of the processors; 0 where the system does
// not tell.
func ProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

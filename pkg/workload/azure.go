package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

// AzureHeader is the first line of a trace in the format of the public Azure LLM
// inference traces.
const AzureHeader = "TIMESTAMP,ContextTokens,GeneratedTokens"

// azureTime are the two forms of a timestamp in the published traces: that of
// 2023, and that of 2024 with its zone. Both carry any number of fractional
// digits.
var azureTime = []string{"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00"}

// maxLine is the longest line in bytes that can be part of a trace: a real one
// has about fifty.
const maxLine = 4096

// Azure reads a trace in the format of the public Azure LLM inference traces,
// one line at a time. Arrivals count from the first row. Lines may end in CRLF,
// and empty lines at the end are ignored.
type Azure struct {
	name  string
	lines *bufio.Scanner
	line  int
	first time.Time
	last  time.Time
	err   error
}

// NewAzure reads the header of a trace. The name, usually that of the file,
// stands in every error, together with the number of the line.
func NewAzure(r io.Reader, name string) (*Azure, error) {
	a := &Azure{name: name, lines: bufio.NewScanner(r)}
	a.lines.Buffer(make([]byte, 0, maxLine), maxLine)
	header, err := a.read()
	if errors.Is(err, io.EOF) {
		return nil, a.fail("the file is empty; expected the header %s", AzureHeader)
	}
	if err != nil {
		return nil, err
	}
	if header != AzureHeader {
		return nil, a.fail("the header is %q; expected %s", short(header), AzureHeader)
	}
	return a, nil
}

// Next implements Stream.
func (a *Azure) Next() (Request, error) {
	if a.err != nil {
		return Request{}, a.err
	}
	r, err := a.next()
	a.err = err
	return r, err
}

func (a *Azure) next() (Request, error) {
	line, err := a.read()
	if err != nil {
		return Request{}, err
	}
	if line == "" {
		return Request{}, a.onlyEmptyLines()
	}
	columns := strings.Split(line, ",")
	if len(columns) != 3 {
		return Request{}, a.fail("%d columns in %q; expected 3: %s", len(columns), short(line), AzureHeader)
	}
	at, err := a.time(columns[0])
	if err != nil {
		return Request{}, err
	}
	input, err := a.tokens("ContextTokens", columns[1])
	if err != nil {
		return Request{}, err
	}
	output, err := a.tokens("GeneratedTokens", columns[2])
	if err != nil {
		return Request{}, err
	}
	return Request{Arrival: at.Sub(a.first), Input: input, Output: output}, nil
}

// read returns the next line without its end.
func (a *Azure) read() (string, error) {
	a.line++
	if a.lines.Scan() {
		return strings.TrimSuffix(a.lines.Text(), "\r"), nil
	}
	switch err := a.lines.Err(); {
	case err == nil:
		return "", io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return "", a.fail("the line is longer than %d bytes; expected %s", maxLine, AzureHeader)
	default:
		return "", fmt.Errorf("%s:%d: reading the trace: %w", a.name, a.line, err)
	}
}

// onlyEmptyLines is what follows an empty line: the end, or else an error that
// names the empty line.
func (a *Azure) onlyEmptyLines() error {
	empty := a.line
	for {
		line, err := a.read()
		if err != nil {
			return err
		}
		if line != "" {
			a.line = empty
			return a.fail("the line is empty; expected %s", AzureHeader)
		}
	}
}

func (a *Azure) time(text string) (time.Time, error) {
	var at time.Time
	var err error
	for _, layout := range azureTime {
		if at, err = time.Parse(layout, text); err == nil {
			break
		}
	}
	if err != nil {
		return at, a.fail("TIMESTAMP is %q; expected a time like 2023-11-16 18:15:46.6805900", short(text))
	}
	if a.first.IsZero() {
		a.first = at
	}
	if at.Before(a.last) {
		return at, a.fail("TIMESTAMP %s is %s before the line above; expected rows in order of time", text, a.last.Sub(at))
	}
	a.last = at
	return at, nil
}

func (a *Azure) tokens(column, text string) (int, error) {
	// 31 bits are far above any context and keep sums of tokens exact.
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, a.fail("%s is %q; expected a whole number of at least 1", column, short(text))
	}
	return int(n), nil
}

func (a *Azure) fail(format string, args ...any) error {
	return fmt.Errorf("%s:%d: %s", a.name, a.line, fmt.Sprintf(format, args...))
}

// short keeps what an error quotes readable when a file is no trace at all.
func short(text string) string {
	const most = 60
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

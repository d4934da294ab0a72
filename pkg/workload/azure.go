package workload

import (
	"io"
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
	lines *lines
	first time.Time
	last  time.Time
	err   error
}

// NewAzure reads the header of a trace. The name, usually that of the file,
// stands in every error, together with the number of the line.
func NewAzure(r io.Reader, name string) (*Azure, error) {
	a := &Azure{lines: newLines(r, name, AzureHeader, maxLine)}
	if err := a.lines.header(); err != nil {
		return nil, err
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
	columns, err := a.lines.columns(3)
	if err != nil {
		return Request{}, err
	}
	at, err := a.time(columns[0])
	if err != nil {
		return Request{}, err
	}
	input, err := a.lines.tokens("ContextTokens", columns[1])
	if err != nil {
		return Request{}, err
	}
	output, err := a.lines.tokens("GeneratedTokens", columns[2])
	if err != nil {
		return Request{}, err
	}
	return Request{Arrival: at.Sub(a.first), Input: input, Output: output}, nil
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
		return at, a.lines.fail("TIMESTAMP is %q; expected a time like 2023-11-16 18:15:46.6805900", short(text))
	}
	if a.first.IsZero() {
		a.first = at
	}
	if at.Before(a.last) {
		return at, a.lines.fail("TIMESTAMP %s is %s before the line above; expected rows in order of time", text, a.last.Sub(at))
	}
	a.last = at
	return at, nil
}

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
	order
	err error
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
	arrival, err := a.arrival(a.lines, "TIMESTAMP "+columns[0], at)
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
	return Request{Arrival: arrival, Input: input, Output: output}, nil
}

func (a *Azure) time(text string) (time.Duration, error) {
	at, ok := clockTime(text, azureTime)
	if !ok {
		return 0, a.lines.fail("TIMESTAMP is %q; expected a time like 2023-11-16 18:15:46.6805900", short(text))
	}
	return at, nil
}

// clockTime is a time of day in one of the layouts, as the time since 1970. It reports
// false for what is none, and for one that is not within a century after 1970.
func clockTime(text string, layouts []string) (time.Duration, bool) {
	for _, layout := range layouts {
		if at, err := time.Parse(layout, text); err == nil {
			return time.Duration(at.UnixNano()), at.Unix() >= 0 && at.Unix() <= mostSeconds
		}
	}
	return 0, false
}

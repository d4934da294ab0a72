package workload

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

const (
	// PlainHeader is the first line of a plain trace in CSV.
	PlainHeader = "time,input_tokens,output_tokens"

	// PlainRow is the form of a line of a plain trace in JSON lines.
	PlainRow = `{"time": SECONDS, "input_tokens": TOKENS, "output_tokens": TOKENS}`

	// plainTime says what a time may be.
	plainTime = "seconds, such as 12.5, or a time, such as 2026-11-22T18:15:46.68Z"
)

// Plain reads a plain trace, one line at a time: CSV with PlainHeader, or one JSON object
// per line as PlainRow. The time of a row is in seconds from anywhere, or a time of day; all
// rows of a trace have it in the same form. Arrivals count from the first row.
type Plain struct {
	lines *lines
	row   func() (plainRow, error)
	order
	// clock says that the times are times of day.
	clock bool
	err   error
}

// plainRow is one row as it stands there. A time of seconds counts from 1970.
type plainRow struct {
	at            time.Duration
	text          string
	clock         bool
	input, output int
}

// NewPlainCSV reads the header of a trace in CSV. The name, usually that of the file,
// stands in every error, together with the number of the line.
func NewPlainCSV(r io.Reader, name string) (*Plain, error) {
	p := &Plain{lines: newLines(r, name, PlainHeader, maxLine)}
	p.row = p.csv
	return p, p.lines.header()
}

// NewPlainJSON starts to read a trace in JSON lines.
func NewPlainJSON(r io.Reader, name string) *Plain {
	p := &Plain{lines: newLines(r, name, PlainRow, maxLine)}
	p.row = p.json
	return p
}

// Next implements Stream.
func (p *Plain) Next() (Request, error) {
	if p.err != nil {
		return Request{}, p.err
	}
	r, err := p.next()
	p.err = err
	return r, err
}

func (p *Plain) next() (Request, error) {
	row, err := p.row()
	if err != nil {
		return Request{}, err
	}
	switch {
	case !p.started:
		p.clock = row.clock
	case p.clock && !row.clock:
		return Request{}, p.lines.fail("time is %s, a number, after times of day; expected all in the same form", row.text)
	case !p.clock && row.clock:
		return Request{}, p.lines.fail("time is %s, a time of day, after numbers; expected all in the same form", row.text)
	}
	at, err := p.arrival(p.lines, "time "+row.text, row.at)
	return Request{Arrival: at, Input: row.input, Output: row.output}, err
}

func (p *Plain) csv() (row plainRow, err error) {
	columns, err := p.lines.columns(3)
	if err != nil {
		return row, err
	}
	row.text = columns[0]
	if row.at, row.clock, err = p.time(row.text); err != nil {
		return row, err
	}
	if row.input, err = p.lines.tokens("input_tokens", columns[1]); err != nil {
		return row, err
	}
	row.output, err = p.lines.tokens("output_tokens", columns[2])
	return row, err
}

func (p *Plain) json() (row plainRow, err error) {
	text, err := p.lines.row()
	if err != nil {
		return row, err
	}
	// What is not there stays empty.
	var raw struct {
		Time   json.RawMessage `json:"time"`
		Input  json.RawMessage `json:"input_tokens"`
		Output json.RawMessage `json:"output_tokens"`
	}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return row, p.lines.fail("%q is not a JSON object; expected %s", short(text), PlainRow)
	}
	for _, field := range []struct {
		name string
		raw  json.RawMessage
	}{{"time", raw.Time}, {"input_tokens", raw.Input}, {"output_tokens", raw.Output}} {
		if len(field.raw) == 0 {
			return row, p.lines.fail("%s is missing; expected %s", field.name, PlainRow)
		}
	}
	row.text = string(raw.Time)
	var spoken string
	if json.Unmarshal(raw.Time, &spoken) == nil && spoken != "" {
		row.text = spoken
	}
	if row.at, row.clock, err = p.time(row.text); err != nil {
		return row, err
	}
	if row.input, err = p.lines.tokens("input_tokens", string(raw.Input)); err != nil {
		return row, err
	}
	row.output, err = p.lines.tokens("output_tokens", string(raw.Output))
	return row, err
}

// plainLayouts are the forms of a time of day.
var plainLayouts = append([]string{time.RFC3339}, azureTime...)

// mostSeconds is a century: a Unix time fits.
const mostSeconds = 100 * 366 * 24 * 3600

// time reads seconds or a time of day, as the time since 1970 or since the zero of the
// seconds.
func (p *Plain) time(text string) (at time.Duration, clock bool, err error) {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		if !(seconds >= 0) || seconds > mostSeconds {
			return 0, false, p.lines.fail("time is %s; expected seconds of at least 0 and at most %d", short(text), mostSeconds)
		}
		// The seconds of a Unix time have more digits than a float holds to the nanosecond.
		if exact, err := time.ParseDuration(text + "s"); err == nil {
			return exact, false, nil
		}
		return time.Duration(math.Round(seconds * float64(time.Second))), false, nil
	}
	if at, ok := clockTime(text, plainLayouts); ok {
		return at, true, nil
	}
	return 0, false, p.lines.fail("time is %q; expected %s", short(text), plainTime)
}

// isPlainRow says whether the first line of JSON lines is of a plain trace.
func isPlainRow(line string) bool {
	for _, field := range []string{`"time"`, `"input_tokens"`, `"output_tokens"`} {
		if strings.Contains(line, field) {
			return true
		}
	}
	return false
}

// WritePlain writes a stream as a plain trace in CSV, with times in seconds to the
// microsecond, and describes what it wrote.
func WritePlain(w io.Writer, stream Stream) (Summary, error) {
	var sum Summary
	if _, err := io.WriteString(w, PlainHeader+"\n"); err != nil {
		return sum, err
	}
	var line []byte
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err != nil {
			return sum, err
		}
		sum.add(r)
		line = strconv.AppendFloat(line[:0], math.Round(r.Arrival.Seconds()*1e6)/1e6, 'f', -1, 64)
		line = strconv.AppendInt(append(line, ','), int64(r.Input), 10)
		line = strconv.AppendInt(append(line, ','), int64(r.Output), 10)
		if _, err := w.Write(append(line, '\n')); err != nil {
			return sum, err
		}
	}
}

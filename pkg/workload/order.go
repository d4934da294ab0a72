package workload

import (
	"errors"
	"fmt"
	"time"
)

const (
	// LongestGap is the longest time without a request in a recorded trace. A longer one is
	// most likely a mistake in a time, and a replay would go through all of it.
	LongestGap = 14 * 24 * time.Hour
	// LongestTrace is the longest time from the first request of a recorded trace to the
	// last one.
	LongestTrace = 366 * 24 * time.Hour
)

// order counts the times of a recorded trace from its first row, and refuses those that
// cannot be: rows out of order, and rows that are too far from those before.
type order struct {
	first, last time.Duration
	started     bool
}

// arrival is the time of the row that was read last, from the first row on; row is what
// the row calls its time.
func (o *order) arrival(l *lines, row string, at time.Duration) (time.Duration, error) {
	if !o.started {
		o.started, o.first, o.last = true, at, at
	}
	gap, arrival := at-o.last, at-o.first
	switch {
	case gap < 0:
		return 0, l.fail("%s is %s before the line above; expected rows in order of time", row, -gap)
	case gap > LongestGap:
		return 0, &farError{at: arrival, error: l.fail("%s is %s after the line above; expected at most %s without a request: see whether the time is right, or replay what comes before it with --duration %s",
			row, long(gap), long(LongestGap), shortest(o.last-o.first))}
	case arrival > LongestTrace:
		return 0, &farError{at: arrival, error: l.fail("%s is %s after the first request; expected a trace of at most %s: replay a part of it with --duration",
			row, long(arrival), long(LongestTrace))}
	}
	o.last = at
	return arrival, nil
}

// shortest is the least whole number of seconds that holds a request at that time.
func shortest(last time.Duration) time.Duration { return last.Truncate(time.Second) + time.Second }

// farError is the error about a row that is too far from those before. Who wants only what
// comes before it, does not see it.
type farError struct {
	error
	at time.Duration
}

// Unwrap gives the error about the line.
func (f *farError) Unwrap() error { return f.error }

// beyond reports whether the error is about a row at or after a time.
func beyond(err error, length time.Duration) bool {
	far, ok := errors.AsType[*farError](err)
	return ok && far.at >= length
}

// since counts the time of a row that is too far from another beginning.
func since(err error, from time.Duration) error {
	if far, ok := errors.AsType[*farError](err); ok {
		return &farError{error: far.error, at: far.at - from}
	}
	return err
}

// long writes a long time for people: 20.1 years, 15 days.
func long(d time.Duration) string {
	const day, year = 24 * time.Hour, 365.25 * 24
	if d > 2*LongestTrace {
		return fmt.Sprintf("%.1f years", d.Hours()/year)
	}
	return fmt.Sprintf("%.0f days", float64(d)/float64(day))
}

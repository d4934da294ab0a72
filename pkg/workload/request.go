package workload

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Request is one request of a load.
type Request struct {
	// Arrival is the time since the start of the stream.
	Arrival time.Duration
	// Input is the number of prompt tokens, at least 1.
	Input int
	// Output is the number of tokens to generate, at least 1.
	Output int
	// Prompt says what the prompt begins with; nil means that nobody knows.
	Prompt *Prompt
}

// Stream hands out requests in order of arrival.
type Stream interface {
	// Next returns the next request, io.EOF after the last one, or the error that
	// ended the stream; after an error it returns the same error again.
	Next() (Request, error)
}

// Limit ends a stream before the first request that arrives at length or later.
func Limit(stream Stream, length time.Duration) Stream {
	return &limited{stream: stream, length: length}
}

type limited struct {
	stream Stream
	length time.Duration
	over   bool
}

func (l *limited) Next() (Request, error) {
	if l.over {
		return Request{}, io.EOF
	}
	r, err := l.stream.Next()
	if beyond(err, l.length) {
		l.over = true
		return Request{}, io.EOF
	}
	if err != nil {
		return Request{}, err
	}
	if r.Arrival >= l.length {
		l.over = true
		return Request{}, io.EOF
	}
	return r, nil
}

// From leaves out what arrives before a time; arrivals count from there.
func From(stream Stream, from time.Duration) Stream {
	return &later{stream: stream, from: from}
}

type later struct {
	stream Stream
	from   time.Duration
}

func (l *later) Next() (Request, error) {
	for {
		r, err := l.stream.Next()
		if err != nil {
			return Request{}, since(err, l.from)
		}
		if r.Arrival -= l.from; r.Arrival >= 0 {
			return r, nil
		}
	}
}

// Summary describes a whole stream.
type Summary struct {
	// Requests is the number of requests.
	Requests int
	// Last is the arrival of the last request.
	Last time.Duration
	// Input and Output are the summed tokens.
	Input, Output int64
}

// Summarize reads a stream to its end. It is also how a trace is checked before
// it is used: the error is the first one in the stream, and a stream without any
// request is an error too.
func Summarize(stream Stream) (Summary, error) {
	var sum Summary
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Summary{}, err
		}
		sum.add(r)
	}
	if sum.Requests == 0 {
		return Summary{}, errors.New("there are no requests in it")
	}
	return sum, nil
}

func (s *Summary) add(r Request) {
	s.Requests++
	s.Last = r.Arrival
	s.Input += int64(r.Input)
	s.Output += int64(r.Output)
}

// String renders the summary for people: the number of requests, their span and
// their mean tokens.
func (s Summary) String() string {
	if s.Requests == 0 {
		return "no requests"
	}
	n := float64(s.Requests)
	return fmt.Sprintf("%d requests in %s, %.0f prompt and %.0f generated tokens on average",
		s.Requests, s.Last.Round(time.Second), float64(s.Input)/n, float64(s.Output)/n)
}

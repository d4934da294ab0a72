package config

import "regexp"

// What errors of connections have that is new each time: the port of this end, and the time at which a
// certificate was looked at.
var (
	ownEnd  = regexp.MustCompile(`\b((?:tcp|udp)[46]?) \S+->`)
	clocked = regexp.MustCompile(`\bcurrent time \S+ is `)
)

// Steady is an error as objects may hold it: without what is new each time the same thing happens. A
// condition whose text changes is written in every round. What the error is stays.
func Steady(err error) error {
	if err == nil {
		return nil
	}
	was := err.Error()
	text := clocked.ReplaceAllString(ownEnd.ReplaceAllString(was, "$1 "), "current time is ")
	if text == was {
		return err
	}
	return &steady{text, err}
}

type steady struct {
	text string
	err  error
}

func (s *steady) Error() string { return s.text }
func (s *steady) Unwrap() error { return s.err }

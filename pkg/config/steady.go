package config

import "regexp"

// What errors of connections have that is new each time: the port of this end, the time at which a
// certificate was looked at, and where a peer's
// reset was noticed: by a read, by a write, or by what had closed the connection for it.
var (
	ownEnd  = regexp.MustCompile(`\b((?:tcp|udp)[46]?) \S+->`)
	reset   = regexp.MustCompile(`\b(?:read|write) (tcp[46]? \S+: )(?:(?:read|write): (?:connection reset by peer|broken pipe)|use of closed network connection)`)
	clocked = regexp.MustCompile(`\bcurrent time \S+ is `)
)

// StableError is an error as objects may hold it: without what is new each time the same thing happens. A
// condition whose text changes is written in every round. What the error is stays.
func StableError(err error) error {
	if err == nil {
		return nil
	}
	was := err.Error()
	text := clocked.ReplaceAllString(ownEnd.ReplaceAllString(was, "$1 "), "current time is ")
	text = reset.ReplaceAllString(text, "${1}connection reset by peer")
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

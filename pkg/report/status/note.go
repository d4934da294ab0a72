package status

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// mostNote is the longest note of an event, in bytes, that the API server takes.
const mostNote = 1024

// Note is a text as an event or a condition has it: cut to what the API server takes of an
// event, at a whole character. Errors of others have any length, and a status with one message
// that is too long is refused as a whole.
func Note(text string) string {
	if len(text) <= mostNote {
		return text
	}
	end := mostNote - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// mostBrief is about how many bytes of an account an event tells.
const mostBrief = 120

// Brief is the beginning of an account, cut after the last clause that leaves it short. The
// conditions and the steps tell all of it.
func Brief(account string) string {
	const more = ", ..."
	if len(account) <= mostBrief {
		return account
	}
	if end := strings.LastIndexAny(account[:mostBrief-len(more)+1], ",;:"); end > 0 {
		return account[:end] + more
	}
	return account
}

// First is the first of several errors and the number of the others.
func First(err error) string {
	all := single(err)
	if len(all) < 2 {
		return err.Error()
	}
	return fmt.Sprintf("%v (and %d more)", all[0], len(all)-1)
}

// single are the errors that were joined to one, line by line, in whatever order that was done.
func single(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || !strings.Contains(err.Error(), "\n") {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, single(e)...)
	}
	return all
}

package status

import "unicode/utf8"

// mostNote is the longest note of an event, in bytes, that the API server takes.
const mostNote = 1024

// Note is a text as an event has it: cut to what the API server takes, at a whole character.
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

package report

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable is a text of others on one line, as it may be shown on a terminal: what would move the
// cursor, change a colour, begin a line or turn the direction of writing is shown as its escape in Go.
func Printable(text string) string {
	if strings.IndexFunc(text, hidden) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && text[i] != string(utf8.RuneError)[0]:
			b.WriteString(`\x` + strconv.FormatUint(uint64(text[i])|0x100, 16)[1:])
		case hidden(r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character acts on a terminal and is not seen there. Format characters
// (Cf) are those that turn the direction of writing, and those of no width.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp)
}

// colours are what this package itself writes: each begins with ESC [ and ends with m.
var colours = func() map[string]bool {
	all := map[string]bool{endTone: true}
	for _, t := range append([]tone{strong, faint, good, odd, bad}, variantTones...) {
		all[string(t)] = true
	}
	return all
}()

// PrintableLines is Printable for text that is made of lines already: line breaks, tabs and the colours
// of this package stay.
func PrintableLines(text string) string {
	var b strings.Builder
	for text != "" {
		end := strings.IndexAny(text, "\n\t\x1b")
		if end < 0 {
			end = len(text)
		}
		b.WriteString(Printable(text[:end]))
		text = text[end:]
		ours := layout(text)
		b.WriteString(text[:ours])
		if text = text[ours:]; ours == 0 && text != "" {
			b.WriteString(Printable(text[:1]))
			text = text[1:]
		}
	}
	return b.String()
}

// layout is how many bytes at the beginning of a text are a line break, a tab or a colour.
func layout(text string) int {
	switch {
	case text == "":
		return 0
	case text[0] != '\x1b':
		return 1
	}
	if end := strings.IndexByte(text, 'm') + 1; colours[text[:end]] {
		return end
	}
	return 0
}

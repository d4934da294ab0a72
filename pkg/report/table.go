package report

import (
	"strings"
	"unicode/utf8"
)

// table is rows in columns that are as wide as what is in them. A row may be shorter
// than the header.
type table struct {
	columns []column
	rows    [][]cell
}

type column struct {
	name  string
	right bool
}

// gap is between the columns of a table.
const gap = "  "

// lines are the header, if any column has a name, and the rows.
func (t table) lines(style Style) []string {
	if len(t.rows) == 0 {
		return nil
	}
	headed := false
	names := make([]string, len(t.columns))
	widths := make([]int, len(t.columns))
	for i, c := range t.columns {
		headed = headed || c.name != ""
		names[i], widths[i] = c.name, utf8.RuneCountInString(c.name)
	}
	for _, row := range t.rows {
		for i := range row {
			row[i].text = Printable(row[i].text)
		}
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
		}
	}
	for i, c := range t.columns {
		if !c.right {
			widths[i] = -widths[i]
		}
	}
	var lines []string
	if headed {
		lines = append(lines, trimmed(style.spaced(gap, widths, header(names))))
	}
	for _, row := range t.rows {
		lines = append(lines, trimmed(style.spaced(gap, widths, row)))
	}
	return lines
}

func trimmed(line string) string { return strings.TrimRight(line, " ") }

// wrap breaks a text at blanks into lines within the width, all but the first
// indented. Words that are too long stay whole: they may have to be copied.
func (s Style) wrap(text string) []string {
	const indent = "  "
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > s.width():
			lines = append(lines, line)
			line = indent + word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}

// compareNatural orders names as people do: node-2 before node-10.
func compareNatural(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			x, restA := leadingNumber(a)
			y, restB := leadingNumber(b)
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			a, b = restA, restB
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// leadingNumber is the number that s begins with, without leading zeros, and the rest.
func leadingNumber(s string) (number, rest string) {
	end := strings.IndexFunc(s, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(s)
	}
	return strings.TrimLeft(s[:end], "0"), s[end:]
}

package report

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Style says how text is shown. The zero Style is plain.
type Style struct {
	// Color allows terminal colours.
	Color bool
	// Width is the greatest number of columns of a line; 0 means DefaultWidth.
	Width int
}

// DefaultWidth is the width of text when nothing is known of the terminal.
const DefaultWidth = 100

// tone is a terminal colour by what it says.
type tone string

const (
	plain  tone = ""
	strong tone = "\x1b[1m"
	faint  tone = "\x1b[2m"
	good   tone = "\x1b[32m"
	odd    tone = "\x1b[33m"
	bad    tone = "\x1b[31m"
)

const endTone = "\x1b[0m"

func (s Style) paint(t tone, text string) string {
	if !s.Color || t == plain || text == "" {
		return text
	}
	return string(t) + text + endTone
}

func (s Style) width() int {
	if s.Width <= 0 {
		return DefaultWidth
	}
	return s.Width
}

// Title emphasises a heading.
func (s Style) Title(text string) string { return s.paint(strong, text) }

// Good emphasises good news.
func (s Style) Good(text string) string { return s.paint(good, text) }

// Bad emphasises bad news.
func (s Style) Bad(text string) string { return s.paint(bad, text) }

// cell is a text in a column. Colours are added after padding, since they take no
// room on the screen.
type cell struct {
	text string
	tone tone
	// parts make up the text where it has several colours.
	parts []cell
}

// painted is the text, or as much of it as was kept, in its colours.
func (s Style) painted(c cell, text string) string {
	if len(c.parts) == 0 || text != c.text {
		return s.paint(c.tone, text)
	}
	var b strings.Builder
	for _, part := range c.parts {
		b.WriteString(s.paint(part.tone, part.text))
	}
	return b.String()
}

// row lays cells out in columns; a negative width aligns to the left.
func (s Style) row(widths []int, cells []cell) string { return s.spaced(" ", widths, cells) }

// spaced is row with another gap between the columns.
func (s Style) spaced(gap string, widths []int, cells []cell) string {
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString(gap)
		}
		width := widths[i]
		text := cut(c.text, max(width, -width))
		pad := strings.Repeat(" ", max(width, -width)-utf8.RuneCountInString(text))
		if width < 0 {
			b.WriteString(s.painted(c, text))
			if i < len(cells)-1 {
				b.WriteString(pad)
			}
			continue
		}
		b.WriteString(pad)
		b.WriteString(s.painted(c, text))
	}
	return b.String()
}

// shortened are names in a number of columns at most. What is too long loses its middle, or
// another part where names would look the same that are not.
func shortened(names []string, columns int) []string {
	middle := max(0, columns-1) / 2
	heads := []int{middle}
	for away := 1; away <= columns; away++ {
		heads = append(heads, middle-away, middle+away)
	}
	first := shortenedTo(names, columns, middle)
	for _, head := range heads {
		if head < 0 || head > columns-1 {
			continue
		}
		if short := shortenedTo(names, columns, head); differences(short) == differences(names) {
			return short
		}
	}
	return first
}

// shortenedTo keeps so many letters at the beginning of the names that are too long.
func shortenedTo(names []string, columns, head int) []string {
	short := make([]string, len(names))
	for i, name := range names {
		letters := []rune(name)
		if short[i] = name; len(letters) > columns && columns > 0 {
			short[i] = string(letters[:head]) + "…" + string(letters[len(letters)-(columns-1-head):])
		}
	}
	return short
}

// differences is how many different names there are.
func differences(names []string) int {
	seen := map[string]bool{}
	for _, name := range names {
		seen[name] = true
	}
	return len(seen)
}

// cut shortens a text to a number of columns, with an ellipsis where it ends.
func cut(text string, columns int) string {
	if utf8.RuneCountInString(text) <= columns {
		return text
	}
	runes := []rune(text)
	return string(runes[:max(0, columns-1)]) + "…"
}

// unknown is shown for what is not known, which is never shown as zero.
const unknown = "-"

func share(value *float64) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf("%.0f%%", *value*100)
}

func number(value *float64) string {
	if value == nil {
		return unknown
	}
	return fmt.Sprintf("%.1f", *value)
}

// latency shows milliseconds with three digits that matter.
func latency(ms *float64) string {
	switch {
	case ms == nil:
		return unknown
	case *ms >= 9999.5:
		return fmt.Sprintf("%.1f s", *ms/1000)
	case *ms >= 999.5:
		return fmt.Sprintf("%.2f s", *ms/1000)
	case *ms >= 99.95:
		return fmt.Sprintf("%.0f ms", *ms)
	}
	return fmt.Sprintf("%.1f ms", *ms)
}

// Clock shows a time of the run as minutes and seconds.
func Clock(d time.Duration) string {
	whole := int(d.Round(time.Second).Seconds())
	sign := ""
	if whole < 0 {
		sign, whole = "-", -whole
	}
	return fmt.Sprintf("%s%d:%02d", sign, whole/60, whole%60)
}

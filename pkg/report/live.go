package report

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Live is the picture of one moment of a run. A nil number is unknown.
type Live struct {
	// At is the time since the start of the traffic, Of how long the run takes.
	At, Of time.Duration
	// Phase says in a word or two what is going on.
	Phase    string
	Models   []LiveModel
	Variants []LiveVariant
	// Decisions are all decisions so far, oldest first; the latest are shown.
	Decisions []Decision
}

// LiveModel is what the clients of one model get now.
type LiveModel struct {
	Model string
	SLO   SLO
	// Arrival is the requests per second that arrive.
	Arrival *float64
	// Queue is the number of requests that wait in front of the replicas.
	Queue *float64
	// Attainment is the share of the requests so far that met the SLO.
	Attainment *float64
}

// LiveVariant is the state of one variant now. Latencies are in milliseconds.
type LiveVariant struct {
	Name, Model string
	// Shape is what a replica takes, such as "2xL40S".
	Shape                   string
	CostPerReplicaHour      float64
	Desired, Ready, Pending int
	// KVUse is the used share of the KV cache, 0 to 1.
	KVUse, Waiting, TTFT, ITL *float64
}

// shownDecisions is how many of the latest decisions a table shows.
const shownDecisions = 5

var (
	variantHeader = []string{"VARIANT", "TAKES", "COST/H", "DESIRED", "READY", "PENDING", "KV USE", "WAITING", "TTFT", "ITL"}
	variantWidths = []int{-18, -8, 8, 7, 5, 7, 6, 7, 9, 8}
)

// Table renders the picture as lines for a terminal, each within the width.
func (l Live) Table(style Style) []string {
	lines := []string{style.paint(strong, l.Headline()), ""}
	for _, m := range l.Models {
		lines = append(lines, l.modelLine(style, m))
	}
	lines = append(lines, "", style.row(variantWidths, header(variantHeader)))
	for _, v := range l.Variants {
		lines = append(lines, style.row(variantWidths, l.variantCells(v)))
	}
	lines = append(lines, "", style.paint(faint, "last decisions"))
	first := max(0, len(l.Decisions)-shownDecisions)
	for _, d := range l.Decisions[first:] {
		lines = append(lines, d.wrapped(style.width())...)
	}
	if len(l.Decisions) == 0 {
		lines = append(lines, "  none yet")
	}
	return lines
}

// Block renders the picture as a few plain lines for a log, without the decisions,
// which are printed once each when they are taken.
func (l Live) Block() []string {
	lines := []string{l.Headline()}
	for _, m := range l.Models {
		lines = append(lines, l.modelLine(Style{}, m))
	}
	for _, v := range l.Variants {
		lines = append(lines, fmt.Sprintf("  %-18s %-8s desired %d ready %d pending %d, KV %s, waiting %s, TTFT %s, ITL %s",
			cut(v.Name, 18), v.Shape, v.Desired, v.Ready, v.Pending, share(v.KVUse), number(v.Waiting), latency(v.TTFT), latency(v.ITL)))
	}
	return lines
}

// Headline says how far the run is and what goes on.
func (l Live) Headline() string {
	if l.At > l.Of {
		return fmt.Sprintf("%s + %s  %s", Clock(l.Of), Clock(l.At-l.Of), l.Phase)
	}
	return fmt.Sprintf("%s of %s  %s", Clock(l.At), Clock(l.Of), l.Phase)
}

func (l Live) modelLine(style Style, m LiveModel) string {
	met := share(m.Attainment)
	if m.Attainment != nil {
		met = style.paint(judged(*m.Attainment), met)
	}
	return fmt.Sprintf("%-38s %7s req/s  queued %-6s %s met %.0f ms / %.0f ms",
		cut(m.Model, 38), number(m.Arrival), number(m.Queue), met, m.SLO.TTFT, m.SLO.ITL)
}

// wanted is the attainment that counts as good.
const wanted = 0.9

func judged(attainment float64) tone {
	if attainment >= wanted {
		return good
	}
	return bad
}

func (l Live) variantCells(v LiveVariant) []cell {
	slo := l.sloOf(v.Model)
	return []cell{
		{text: v.Name},
		{text: v.Shape},
		{text: money(v.CostPerReplicaHour)},
		{text: fmt.Sprint(v.Desired), tone: when(v.Desired != v.Ready, odd)},
		{text: fmt.Sprint(v.Ready)},
		{text: fmt.Sprint(v.Pending), tone: when(v.Pending > 0, odd)},
		{text: share(v.KVUse)},
		{text: number(v.Waiting)},
		{text: latency(v.TTFT), tone: when(exceeds(v.TTFT, slo.TTFT), bad)},
		{text: latency(v.ITL), tone: when(exceeds(v.ITL, slo.ITL), bad)},
	}
}

func (l Live) sloOf(model string) SLO {
	for _, m := range l.Models {
		if m.Model == model {
			return m.SLO
		}
	}
	return SLO{}
}

func exceeds(value *float64, limit float64) bool {
	return value != nil && limit > 0 && *value > limit
}

func when(holds bool, t tone) tone {
	if holds {
		return t
	}
	return plain
}

func header(names []string) []cell {
	cells := make([]cell, len(names))
	for i, name := range names {
		cells[i] = cell{text: name, tone: faint}
	}
	return cells
}

func money(perHour float64) string { return fmt.Sprintf("$%.2f", perHour) }

// wrapped renders a decision as one line or two.
func (d Decision) wrapped(width int) []string {
	line := "  " + d.String()
	if utf8.RuneCountInString(line) <= width {
		return []string{line}
	}
	indent := utf8.RuneCountInString(line) - utf8.RuneCountInString(d.Reason)
	end := strings.LastIndexByte(line[:width], ' ')
	if end <= indent {
		return []string{cut(line, width)}
	}
	return []string{line[:end], cut(strings.Repeat(" ", indent)+line[end+1:], width)}
}

// String renders a decision as one line.
func (d Decision) String() string {
	at := Clock(time.Duration(d.T * float64(time.Second)))
	return strings.TrimRight(fmt.Sprintf("%6s  %-18s %d -> %d  %s", at, d.Variant, d.From, d.To, d.Reason), " ")
}

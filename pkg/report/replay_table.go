package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// replayColumn is one column of the table of a replay. Its name has two lines, of which
// the first one is a group where it is that of its neighbours too.
type replayColumn struct {
	over, name string
	// rank says what goes first where there is too little room: the highest. Columns of
	// rank 0 stay: a failed request is never left out.
	rank int
	text func(r *replay.Result) string
}

// replayTextColumns are the columns in the order in which they are shown.
var replayTextColumns = []replayColumn{
	{"", "POLICY", 0, func(r *replay.Result) string { return r.Policy }},
	{"START", "-UP", 2, func(r *replay.Result) string { return spokenSeconds(r.StartupSeconds) }},
	{"REQ-", "UESTS", 10, func(r *replay.Result) string { return thousands(r.Requests) }},
	{"", "FAILED", 0, func(r *replay.Result) string { return thousands(r.Failed) }},
	{"MET", "SLO", 0, func(r *replay.Result) string {
		if r.Requests == 0 {
			return unknown
		}
		return attained(r.Attainment) + markOf(r)
	}},
	{"TTFT", "P50", 9, func(r *replay.Result) string { return brief(r.TTFT.P50) }},
	{"TTFT", "P95", 5, func(r *replay.Result) string { return brief(r.TTFT.P95) }},
	{"TTFT", "P99", 3, func(r *replay.Result) string { return brief(r.TTFT.P99) }},
	{"ITL", "P50", 9, func(r *replay.Result) string { return brief(r.ITL.P50) }},
	{"ITL", "P95", 5, func(r *replay.Result) string { return brief(r.ITL.P95) }},
	{"ITL", "P99", 3, func(r *replay.Result) string { return brief(r.ITL.P99) }},
	{"REPLICA", "HOURS", 8, func(r *replay.Result) string { return short(r.ReplicaHours) }},
	{"GPU", "HOURS", 6, func(r *replay.Result) string { return short(r.GPUHours) }},
	{"", "COST", 0, func(r *replay.Result) string {
		if r.Unpriced {
			return unknown
		}
		return dollars(r.Cost)
	}},
	{"x", "BOUND", 1, func(r *replay.Result) string {
		if r.CostOverBound <= 0 {
			return unknown
		}
		return fmt.Sprintf("%.2f", r.CostOverBound)
	}},
	{"SCALE", "EVENTS", 4, func(r *replay.Result) string { return fmt.Sprint(r.ScaleEvents) }},
	{"", "FLIPS", 7, func(r *replay.Result) string { return fmt.Sprint(r.Flips) }},
	{"UNDER-", "PROV.", 4, func(r *replay.Result) string { return hoursAndMinutes(r.UnderProvisionedSeconds) }},
	{"UNPLA-", "CEABLE", 2, func(r *replay.Result) string { return fmt.Sprint(r.UnplaceableReplicas) }},
}

// ReplayTable renders the numbers of a replay as lines for a terminal, each within the
// width of the style. Where there is too little room, whole columns are left out; JSON
// and HTML have all of them.
func ReplayTable(results []replay.Result, style Style) []string {
	if len(results) == 0 {
		return nil
	}
	columns := slices.Clone(replayTextColumns)
	for rank := 11; ; rank-- {
		widths := replayWidths(columns, results)
		if total(widths) <= style.width() || rank == 0 {
			lines := append(fitted(columns, widths, results, style), brokenNote(results, style)...)
			if note := tooLongNote(results); note != "" {
				lines = append(lines, style.wrap(note)...)
			}
			return lines
		}
		columns = slices.DeleteFunc(columns, func(c replayColumn) bool { return c.rank == rank })
	}
}

// ReplayDispersion says in one line how the requests of a replay scatter; none where
// that is not known.
func ReplayDispersion(results []replay.Result) []string {
	if len(results) == 0 || len(results[0].Dispersion) == 0 {
		return nil
	}
	line := "index of dispersion of the arrivals: " + indexes(results[0].Dispersion)
	if before := results[0].TraceDispersion; len(before) > 0 {
		line += "; of the trace as it is: " + indexes(before)
	}
	return []string{line}
}

func indexes(all []workload.Index) string {
	texts := make([]string, len(all))
	for i, x := range all {
		texts[i] = fmt.Sprintf("%s in %s", short(x.Index), spokenSeconds(x.Seconds))
	}
	return strings.Join(texts, ", ")
}

// brokenMark follows the attainment of a searched fleet that is not what was searched for,
// and brokenText says so.
const (
	brokenMark = "*"
	brokenText = "no static fleet that was tried meets the SLO; this one attains about the most of them"
)

func markOf(r *replay.Result) string {
	if r.BreaksPromise() {
		return brokenMark
	}
	return ""
}

// brokenNote explains the mark, where there is one.
func brokenNote(results []replay.Result, style Style) []string {
	i := slices.IndexFunc(results, func(r replay.Result) bool { return r.BreaksPromise() })
	if i < 0 {
		return nil
	}
	return style.wrap(brokenMark + " " + results[i].Policy + ": " + brokenText)
}

// replayWidths are negative for the first column, which aligns to the left.
func replayWidths(columns []replayColumn, results []replay.Result) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = max(utf8.RuneCountInString(c.over), utf8.RuneCountInString(c.name))
		for j := range results {
			widths[i] = max(widths[i], utf8.RuneCountInString(c.text(&results[j])))
		}
	}
	widths[0] = -widths[0]
	return widths
}

// total is the width of a row with one blank between the columns.
func total(widths []int) int {
	sum := len(widths) - 1
	for _, w := range widths {
		sum += max(w, -w)
	}
	return sum
}

func fitted(columns []replayColumn, widths []int, results []replay.Result, style Style) []string {
	// When even the columns that stay are too wide, the policies' names are cut.
	if excess := total(widths) - style.width(); excess > 0 {
		widths[0] = min(widths[0]+excess, -6)
	}
	over, names := make([]string, len(columns)), make([]string, len(columns))
	for i, c := range columns {
		over[i], names[i] = c.over, c.name
	}
	lines := []string{trimmed(style.row(widths, header(over))), trimmed(style.row(widths, header(names)))}
	policies := make([]string, len(results))
	for i := range results {
		policies[i] = columns[0].text(&results[i])
	}
	for i, policy := range shortened(policies, -widths[0]) {
		cells := make([]cell, len(columns))
		for j, c := range columns {
			cells[j] = cell{text: c.text(&results[i])}
		}
		cells[0].text = policy
		if replay.KindOf(results[i].Policy) == replay.KindOurs {
			cells[0].tone = strong
		}
		lines = append(lines, style.row(widths, cells))
	}
	for i, line := range lines {
		if !style.Color {
			lines[i] = cut(line, style.width())
		}
	}
	return lines
}

// brief is a latency in as little room as possible: 850ms, 1.3s, 24s, 12m.
func brief(ms float64) string {
	switch {
	case ms <= 0:
		return unknown
	case ms < 9.95:
		return fmt.Sprintf("%.1fms", ms)
	case ms < 999.5:
		return fmt.Sprintf("%.0fms", ms)
	case ms < 9950:
		return fmt.Sprintf("%.1fs", ms/1000)
	case ms < 599_500:
		return fmt.Sprintf("%.0fs", ms/1000)
	}
	return fmt.Sprintf("%.0fm", ms/60_000)
}

// thousands is a number of things in as little room as possible: 940, 12.3k, 1.73M.
func thousands(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_500:
		return fmt.Sprintf("%.3gk", float64(n)/1e3)
	}
	return short(float64(n)/1e6) + "M"
}

// short keeps three digits that matter and all digits before the point.
func short(value float64) string {
	switch {
	case value < 9.995:
		return fmt.Sprintf("%.2f", value)
	case value < 99.95:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.0f", value)
}

// hoursAndMinutes is a stretch of time in at most six characters or so: 45s, 12m, 3h07m.
func hoursAndMinutes(s float64) string {
	d := time.Duration(math.Round(s)) * time.Second
	switch {
	case d < 10*time.Minute:
		return Duration(d)
	case d < time.Hour:
		return fmt.Sprintf("%.0fm", d.Minutes())
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// The parts of a line of the chart of a replay.
const (
	// chartLabel is the greatest width of a label, chartRange that of what stands behind
	// the chart, and fewestColumns how narrow the chart may become.
	chartLabel    = 20
	chartRange    = 28
	fewestColumns = 10
)

// attainmentFloor is where the bars of attainment begin: below it is as bad as zero.
const attainmentFloor = 0.9

var bars = []rune("▁▂▃▄▅▆▇█")

// ReplayChart renders the courses of runs of one load as lines for a terminal, each
// within the width (0 means the style's): the load, and for each run the replicas of
// every variant, attainment, and the cost against the bound. A column shows the highest
// load, the most replicas that were ready, and the shares of the time that it stands
// for; the bars of attainment begin at 90 %, and a line says so. The results are those of
// the recordings, in the same order.
func ReplayChart(results []replay.Result, recordings []replay.Recording, style Style, width int) []string {
	if len(recordings) == 0 {
		return nil
	}
	if width <= 0 {
		width = style.width()
	}
	first := &recordings[0]
	c := newChart(first, style, width)
	column := first.Length / time.Duration(c.columns)
	lines := c.block(first, fmt.Sprintf("%s of load, a column is %s", Duration(first.Length), Duration(column.Round(time.Second))), c.load)
	for _, line := range (Style{Width: width}).wrap(fmt.Sprintf("Bars of attainment begin at %.0f%%.", 100*attainmentFloor)) {
		lines = append(lines, style.paint(faint, line))
	}
	for i := range recordings {
		r := &recordings[i]
		// What it cost in all is the result's: the samples begin a moment later.
		title := fmt.Sprintf("%s, start-up %s", r.Policy, Duration(r.Startup))
		if over := results[i].CostOverBound; over > 0 {
			title += fmt.Sprintf(", %.2f x bound", over)
		}
		lines = append(lines, "")
		lines = append(lines, c.block(r, title, c.model)...)
	}
	return lines
}

// block is a title, what is to be shown of each model, and the time.
func (c chart) block(r *replay.Recording, title string, show func(*replay.RecordedModel, time.Duration) []string) []string {
	lines := []string{c.style.paint(strong, cut(title, c.width))}
	for m := range r.Models {
		model := &r.Models[m]
		if len(r.Models) > 1 {
			lines = append(lines, cut(model.ID, c.width))
		}
		lines = append(lines, show(model, r.Step)...)
	}
	return append(lines, c.axis(r.Length))
}

// chart draws values over time in a number of columns.
type chart struct {
	style                 Style
	label, columns, width int
}

func newChart(r *replay.Recording, style Style, width int) chart {
	c := chart{style: style, width: width, label: len("cost / bound")}
	for m := range r.Models {
		for i := range r.Models[m].Variants {
			c.label = max(c.label, utf8.RuneCountInString(r.Models[m].Variants[i].Name))
		}
	}
	c.label = min(c.label, chartLabel, max(6, width/4))
	c.columns = max(fewestColumns, width-c.label-chartRange-4)
	return c
}

func (c chart) load(m *replay.RecordedModel, step time.Duration) []string {
	load := make([]float64, len(m.Samples))
	for i, s := range m.Samples {
		load[i] = float64(s.Requests) / step.Seconds()
	}
	top := highest(load)
	return []string{c.line("load", plain, c.columned(load, math.Max), 0, top, fmt.Sprintf("up to %s req/s", short(top)))}
}

func (c chart) model(m *replay.RecordedModel, _ time.Duration) []string {
	n := len(m.Samples)
	requests, met, cost, bound := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for i, s := range m.Samples {
		requests[i], met[i] = float64(s.Requests), float64(s.Met)
		cost[i], bound[i] = s.Cost, s.Bound
	}
	var lines, names []string
	for i := range m.Variants {
		names = append(names, m.Variants[i].Name)
	}
	for i, name := range shortened(names, c.label) {
		lines = append(lines, c.variant(&m.Variants[i], name))
	}
	said, tone := "no requests", plain
	if all := sum(requests); all > 0 {
		share := sum(met) / all
		said, tone = attained(share)+" met the SLO", judged(share)
	}
	lines = append(lines, c.line("attainment", tone, c.ratios(met, requests), attainmentFloor, 1, said))
	if sum(bound) > 0 {
		over := c.ratios(cost, bound)
		return append(lines, c.line("cost / bound", plain, over, 0, highest(over), fmt.Sprintf("up to %.2f", highest(over))))
	}
	if slices.ContainsFunc(m.Variants, func(v replay.RecordedVariant) bool { return v.Unpriced }) {
		return lines
	}
	dear := highest(cost)
	return append(lines, c.line("cost", plain, c.columned(cost, math.Max), 0, dear, fmt.Sprintf("up to $%s/h", short(dear))))
}

func sum(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total
}

// ratios are those of the sums in each column; unknown where the divisor is zero.
func (c chart) ratios(over, under []float64) []float64 {
	add := func(a, b float64) float64 { return a + b }
	above, below := c.columned(over, add), c.columned(under, add)
	for i := range above {
		above[i] /= below[i]
		if math.IsInf(above[i], 0) {
			above[i] = math.NaN()
		}
	}
	return above
}

func (c chart) variant(v *replay.RecordedVariant, name string) string {
	ready, wanted := make([]float64, len(v.Ready)), make([]float64, len(v.Wanted))
	for i := range v.Ready {
		ready[i] = float64(v.Ready[i])
	}
	for i := range v.Wanted {
		wanted[i] = float64(v.Wanted[i])
	}
	most, asked := highest(ready), highest(wanted)
	said := fmt.Sprintf("up to %.0f ready, %.0f wanted", most, asked)
	if most == 0 && asked == 0 {
		said = "never used"
	}
	return c.line(name, plain, c.columned(ready, math.Max), 0, max(most, asked), said)
}

// highest of the known values, at least 0.
func highest(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if v > top {
			top = v
		}
	}
	return top
}

// columned spreads the values over the columns and keeps the chosen one in each; NaN
// where none is known. With fewer values than columns a value takes several.
func (c chart) columned(values []float64, choose func(a, b float64) float64) []float64 {
	out := make([]float64, c.columns)
	for i := range out {
		out[i] = math.NaN()
		from, to := i*len(values)/c.columns, (i+1)*len(values)/c.columns
		for _, v := range values[from:min(len(values), max(to, from+1))] {
			out[i] = known(choose, out[i], v)
		}
	}
	return out
}

// line draws one row. What is not known is blank, and zero at the bottom is a dot: there
// is a difference between few and none.
func (c chart) line(label string, t tone, values []float64, low, high float64, said string) string {
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteRune(' ')
		case v <= 0 && low == 0:
			b.WriteRune('.')
		default:
			share := 1.0
			if high > low {
				share = (v - low) / (high - low)
			}
			b.WriteRune(bars[min(len(bars)-1, max(0, int(share*float64(len(bars)-1)+0.5)))])
		}
	}
	room := max(0, c.width-c.label-c.columns-4)
	return trimmed(c.style.spaced(gap, []int{-c.label, -c.columns, -room}, []cell{{text: label, tone: faint}, {text: b.String()}, {text: said, tone: t}}))
}

// axis writes the times below the columns: at the start, at quarters where there is room
// for them, and at the end.
func (c chart) axis(length time.Duration) string {
	line := []rune(strings.Repeat(" ", c.columns))
	put := func(at int, text string) {
		copy(line[max(0, min(at, len(line)-len(text))):], []rune(text))
	}
	marks := []int{0, 4}
	if c.columns >= 48 {
		marks = []int{0, 1, 2, 3, 4}
	}
	for _, quarter := range marks {
		text := dayClock(length*time.Duration(quarter)/4, length)
		if len(text) <= c.columns {
			put(quarter*c.columns/4, text)
		}
	}
	return trimmed(c.style.paint(faint, cut(strings.Repeat(" ", c.label+len(gap))+trimmed(string(line)), c.width)))
}

// dayClock is a time of the run in hours and minutes, or minutes and seconds within a
// shorter one.
func dayClock(at, length time.Duration) string {
	if length < time.Hour {
		return Clock(at)
	}
	minutes := int(at.Round(time.Minute).Minutes())
	return fmt.Sprintf("%d:%02d", minutes/60, minutes%60)
}

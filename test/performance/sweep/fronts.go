package sweep

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

// Fronts is what was found on one load in one setting: what ours kept and cost, and what
// all others did at their best.
type Fronts struct {
	// Scene says what was replayed on what, and Startup with which start-up time in
	// seconds.
	Scene   string
	Startup float64
	// Ours are the policies that were judged.
	Ours []Judged
	// Points are the fronts of all families, one after the other, in the order of each.
	Points []FrontPoint
	// BoundCost is the cost of the bound, which others are multiples of.
	BoundCost float64
	// Tried is how many settings ran to their end, and GivenUp how many did not.
	Tried, GivenUp int
}

// FrontPoint is one setting of a policy. Its numbers are means over its seeds.
type FrontPoint struct {
	Family, Policy string
	front.Point
	// Noise are the standard errors; NaN with one seed alone.
	Noise front.Point
	Seeds int
	// Rival is set where ours are judged against it, and OnFront where it is on the front of
	// all rivals.
	Rival, OnFront bool
}

// Judged is one of ours against the front of all rivals.
type Judged struct {
	Policy string
	// Noise are the standard errors of what it kept and cost.
	Noise front.Point
	front.Verdict
}

// FrontTable renders ours and the front of all rivals as lines for a terminal.
func FrontTable(f *Fronts) []string {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(policy string, p, noise front.Point, more string) {
		_, _ = fmt.Fprintf(w, "%s\t%.2f%%\t%s\t$%.2f\t%s\t%s\t%s\n", policy, 100*p.Attainment, orUnknown(100*noise.Attainment, 2),
			p.Cost, orUnknown(noise.Cost, 2), orUnknown(p.Cost/f.BoundCost, 3), more)
	}
	_, _ = fmt.Fprintln(w, "POLICY\tMET SLO\t±\tCOST\t±\tx BOUND\tRATIO\t±\tFRONT MEETS\t")
	for i := range f.Ours {
		o := &f.Ours[i]
		line(o.Policy, o.Own, o.Noise, fmt.Sprintf("%s\t%s\t%s\t%s", orUnknown(o.Ratio, 3), orUnknown(o.Verdict.Noise, 3), o.FrontMeets(), remark(o.Place)))
	}
	for _, p := range f.whole() {
		line(p.Policy, p.Point, p.Noise, "")
	}
	_ = w.Flush()
	var lines []string
	for line := range strings.Lines(text.String()) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return append(lines,
		"RATIO: cost over that of the rivals' front at the same attainment. FRONT MEETS: what that front attains at the same cost.",
		fmt.Sprintf("±: standard error over the seeds. %d settings ran to their end, %d were given up as hopeless.", f.Tried, f.GivenUp))
}

// unknown stands for a number that nobody knows.
const unknown = "-"

// FrontMeets is what the rivals' front attains at the same cost, in percent.
func (j *Judged) FrontMeets() string {
	if j.CostPlace == front.Below || j.CostPlace == front.Nowhere {
		return unknown
	}
	return fmt.Sprintf("%.2f%%", 100*j.FrontAttainment)
}

// whole is the front of all rivals, the cheapest point first.
func (f *Fronts) whole() []FrontPoint {
	points := slices.DeleteFunc(slices.Clone(f.Points), func(p FrontPoint) bool { return !p.OnFront })
	slices.SortStableFunc(points, func(a, b FrontPoint) int { return cmp.Compare(a.Cost, b.Cost) })
	return points
}

// remark says what is known of a ratio.
func remark(place front.Place) string {
	switch place {
	case front.Above:
		return "at most: no rival attains as much"
	case front.Below:
		return "at least: all rivals attain more"
	case front.Nowhere:
		return "no rivals"
	case front.Within:
	}
	return ""
}

func orUnknown(value float64, places int) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return unknown
	}
	return strconv.FormatFloat(value, 'f', places, 64)
}

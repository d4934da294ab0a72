package sweep

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
)

//go:embed front.js
var frontScript string

//go:embed front.css
var frontStyle string

// HTML writes what sweeps found as one file that opens without a network: a table of what
// ours are against the fronts, the fronts drawn, and the courses of some runs. A front
// belongs to the runs of the same scene and start-up time, of which it needs one.
func HTML(w io.Writer, title string, fronts []Fronts, runs []report.ReplayRun) error {
	verdicts := report.PageTable{Caption: "Ours against all others at their best", Columns: verdictColumns(), Note: verdictNote}
	var drawn []pageFront
	for i := range fronts {
		f := &fronts[i]
		for k := range f.Ours {
			verdicts.Rows = append(verdicts.Rows, report.PageRow{Run: runOf(runs, f, f.Ours[k].Policy), Kind: "ours", Cells: verdictCells(f, &f.Ours[k])})
		}
		drawn = append(drawn, pageFronts(f)...)
	}
	return report.HTMLOfRuns(w, report.About{Title: title}, runs, report.Beside{Table: verdicts, Data: drawn, Script: frontScript, Style: frontStyle})
}

// runOf is the place of the run of a policy, else of any of the scene, else -1.
func runOf(runs []report.ReplayRun, f *Fronts, policy string) int {
	of := func(r report.ReplayRun) bool { return r.Scene == f.Scene }
	own := func(r report.ReplayRun) bool {
		return of(r) && r.Result.Policy == policy && math.Abs(r.Result.StartupSeconds-f.Startup) < 1e-6
	}
	if i := slices.IndexFunc(runs, own); i >= 0 {
		return i
	}
	return slices.IndexFunc(runs, of)
}

// verdictNote says what the numbers of the table are.
const verdictNote = "The ratio is what ours costs, at its defaults, over what the front of all others costs at the same attainment, each with its best setting for this very load by hindsight. " +
	"± is the standard error over the seeds. Where no other attains as much the ratio is at most so large, against the best of them; where all attain more it is at least so large, against the cheapest."

func verdictColumns() []report.PageColumn {
	return []report.PageColumn{
		{Name: "Policy", Text: true}, {Name: "Start-up"},
		{Group: "Met SLO", Name: "share"}, {Group: "Met SLO", Name: "±"},
		{Group: "Cost", Name: "$"}, {Group: "Cost", Name: "±"}, {Group: "Cost", Name: "× bound"},
		{Group: "Others at their best", Name: "cost", Hint: "of their front at the same attainment"},
		{Group: "Others at their best", Name: "attain", Hint: "what their front attains at the same cost"},
		{Group: "Ratio", Name: "cost"}, {Group: "Ratio", Name: "±"},
		{Name: "", Text: true},
	}
}

func verdictCells(f *Fronts, j *Judged) []report.PageCell {
	number := func(text string, sort float64) report.PageCell {
		if math.IsNaN(sort) || math.IsInf(sort, 0) {
			return report.PageCell{Text: unknown, Sort: -1}
		}
		return report.PageCell{Text: text, Sort: sort}
	}
	attained := func(share float64) report.PageCell { return number(fmt.Sprintf("%.2f%%", 100*share), share) }
	places := func(value float64, n int) report.PageCell { return number(orUnknown(value, n), value) }
	return []report.PageCell{
		{Text: j.Policy}, {Text: report.Duration(time.Duration(f.Startup * float64(time.Second))), Sort: f.Startup},
		attained(j.Own.Attainment), places(100*j.Noise.Attainment, 2),
		places(j.Own.Cost, 2), places(j.Noise.Cost, 2), places(j.Own.Cost/f.BoundCost, 2),
		places(j.FrontCost, 2), attained(j.FrontAttainment),
		places(j.Ratio, 3), places(j.Verdict.Noise, 3), {Text: remark(j.Place)},
	}
}

// pageFront is one front: points by cost, each with its policy.
type pageFront struct {
	Scene   string  `json:"scene,omitempty"`
	Startup float64 `json:"startup"`
	Family  string  `json:"family"`
	// Kind is rival, all (that of all rivals) or aside.
	Kind   string           `json:"kind"`
	Points []pageFrontPoint `json:"points"`
}

type pageFrontPoint struct {
	Policy     string  `json:"policy,omitempty"`
	Attainment float64 `json:"attainment"`
	Cost       float64 `json:"cost"`
	Over       float64 `json:"over"`
}

// pageFronts are the fronts of one load, that of all rivals first.
func pageFronts(f *Fronts) []pageFront {
	point := func(policy string, p front.Point) pageFrontPoint {
		return pageFrontPoint{policy, p.Attainment, p.Cost, p.Cost / f.BoundCost}
	}
	of := func(family, kind string) pageFront {
		return pageFront{Scene: f.Scene, Startup: f.Startup, Family: family, Kind: kind, Points: []pageFrontPoint{}}
	}
	whole := of("all others", "all")
	for _, p := range f.whole() {
		whole.Points = append(whole.Points, point(p.Policy, p.Point))
	}
	var each []pageFront
	for i := range f.Points {
		p := &f.Points[i]
		if n := len(each); n == 0 || each[n-1].Family != p.Family {
			kind := "aside"
			if p.Rival {
				kind = "rival"
			}
			each = append(each, of(p.Family, kind))
		}
		last := &each[len(each)-1]
		last.Points = append(last.Points, point(p.Policy, p.Point))
	}
	out := []pageFront{}
	for _, one := range append([]pageFront{whole}, each...) {
		if len(one.Points) > 0 {
			out = append(out, one)
		}
	}
	return out
}

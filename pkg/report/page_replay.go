package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// ReplayRun is one run of a replay as the page shows it.
type ReplayRun struct {
	// Scene says what was replayed on what, where a page has several of these; runs of
	// one scene are compared with each other.
	Scene  string
	Result replay.Result
	// Recording is the run's course; without one only its numbers are shown.
	Recording *replay.Recording
}

// About says what a page of a replay is about, and how it was made.
type About struct {
	Title string
	// Share is the promised share of the requests; 0 leaves out who wins.
	Share float64
	// Made are lines that say how to make the page again.
	Made []string
}

// HTMLOfReplay writes a replay as one file that opens without a network. A recording belongs
// to the result with the same policy and start-up time; several such pairs go by their order.
func HTMLOfReplay(w io.Writer, about About, results []replay.Result, recordings []replay.Recording) error {
	runs := make([]ReplayRun, len(results))
	used := make([]bool, len(recordings))
	for i := range results {
		runs[i].Result = results[i]
		for j := range recordings {
			r := &recordings[j]
			if !used[j] && r.Policy == results[i].Policy && math.Abs(r.Startup.Seconds()-results[i].StartupSeconds) < 1e-6 {
				runs[i].Recording, used[j] = r, true
				break
			}
		}
	}
	p := replayPage(about.Title, runs)
	p.Made = about.Made
	if about.Share > 0 {
		p.Headline = Headline(results, about.Share)
	}
	return p.write(w)
}

// HTML is HTMLOfReplay with a title alone.
func HTML(w io.Writer, title string, results []replay.Result, recordings []replay.Recording) error {
	return HTMLOfReplay(w, About{Title: title}, results, recordings)
}

// Beside is what a page of runs shows that another package knows.
type Beside struct {
	// Table stands before the others.
	Table PageTable
	// Data is data.beside of the page's script. Script and Style are added to the page's own:
	// the script may set behind (scatter.js).
	Data          any
	Script, Style string
}

// HTMLOfRuns writes runs of one or several scenes as one file that opens without a
// network, and what is known beside them.
func HTMLOfRuns(w io.Writer, about About, runs []ReplayRun, beside Beside) error {
	p := replayPage(about.Title, runs)
	p.Made = about.Made
	p.Data.Beside, p.script, p.style = beside.Data, beside.Script, beside.Style
	p.Tables = append([]PageTable{beside.Table}, p.Tables...)
	return p.write(w)
}

// What keeps a page at a few megabytes, however many runs it shows. A chart is at most
// about 700 pixels wide.
const (
	mostPoints    = 720
	fewestPoints  = 180
	allPoints     = 20 * mostPoints
	mostStepBytes = 3 << 19
)

func replayPage(title string, runs []ReplayRun) page {
	p := page{Title: title, Lead: replayLead(runs), Tables: []PageTable{replayTable(runs)}}
	p.Data.Clusters, p.Data.Runs = [][]pageNode{}, []pageRun{}
	recorded := 0
	for i := range runs {
		if runs[i].Recording != nil {
			recorded++
		}
	}
	limit := max(fewestPoints, min(mostPoints, allPoints/max(1, recorded)))
	steps := mostStepBytes
	factor := 1
	for i := range runs {
		run := pageRunOf(&runs[i])
		if r := runs[i].Recording; r != nil {
			course, merged := courseOf(r, limit, &steps)
			course.Cluster = p.Data.cluster(nodesOf(r.Nodes))
			run.Course, factor = course, max(factor, merged)
		}
		p.Data.Runs = append(p.Data.Runs, run)
	}
	if factor > 1 {
		p.Note = "A point of a chart stands for several steps of the recording: it shows the highest load and latency, the lowest attainment and the mean cost in them."
	}
	return p
}

// replayLead says in one line what the page is about.
func replayLead(runs []ReplayRun) string {
	policies, lengths := map[string]bool{}, time.Duration(0)
	requests := 0
	for i := range runs {
		policies[runs[i].Result.Policy] = true
		requests = max(requests, runs[i].Result.Requests)
		if r := runs[i].Recording; r != nil {
			lengths = max(lengths, r.Length)
		}
	}
	parts := []string{quantity(len(policies), "policy", "policies"), quantity(len(runs), "run", "runs")}
	if requests > 0 {
		parts = append(parts, "up to "+grouped(requests)+" requests each")
	}
	if lengths > 0 {
		parts = append(parts, Duration(lengths.Round(time.Second))+" of traffic")
	}
	return strings.Join(parts, ", ")
}

func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %s", grouped(n), many)
}

func pageRunOf(r *ReplayRun) pageRun {
	result := &r.Result
	run := pageRun{Scene: r.Scene, Policy: result.Policy, Kind: string(replay.KindOf(result.Policy)), Startup: new(result.StartupSeconds)}
	for _, p := range result.Parameters {
		run.Parameters = append(run.Parameters, [2]string{settingOf(replay.KindOf(result.Policy), p.Name), p.Value})
	}
	if result.Requests > 0 {
		run.Attainment = new(rounded(result.Attainment, 6))
	}
	if !result.Unpriced {
		run.Cost = new(digits(result.Cost, 6))
	}
	if result.CostOverBound > 0 {
		run.Over = new(digits(result.CostOverBound, 5))
	}
	return run
}

func nodesOf(recorded []replay.RecordedNode) []pageNode {
	nodes := make([]pageNode, 0, len(recorded))
	for _, n := range recorded {
		nodes = append(nodes, pageNode{Name: n.Name, Accelerator: string(n.Accelerator), Devices: n.Devices, Others: n.Others})
	}
	return nodes
}

// courseOf is the course of a run with at most limit points per model, and how many
// samples a point stands for. steps is how many bytes the steps of decisions may still
// take.
func courseOf(r *replay.Recording, limit int, steps *int) (course *pageCourse, factor int) {
	course = &pageCourse{Length: seconds(r.Length), Models: []pageModel{}, Variants: []pageVariant{}, Decisions: []pageDecision{}}
	first := make([]int, len(r.Models))
	index := map[string]int{}
	factor = 1
	for m := range r.Models {
		recorded := &r.Models[m]
		points, merged := thinned(pointsOf(recorded.Samples, r.Step), limit)
		factor = max(factor, merged)
		model := pageModel{ID: recorded.ID, TTFT: float64(recorded.SLO.TTFT), ITL: float64(recorded.SLO.ITL)}
		model.course(points, r.Step*time.Duration(merged))
		if slices.ContainsFunc(recorded.Variants, func(v replay.RecordedVariant) bool { return v.Unpriced }) {
			model.CostRate, model.BoundRate = nil, nil
		}
		course.Models = append(course.Models, model)
		first[m] = len(course.Variants)
		for i := range recorded.Variants {
			v := &recorded.Variants[i]
			index[v.Name] = len(course.Variants)
			course.Variants = append(course.Variants, variantOf(v, m, r.Step))
		}
	}
	moves := make([]move, 0, len(r.Moves))
	for _, m := range r.Moves {
		moves = append(moves, move{at: m.At, variant: first[m.Variant.Model] + m.Variant.Variant, node: m.Node, replica: m.Replica, stage: m.Stage})
	}
	course.Lives = lives(moves, course.Variants)
	for i := range r.Decisions {
		course.Decisions = append(course.Decisions, decisionOf(&r.Decisions[i], index, steps))
	}
	return course, factor
}

func pointsOf(samples []replay.Sample, step time.Duration) []point {
	points := make([]point, 0, len(samples))
	for _, s := range samples {
		p := point{
			load: float64(s.Requests) / step.Seconds(), met: math.NaN(),
			ttft: positive(s.TTFT), itl: positive(s.ITL), cost: s.Cost, bound: s.Bound,
		}
		if s.Requests > 0 {
			p.met = float64(s.Met) / float64(s.Requests)
		}
		points = append(points, p)
	}
	return points
}

func positive(value float64) float64 {
	if value > 0 {
		return value
	}
	return math.NaN()
}

func variantOf(v *replay.RecordedVariant, model int, step time.Duration) pageVariant {
	out := pageVariant{
		Name: v.Name, Model: model, Accelerator: string(v.Accelerator), Devices: v.Devices, T: []float64{}, Wanted: []int{}, Ready: []int{},
	}
	if !v.Unpriced {
		out.Cost = new(digits(float64(v.Cost), 6))
	}
	for i := range v.Wanted {
		// The replicas are those at the end of the step; before the first end nothing is
		// known, and the picture begins with them.
		t := seconds(step * time.Duration(i+1))
		if i == 0 {
			t = 0
		}
		out.add(t, v.Wanted[i], v.Ready[i])
	}
	return out
}

// longestDetail is where the text of a decision is cut, in characters.
const longestDetail = 400

func decisionOf(d *replay.RecordedDecision, index map[string]int, steps *int) pageDecision {
	out := pageDecision{
		T: rounded(d.At.Seconds(), 1), Variant: -1, From: d.From, To: d.To,
		Reason: string(d.Reason), Message: cut(sentence.Of(d.Message), longestDetail),
	}
	if i, ok := index[d.Variant]; ok {
		out.Variant = i
	}
	for _, s := range d.Steps {
		// When there are too many, those that changed nothing go first.
		if *steps <= 0 || *steps < mostStepBytes/2 && s.Before == s.After {
			continue
		}
		step := pageStep{Stage: string(s.Stage), Reason: string(s.Reason), Detail: cut(sentence.Of(s.Detail), longestDetail), Before: s.Before, After: s.After}
		*steps -= len(step.Stage) + len(step.Reason) + len(step.Detail) + 20
		out.Steps = append(out.Steps, step)
	}
	return out
}

// replayTable is the numbers of all runs.
func replayTable(runs []ReplayRun) PageTable {
	t := PageTable{Caption: "What each policy cost and kept", Columns: replayColumns()}
	scenes, results := false, make([]replay.Result, len(runs))
	for i := range runs {
		scenes = scenes || runs[i].Scene != ""
	}
	if scenes {
		t.Columns = append(t.Columns, PageColumn{Name: "Scene", Text: true})
	}
	for i := range runs {
		row := PageRow{Run: i, Kind: string(replay.KindOf(runs[i].Result.Policy)), Cells: replayCells(&runs[i].Result)}
		if scenes {
			row.Cells = append(row.Cells, PageCell{Text: runs[i].Scene})
		}
		t.Rows = append(t.Rows, row)
		if r := &runs[i].Result; r.BreaksPromise() {
			t.Note = brokenMark + " " + r.Policy + ": " + brokenText + ". "
		}
		results[i] = runs[i].Result
	}
	t.Note = strings.TrimSuffix(t.Note+tooLongNote(results), ". ")
	return t
}

func replayColumns() []PageColumn {
	return []PageColumn{
		{Name: "Policy", Text: true},
		{Name: "Start-up", Hint: "mean time from the moment that a node holds a replica until it serves"},
		{Name: "Met SLO", Hint: "share of all requests within the TTFT and the ITL target"},
		{Name: "Failed", Hint: "requests that never got their last token"},
		{Name: "Cost"},
		{Name: "× bound", Hint: "cost as a multiple of the bound: the least price of the load, in parts of replicas"},
		{Group: "TTFT", Name: "p50"}, {Group: "TTFT", Name: "p95"}, {Group: "TTFT", Name: "p99"},
		{Group: "ITL", Name: "p50"}, {Group: "ITL", Name: "p95"}, {Group: "ITL", Name: "p99"},
		{Group: "Hours", Name: "replica", Hint: "from the moment that a node holds a replica until it has left"},
		{Group: "Hours", Name: "GPU"},
		{Name: "Scale events", Hint: "how often the wanted replicas of a variant changed"},
		{Name: "Flips", Hint: "changes that went the other way than the variant's change before"},
		{Name: "Under-provisioned", Hint: "time in which the serving replicas could not keep the SLO at that minute's mean load"},
		{Name: "Unplaceable", Hint: "the most replicas at one time that were asked for and fitted on no node"},
		{Name: "Requests"},
	}
}

func replayCells(r *replay.Result) []PageCell {
	over, met := PageCell{Text: unknown, Sort: math.MaxFloat64}, PageCell{Text: unknown, Sort: -1}
	if r.CostOverBound > 0 {
		over = PageCell{Text: fmt.Sprintf("%.2f", r.CostOverBound), Sort: r.CostOverBound}
	}
	if r.Requests > 0 {
		met = PageCell{Text: attained(r.Attainment) + markOf(r), Sort: r.Attainment}
	}
	cost := PageCell{Text: "$" + decimals(r.Cost, 2), Sort: r.Cost}
	if r.Unpriced {
		cost = PageCell{Text: unknown, Sort: r.GPUHours}
	}
	count := func(n int) PageCell { return PageCell{Text: grouped(n), Sort: float64(n)} }
	ms := func(value float64) PageCell {
		if value <= 0 {
			return PageCell{Text: unknown, Sort: -1}
		}
		return PageCell{Text: latency(&value), Sort: value}
	}
	hours := func(value float64) PageCell { return PageCell{Text: decimals(value, 1), Sort: value} }
	return []PageCell{
		{Text: r.Policy}, {Text: spokenSeconds(r.StartupSeconds), Sort: r.StartupSeconds},
		met, count(r.Failed), cost, over,
		ms(r.TTFT.P50), ms(r.TTFT.P95), ms(r.TTFT.P99), ms(r.ITL.P50), ms(r.ITL.P95), ms(r.ITL.P99),
		hours(r.ReplicaHours), hours(r.GPUHours),
		count(r.ScaleEvents), count(r.Flips),
		{Text: spokenSeconds(math.Round(r.UnderProvisionedSeconds)), Sort: r.UnderProvisionedSeconds}, count(r.UnplaceableReplicas),
		count(r.Requests),
	}
}

func spokenSeconds(s float64) string { return Duration(time.Duration(s * float64(time.Second))) }

// attained shows a share in per cent, rounded down: 100 % is all of them.
func attained(share float64) string {
	return fmt.Sprintf("%.2f%%", math.Floor(share*1e4+1e-6)/100)
}

// grouped writes a number with a comma before every three digits.
func grouped(n int) string { return decimals(float64(n), 0) }

// decimals is grouped with digits after the point.
func decimals(value float64, places int) string {
	text := fmt.Sprintf("%.*f", places, math.Abs(value))
	whole, fraction, _ := strings.Cut(text, ".")
	var b strings.Builder
	if value < 0 {
		b.WriteByte('-')
	}
	for i, digit := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(digit)
	}
	if fraction != "" {
		b.WriteString("." + fraction)
	}
	return b.String()
}

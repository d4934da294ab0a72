package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// DemoHTML writes a run of the demo as one file that opens without a network.
func DemoHTML(w io.Writer, o Observation) error { return demoPage(o).write(w) }

func demoPage(o Observation) page {
	demo := New(o)
	p := page{
		Title: "The demo's report",
		Lead: fmt.Sprintf("%s of traffic (%s), Kubernetes %s: %s requests, %s completed, %s failed; %s", Clock(demo.duration()), demo.traffic(),
			demo.KubernetesVersion, grouped(demo.Requests.Total), grouped(demo.Requests.Completed), grouped(demo.Requests.Failed), demo.sizing()),
		Tables: []PageTable{modelTable(demo), variantTable(demo)},
	}
	if t := comparisonTable(demo); len(t.Rows) > 0 {
		p.Tables = append(p.Tables, t)
	}
	course := demoCourse(o, demo)
	nodes := make([]pageNode, 0, len(o.Nodes))
	for _, n := range o.Nodes {
		nodes = append(nodes, pageNode{Name: n.Name, Accelerator: string(n.Accelerator), Devices: n.Devices})
	}
	course.Cluster = p.Data.cluster(nodes)
	p.Data.Runs = []pageRun{{Policy: "the autoscaler", Kind: string(replay.KindOurs), Course: course}}
	return p
}

func modelTable(d Demo) PageTable {
	t := PageTable{Caption: "What the clients got", Columns: []PageColumn{
		{Name: "Model", Text: true},
		{Name: "Met SLO", Hint: "share of all requests within the TTFT and the ITL target"},
		{Name: "Warm", Hint: "of those that arrived after the first scale-up's replicas were Ready"},
		{Group: "TTFT", Name: "target"}, {Group: "TTFT", Name: "p50"}, {Group: "TTFT", Name: "p95"}, {Group: "TTFT", Name: "p99"},
		{Group: "ITL", Name: "target"}, {Group: "ITL", Name: "p50"}, {Group: "ITL", Name: "p95"}, {Group: "ITL", Name: "p99"},
	}}
	met := func(value *float64) PageCell {
		if value == nil {
			return PageCell{Text: unknown, Sort: -1}
		}
		return PageCell{Text: attained(*value), Sort: *value}
	}
	ms := func(value *float64) PageCell {
		if value == nil {
			return PageCell{Text: unknown, Sort: -1}
		}
		return PageCell{Text: latency(value), Sort: *value}
	}
	for _, m := range d.Models {
		t.Rows = append(t.Rows, PageRow{Run: -1, Key: m.Model, Cells: []PageCell{
			{Text: m.Model}, met(m.Attainment), met(m.AttainmentWarm),
			ms(&m.SLO.TTFT), ms(m.TTFT.P50), ms(m.TTFT.P95), ms(m.TTFT.P99),
			ms(&m.SLO.ITL), ms(m.ITL.P50), ms(m.ITL.P95), ms(m.ITL.P99),
		}})
	}
	return t
}

// comparisonTable is what this autoscaler and an HPA do in virtual time; without rows where
// nobody compared.
func comparisonTable(d Demo) PageTable {
	t := PageTable{Caption: "The same traffic in virtual time, beside a HorizontalPodAutoscaler", Columns: []PageColumn{
		{Name: "Model", Text: true},
		{Group: "This autoscaler", Name: "met SLO"}, {Group: "This autoscaler", Name: "cost", Hint: "as a multiple of the least price of the load, in parts of replicas"},
		{Group: "HPA", Name: "met SLO"}, {Group: "HPA", Name: "cost", Hint: "as a multiple of the least price of the load, in parts of replicas"},
		{Group: "HPA", Name: "setting", Hint: "the best for this traffic, found by hindsight", Text: true},
	}}
	for _, m := range d.Models {
		if c := m.Comparison; c != nil {
			row := PageRow{Run: -1, Key: m.Model, Cells: []PageCell{{Text: m.Model}}}
			for _, one := range []Compared{c.Own, c.HPA} {
				row.Cells = append(row.Cells, PageCell{Text: attained(one.Attainment), Sort: one.Attainment},
					PageCell{Text: fmt.Sprintf("%.2f", one.CostOverBound), Sort: one.CostOverBound})
			}
			row.Cells = append(row.Cells, PageCell{Text: c.HPA.Policy})
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

func variantTable(d Demo) PageTable {
	t := PageTable{Caption: "What the variants did and cost", Columns: []PageColumn{
		{Name: "Variant", Text: true}, {Name: "Takes", Text: true}, {Name: "Cost per hour", Hint: "of one replica"},
		{Group: "Replicas", Name: "most"}, {Group: "Replicas", Name: "last"},
		{Name: "Writes", Hint: "changes of the target's replicas"}, {Name: "GPU-hours"}, {Name: "Cost"},
		{Name: "Model", Text: true},
	}}
	for _, v := range d.Variants {
		cells := v.cells()
		row := PageRow{Run: -1, Key: v.Name, Cells: []PageCell{{Text: v.Name}, {Text: cells[1].text}, {Text: cells[2].text, Sort: v.CostPerReplicaHour}}}
		for i, sort := range []float64{float64(most(v)), float64(last(v)), float64(v.ScaleWrites), v.GPUHours, v.Cost} {
			row.Cells = append(row.Cells, PageCell{Text: cells[3+i].text, Sort: sort})
		}
		row.Cells = append(row.Cells, PageCell{Text: v.Model})
		t.Rows = append(t.Rows, row)
	}
	return t
}

func most(v Variant) int {
	n := 0
	for _, p := range v.Replicas {
		n = max(n, p.Desired)
	}
	return n
}

func last(v Variant) int {
	if len(v.Replicas) == 0 {
		return 0
	}
	return v.Replicas[len(v.Replicas)-1].Desired
}

// demoSteps are the steps that the charts of a demo may have: the first one that cuts
// the run into at most demoPoints.
var demoSteps = []time.Duration{
	2 * time.Second, 5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute,
}

const demoPoints = 150

func demoStep(length time.Duration) time.Duration {
	for _, step := range demoSteps {
		if length <= demoPoints*step {
			return step
		}
	}
	return demoSteps[len(demoSteps)-1]
}

func demoCourse(o Observation, demo Demo) *pageCourse {
	course := &pageCourse{Length: seconds(o.End), Models: []pageModel{}, Variants: []pageVariant{}, Decisions: []pageDecision{}}
	step := demoStep(o.End)
	models, variants, nodes := map[string]int{}, map[string]int{}, map[string]int{}
	for i, m := range o.Models {
		models[m.ID] = i
	}
	for i, v := range demo.Variants {
		variants[v.Name] = i
		out := pageVariant{
			Name: v.Name, Model: models[v.Model], Accelerator: v.Accelerator, Devices: v.AcceleratorCount, Cost: new(digits(v.CostPerReplicaHour, 6)),
			T: []float64{}, Wanted: []int{}, Ready: []int{},
		}
		for _, p := range v.Replicas {
			out.add(p.T, p.Desired, p.Ready)
		}
		course.Variants = append(course.Variants, out)
	}
	for i, n := range o.Nodes {
		nodes[n.Name] = i
	}
	for i, m := range o.Models {
		model := pageModel{ID: m.ID, TTFT: float64(m.SLO.TTFT), ITL: float64(m.SLO.ITL)}
		points := demoPointsOf(o, m, step)
		for j := range points {
			// The last step may be shorter; its middle is what it is judged at.
			end := min(time.Duration(j+1)*step, o.End)
			points[j].cost = costAt(o.Variants, i, models, end-1)
			if n := len(m.Bound); n > 0 {
				points[j].bound = float64(m.Bound[min(int(max(0, end-1)/time.Minute), n-1)])
			}
		}
		model.course(points, step)
		course.Models = append(course.Models, model)
	}
	course.Lives = lives(demoMoves(o, variants, nodes), course.Variants)
	for _, d := range demo.Decisions {
		course.Decisions = append(course.Decisions, demoDecision(d, variants))
	}
	return course
}

// demoPointsOf is what happened to the requests of a model that arrived in each step.
func demoPointsOf(o Observation, m ObservedModel, step time.Duration) []point {
	n := int((o.End + step - 1) / step)
	outcomes, arrived := make([][]Outcome, n), make([]int, n)
	for _, outcome := range o.Outcomes {
		if i := int(outcome.Arrived / step); outcome.Model == m.ID && outcome.Arrived >= 0 && i < n {
			outcomes[i] = append(outcomes[i], outcome)
			arrived[i]++
		}
	}
	if m.Arrivals != nil {
		arrived = make([]int, n)
	}
	for _, at := range m.Arrivals {
		if i := int(at / step); at >= 0 && at < o.End {
			arrived[i]++
		}
	}
	points := make([]point, n)
	for i, own := range outcomes {
		length := min(step, o.End-time.Duration(i)*step)
		points[i] = point{load: float64(arrived[i]) / length.Seconds(), met: math.NaN(), ttft: math.NaN(), itl: math.NaN()}
		var ttft, itl []float64
		for _, outcome := range own {
			if !outcome.Completed {
				continue
			}
			ttft = append(ttft, float64(outcome.TTFT))
			if each, further := outcome.ITL(); further {
				itl = append(itl, float64(each))
			}
		}
		if met := Attainment(own, m.SLO); met != nil {
			points[i].met = *met
		}
		if p := percentiles(ttft).P95; p != nil {
			points[i].ttft = *p
		}
		if p := percentiles(itl).P95; p != nil {
			points[i].itl = *p
		}
	}
	return points
}

// costAt is what the pods of a model that hold a node at an instant cost per hour.
func costAt(variants []ObservedVariant, model int, models map[string]int, at time.Duration) float64 {
	cost := capacity.Cost(0)
	for _, v := range variants {
		if models[v.Model] != model {
			continue
		}
		for _, held := range v.Held {
			if held.From <= at && (held.Open || at < held.To) {
				cost += v.Cost
			}
		}
	}
	return float64(cost)
}

func demoMoves(o Observation, variants, nodes map[string]int) []move {
	moves := make([]move, 0, len(o.Moves))
	for _, m := range o.Moves {
		v, known := variants[m.Variant]
		if !known || m.At > o.End {
			continue
		}
		node, held := nodes[m.Node]
		if !held {
			node = -1
		}
		moves = append(moves, move{at: m.At, variant: v, node: node, replica: m.Pod, stage: m.Stage})
	}
	slices.SortStableFunc(moves, func(a, b move) int { return int(a.at - b.at) })
	return withoutPast(moves)
}

// withoutPast leaves out the replicas that were gone before the start.
func withoutPast(moves []move) []move {
	past := map[string]bool{}
	for _, m := range moves {
		if m.stage == simulation.Gone && m.at <= 0 {
			past[m.replica] = true
		}
	}
	return slices.DeleteFunc(moves, func(m move) bool { return past[m.replica] })
}

func demoDecision(d Decision, variants map[string]int) pageDecision {
	reason, message, _ := strings.Cut(d.Reason, ": ")
	out := pageDecision{T: rounded(max(0, d.T), 1), Variant: -1, From: d.From, To: d.To, Reason: reason, Message: cut(message, longestDetail)}
	if i, ok := variants[d.Variant]; ok {
		out.Variant = i
	}
	return out
}

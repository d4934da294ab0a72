package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// DashboardFeed is the state of a live cluster.
func DashboardFeed(d *Dashboard) Feed {
	course, replicas := dashboardCourse(d)
	p := page{
		Title:  "Variants, live",
		Lead:   d.Where,
		Tables: []pageTable{dashboardModels(d, course, replicas), dashboardVariants(d, course, replicas)},
	}
	p.Data.Live = &pageLive{State: "Live", Every: d.Every.Seconds(), Notes: d.Notes}
	nodes := make([]pageNode, 0, len(d.Nodes))
	for _, n := range d.Nodes {
		nodes = append(nodes, pageNode{Name: n.Name, Accelerator: string(n.Accelerator), Devices: n.Devices, Others: n.Others, Out: n.Out})
	}
	course.Cluster = p.Data.cluster(nodes)
	p.Data.Runs = []pageRun{{Policy: "the autoscaler", Kind: string(replay.KindOurs), Course: course}}
	return Feed{p}
}

// dashboardCourse is the course of everything, and how many replicas of each variant cost
// something now.
func dashboardCourse(d *Dashboard) (course *pageCourse, replicas []float64) {
	course = &pageCourse{
		Start: d.Start.Unix(), Length: seconds(d.Now),
		Models: []pageModel{}, Variants: []pageVariant{}, Decisions: []pageDecision{},
	}
	models, variants, nodes := map[string]int{}, map[string]int{}, map[string]int{}
	for i, m := range d.Models {
		models[m.Key] = i
	}
	for i := range d.Variants {
		v := &d.Variants[i]
		variants[v.Key] = i
		out := pageVariant{
			Name: v.Key, Model: models[v.Model], Accelerator: string(v.Accelerator), Devices: v.Devices,
			T: []float64{}, Wanted: []int{}, Ready: []int{},
		}
		if v.Cost != nil {
			out.Cost = digits(*v.Cost, 6)
		}
		for _, s := range v.Replicas {
			out.add(rounded(max(0, s.At.Seconds()), 1), s.Desired, s.Ready)
		}
		course.Variants = append(course.Variants, out)
	}
	for i, n := range d.Nodes {
		nodes[n.Name] = i
	}
	held := holdings(d, variants)
	costs := dashboardCosts(d, held, models)
	for i, m := range d.Models {
		model := pageModel{ID: m.Key, TTFT: float64(m.SLO.TTFT), ITL: float64(m.SLO.ITL), Step: seconds(m.Step),
			Load: []*float64{}, TTFTs: []*float64{}, ITLs: []*float64{}, CostRate: costs[i]}
		if m.Step > 0 {
			model.CostFrom = int(d.Since / m.Step)
		}
		if m.SLO.TTFT > 0 || m.SLO.ITL > 0 {
			model.Met, model.MetAtLeast = make([]*float64, len(m.Points)), true
		}
		for at, p := range m.Points {
			if model.MetAtLeast {
				model.Met[at] = drawn(p.attained(m.SLO))
			}
			model.Load, model.TTFTs, model.ITLs = append(model.Load, drawn(p.Rate)), append(model.TTFTs, drawn(p.TTFT)), append(model.ITLs, drawn(p.ITL))
		}
		course.Models = append(course.Models, model)
	}
	course.Lives = lives(demoMoves(Observation{End: d.Now, Moves: d.Moves}, variants, nodes), course.Variants)
	for _, one := range d.Decisions {
		course.Decisions = append(course.Decisions, dashboardDecision(one, variants))
	}
	return course, paid(d, held, course.Variants)
}

// drawn keeps the digits that a chart can show.
func drawn(value *float64) *float64 {
	if value == nil {
		return nil
	}
	return orNull(*value, 4)
}

// holding is a pod that holds a node from one instant to another.
type holding struct {
	variant  int
	from, to time.Duration
}

// holdings are the pods that hold a node, or have held one.
func holdings(d *Dashboard, variants map[string]int) []holding {
	var all []holding
	held := map[string]int{}
	for _, m := range d.Moves {
		v, known := variants[m.Variant]
		i, seen := held[m.Pod]
		switch {
		case !known:
		case seen && m.Stage == simulation.Gone:
			all[i].to = m.At
		case !seen && m.Node != "" && m.Stage != simulation.Gone:
			held[m.Pod] = len(all)
			all = append(all, holding{variant: v, from: m.At, to: math.MaxInt64})
		}
	}
	return all
}

// dashboardCosts are what the pods that hold a node cost per hour, by model and step; nil
// where the pods are not known.
func dashboardCosts(d *Dashboard, held []holding, models map[string]int) [][]float64 {
	costs := make([][]float64, len(d.Models))
	if !d.PodsKnown {
		return costs
	}
	for i, m := range d.Models {
		// The points of the load may end before now; what holds a node is known until now.
		if m.Step > 0 {
			costs[i] = make([]float64, int((d.Now+m.Step-1)/m.Step))
		}
	}
	for _, one := range held {
		v := &d.Variants[one.variant]
		model, known := models[v.Model]
		if !known || v.Cost == nil || d.Models[model].Step <= 0 {
			continue
		}
		step := d.Models[model].Step
		for i := max(0, int(one.from/step)); i < len(costs[model]); i++ {
			// A step counts a pod that is there at its end.
			end := min(time.Duration(i+1)*step-1, d.Now)
			if end >= one.to {
				break
			}
			if end >= one.from {
				costs[model][i] += *v.Cost / float64(max(1, v.Pods))
			}
		}
	}
	for _, model := range costs {
		for i := range model {
			model[i] = digits(model[i], 5)
		}
	}
	return costs
}

// paid are the replicas of each variant that cost something: those that hold a node, or
// where the pods are not known those that are ready.
func paid(d *Dashboard, held []holding, variants []pageVariant) []float64 {
	counts := make([]float64, len(d.Variants))
	for _, one := range held {
		if one.from <= d.Now && d.Now < one.to {
			counts[one.variant] += 1 / float64(max(1, d.Variants[one.variant].Pods))
		}
	}
	for i := range counts {
		if !d.PodsKnown {
			_, ready := lastReplicas(&variants[i])
			counts[i] = float64(ready)
		}
	}
	return counts
}

func dashboardDecision(d DashboardDecision, variants map[string]int) pageDecision {
	out := pageDecision{T: rounded(max(0, d.At.Seconds()), 1), Variant: -1, From: d.From, To: d.To, Reason: d.Reason, Message: cut(d.Message, longestDetail)}
	if i, ok := variants[d.Variant]; ok {
		out.Variant = i
	} else {
		out.Message = d.Variant + ": " + out.Message
	}
	for _, s := range d.Steps {
		out.Steps = append(out.Steps, pageStep{Stage: s.Stage, Reason: s.Reason, Detail: cut(s.Detail, longestDetail), Before: s.Before, After: s.After})
	}
	return out
}

// The cells of the dashboard's tables. What is unknown comes first where a column is
// sorted by its numbers.

func countCell(n *int32) pageCell {
	if n == nil {
		return pageCell{Text: unknown, Sort: -1}
	}
	return pageCell{Text: fmt.Sprint(*n), Sort: float64(*n)}
}

func numberCell(value *float64, text func(*float64) string) pageCell {
	if value == nil {
		return pageCell{Text: unknown, Sort: -1}
	}
	return pageCell{Text: text(value), Sort: *value}
}

func priceOf(value *float64) string { return money(*value) }

func attainedOf(value *float64) string { return attained(*value) }

// promised is a latency beside its target.
func promised(value *float64, target float64) pageCell {
	cell := numberCell(value, latency)
	cell.Bad = exceeds(value, target)
	return cell
}

func targetCell(target float64) pageCell {
	if target <= 0 {
		return pageCell{Text: unknown, Sort: -1}
	}
	return pageCell{Text: latency(&target), Sort: target}
}

// replicaSums are the replicas and the price of the variants of a model.
type replicaSums struct {
	variants, wanted, ready int
	cost                    float64
	// unpriced says that a variant with replicas has no price that is known.
	unpriced bool
}

func dashboardModels(d *Dashboard, course *pageCourse, replicas []float64) pageTable {
	t := pageTable{Caption: "Models: load and SLO", Columns: []pageColumn{
		{Name: "Model", Text: true},
		{Name: "Requests/s", Hint: "the load in the last minute"},
		{Group: "TTFT", Name: "target"}, {Group: "TTFT", Name: "p95", Hint: "of the last minute"}, {Group: "TTFT", Name: "within", Hint: "share of the last minute's requests within the target"},
		{Group: "ITL", Name: "target"}, {Group: "ITL", Name: "p95", Hint: "of the last minute"}, {Group: "ITL", Name: "within", Hint: "share of the last minute's requests within the target; of their tokens, where the servers count only those"},
		{Name: "Waiting", Hint: "requests in the queues of the replicas and of the gateway"},
		{Group: "Replicas", Name: "wanted"}, {Group: "Replicas", Name: "ready"},
		{Name: "Cost per hour", Hint: "of the replicas that hold a node"},
		{Name: "Variants"},
		{Name: "Service class", Text: true},
	}}
	sums := map[string]*replicaSums{}
	for i := range d.Variants {
		v := &d.Variants[i]
		sum := cmp.Or(sums[v.Model], &replicaSums{})
		sums[v.Model] = sum
		wanted, ready := lastReplicas(&course.Variants[i])
		sum.variants++
		sum.wanted += wanted
		sum.ready += ready
		if v.Cost != nil {
			sum.cost += *v.Cost * replicas[i]
		} else if replicas[i] > 0 {
			sum.unpriced = true
		}
	}
	for i, m := range d.Models {
		sum := cmp.Or(sums[m.Key], &replicaSums{})
		now := LoadPoint{}
		if n := len(m.Points); n > 0 {
			now = m.Points[n-1]
		}
		cost := pageCell{Text: unknown, Sort: -1}
		if !sum.unpriced {
			cost = pageCell{Text: money(sum.cost), Sort: sum.cost}
		}
		t.Rows = append(t.Rows, pageRow{Run: -1, Model: new(i), Key: m.Key, Cells: []pageCell{
			{Text: m.Key}, numberCell(now.Rate, number),
			targetCell(float64(m.SLO.TTFT)), promised(now.TTFT, float64(m.SLO.TTFT)), numberCell(now.WithinTTFT, attainedOf),
			targetCell(float64(m.SLO.ITL)), promised(now.ITL, float64(m.SLO.ITL)), numberCell(now.WithinITL, attainedOf),
			numberCell(m.Waiting, rounding),
			{Text: fmt.Sprint(sum.wanted), Sort: float64(sum.wanted)}, {Text: fmt.Sprint(sum.ready), Sort: float64(sum.ready)},
			cost, {Text: fmt.Sprint(sum.variants), Sort: float64(sum.variants)}, {Text: cmp.Or(m.Class, unknown)},
		}})
	}
	return t
}

func rounding(value *float64) string { return fmt.Sprintf("%.0f", *value) }

// lastReplicas are the wanted and the ready replicas now.
func lastReplicas(v *pageVariant) (wanted, ready int) {
	if n := len(v.T); n > 0 {
		return v.Wanted[n-1], v.Ready[n-1]
	}
	return 0, 0
}

func dashboardVariants(d *Dashboard, course *pageCourse, replicas []float64) pageTable {
	t := pageTable{Caption: "Variants: replicas and cost", Columns: []pageColumn{
		{Name: "Variant", Text: true}, {Name: "Takes", Text: true},
		{Group: "Replicas", Name: "wanted", Hint: "by the last decision"}, {Group: "Replicas", Name: "asked for", Hint: "by the scale target"},
		{Group: "Replicas", Name: "ready"}, {Group: "Replicas", Name: "pending"},
		{Name: "Fit", Hint: "how many more replicas fit on the cluster"},
		{Group: "Cost per hour", Name: "one"}, {Group: "Cost per hour", Name: "all", Hint: "of the replicas that hold a node"},
		{Name: "KV use", Hint: "mean use of the KV caches"}, {Name: "Waiting", Hint: "requests in the queues of the replicas"},
		{Name: "State", Hint: "the condition that matters most", Text: true}, {Name: "Last decision", Text: true},
		{Name: "Model", Text: true},
	}}
	for i := range d.Variants {
		v := &d.Variants[i]
		_, ready := lastReplicas(&course.Variants[i])
		all := pageCell{Text: unknown, Sort: -1}
		if v.Cost != nil {
			all = pageCell{Text: money(*v.Cost * replicas[i]), Sort: *v.Cost * replicas[i]}
		}
		state := pageCell{Text: v.State, Hint: v.Message, Bad: v.Message != ""}
		t.Rows = append(t.Rows, pageRow{Run: -1, Model: new(course.Variants[i].Model), Key: v.Key, Cells: []pageCell{
			{Text: v.Key}, {Text: cmp.Or(v.Shape, unknown)}, countCell(v.Wanted), countCell(v.Current),
			{Text: fmt.Sprint(ready), Sort: float64(ready)}, countCell(v.Pending), v.fit(),
			numberCell(v.Cost, priceOf), all,
			numberCell(v.KVUse, share), numberCell(v.Waiting, rounding), state, {Text: cmp.Or(v.Reason, unknown)}, {Text: v.Model},
		}})
	}
	return t
}

// fit is how many more replicas fit.
func (v *DashboardVariant) fit() pageCell {
	cell := countCell(v.Fit)
	if v.Fit != nil && v.FitIsBound {
		cell.Text = "<=" + cell.Text
	}
	return cell
}

// SortDecisions brings decisions into the order of time.
func SortDecisions(all []DashboardDecision) {
	slices.SortStableFunc(all, func(a, b DashboardDecision) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Variant, b.Variant))
	})
}

package rival

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// The published thresholds of load mode without a model of the engine: the use of the KV
// cache, with the prompts that wait, above which one more engine is wanted, and below which
// one less.
const (
	throughputUp, throughputDown = 1.0, 0.6
	latencyUp, latencyDown       = 0.4, 0.1
)

// react is load mode: one engine more, one less, or what there is. It decides nothing while
// an earlier step is under way or an engine does not report.
func (p *planner) react(m int, variant *replay.VariantView, reports []engineReport) (int, bool) {
	n, k := len(reports), &p.models[m]
	if n == 0 || n != variant.Ready() || n != variant.Replicas {
		return 0, false
	}
	var wanted int
	if p.target == plannerSLA {
		step, known := p.step(m, reports)
		if !known {
			return 0, false
		}
		wanted = step
	} else {
		wanted = n + thresholdStep(reports, k.bounds.cache, p.target == plannerLatency)
	}
	if p.mode == plannerBoth {
		wanted = max(wanted, k.floor)
	}
	return wanted, true
}

// thresholdStep is the step by the thresholds: up where any engine is above, down where all
// of several are below. An unknown cache allows none.
func thresholdStep(reports []engineReport, cache float64, latency bool) int {
	up, down := throughputUp, throughputDown
	if latency {
		up, down = latencyUp, latencyDown
	}
	use := func(r engineReport) float64 { return (r.cached + r.queued) / cache }
	switch {
	case cache <= 0:
		return 0
	case slices.ContainsFunc(reports, func(r engineReport) bool { return use(r) > up }):
		return 1
	case len(reports) > 1 && !slices.ContainsFunc(reports, func(r engineReport) bool { return use(r) >= down }):
		return -1
	}
	return 0
}

// step is what the estimated latencies ask for: one more where all engines miss the target
// of the first token or all miss that of the further ones; one less where each that stays
// would keep both after it took over its part of what the one that goes has. False while
// the model of the engine is not ready.
func (p *planner) step(m int, reports []engineReport) (int, bool) {
	k, n := &p.models[m], len(reports)
	if !k.engine.ready() {
		return 0, false
	}
	grow := 1.0
	if n > 1 {
		grow = float64(n) / float64(n-1)
	}
	slowFirst, slowNext, spare := true, true, n > 1
	for _, r := range reports {
		first, _ := k.engine.firstToken(r.queued, r.cached, float64(k.bounds.budget))
		slowFirst = slowFirst && first > p.ttft[m]
		slowNext = slowNext && k.engine.betweenTokens(r.cached) > p.itl[m]
		spare = spare && p.sparesFirst(m, r, grow) && p.sparesNext(m, r, grow)
	}
	switch {
	case slowFirst || slowNext:
		return n + 1, true
	case spare:
		return n - 1, true
	}
	return n, true
}

// sparesFirst reports whether an engine that takes over its part keeps the target of the
// first token: what the queue adds to a request's own time has to stay below the
// sensitivity's share of what the target leaves for it.
func (p *planner) sparesFirst(m int, r engineReport, grow float64) bool {
	k := &p.models[m]
	cached, budget := math.Trunc(r.cached*grow), float64(k.bounds.budget)
	own, _ := k.engine.firstToken(0, cached, budget)
	with, _ := k.engine.firstToken(math.Trunc(r.queued*grow), cached, budget)
	room := (p.ttft[m] - own) * p.sensitivity
	return room > 0 && with-own < room
}

// sparesNext reports whether such an engine has room in its cache, and keeps the
// sensitivity's share of the target of the further tokens.
func (p *planner) sparesNext(m int, r engineReport, grow float64) bool {
	k := &p.models[m]
	cached := math.Trunc((r.cached + r.queued) * grow)
	if k.bounds.cache > 0 && cached >= k.bounds.cache {
		return false
	}
	return k.engine.betweenTokens(cached) < p.itl[m]*p.sensitivity
}

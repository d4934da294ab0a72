package tuning

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// placer looks at one load.
type placer struct {
	*replay.Trial
	scenario *replay.Scenario
	load     replay.Load
	choice   []int
}

// hopelessPrice is by how many times what a variant serves may cost more than what the
// cheapest one does that stays, before nobody would drive it instead.
const hopelessPrice = 1.5

// splitParts are the static splits that are tried: so much of what fits of the cheapest
// variants always stands.
var splitParts = []float64{1, 0.75, 0.5, 0.25}

// Placings are the ways in which a policy that drives one variant of each model may be put
// on the variants of this load, by hindsight; the first one is the default:
//
//   - the variant of each model that is cheapest for what it serves;
//   - each other one that is not hopeless, or of several models all of their second ones;
//   - where the cheapest ones do not all fit at the peaks of the load, or their nodes are
//     taken away: as many of them as fit, in the proportion of the peaks, always, or some
//     quarters of that, while the next ones go with the load.
func Placings(trial *replay.Trial) []Placing {
	t := placer{trial, trial.Scenario(), trial.Load(), trial.Choice()}
	placings := []Placing{{Tests: t.loadTests(t.choice, nil)}}
	ranks := t.scenario.Ranked(t.load)
	if len(ranks) == 1 {
		for _, v := range ranks[0][1:] {
			if t.hopeful(0, v) {
				placings = append(placings, t.placing([]int{v}, nil))
			}
		}
	} else if second, others := t.second(ranks); others {
		placings = append(placings, t.placing(second, nil))
	}
	second, others := t.second(ranks)
	peaks := t.peaks()
	if !others || t.fit(peaks) && t.allStay() {
		return placings
	}
	for _, part := range splitParts {
		fixed, some := t.fitting(peaks, part, second)
		if !some {
			continue
		}
		split := t.placing(second, fixed)
		if !slices.ContainsFunc(placings, func(p Placing) bool { return p.Setting == split.Setting }) {
			placings = append(placings, split)
		}
	}
	return placings
}

// second is the next best variant of each model that is not hopeless, else the best; false
// where no model has one.
func (t placer) second(ranks [][]int) (second []int, some bool) {
	second = slices.Clone(t.choice)
	for m := range ranks {
		if len(ranks[m]) > 1 && t.hopeful(m, ranks[m][1]) {
			second[m], some = ranks[m][1], true
		}
	}
	return second, some
}

// hopeful reports whether a variant serves anything, for not too much more than the
// cheapest one.
func (t placer) hopeful(m, v int) bool {
	shape := t.load.Mean(m)
	serves := func(v int) float64 { return float64(t.scenario.Serves(m, v, shape)) }
	cost := func(v int) float64 { return float64(t.scenario.Models[m].Variants[v].Cost) }
	least := t.choice[m]
	for _, other := range t.scenario.Ranked(t.load)[m] {
		if t.stays(m, other) {
			least = other
			break
		}
	}
	return serves(v) > 0 && cost(v)*serves(least) <= hopelessPrice*cost(least)*serves(v)
}

// allStay reports whether the cheapest variants of all models stay.
func (t placer) allStay() bool {
	for m, v := range t.choice {
		if !t.stays(m, v) {
			return false
		}
	}
	return true
}

// stays reports whether the variant always has a node. Those of a spot variant may all be
// taken away at once.
func (t placer) stays(m, v int) bool {
	all, request := t.scenario.Cluster, t.scenario.Models[m].Variants[v].Request
	if all == nil {
		return true
	}
	left := all.Clone()
	for _, e := range t.scenario.Events {
		switch e.Kind {
		case simulation.Reclaimed:
			left.Nodes[e.Node].Out = simulation.OutReclaimed
		case simulation.Restored:
			left.Nodes[e.Node].Out = all.Nodes[e.Node].Out
		case simulation.Cordoned, simulation.Drained, simulation.Failed:
			continue
		}
		if slots, err := left.Slots(request); err == nil && slots == 0 {
			return false
		}
	}
	return true
}

// peaks are the replicas of the cheapest variants that each model needs at its own peak.
func (t placer) peaks() [][]int {
	peaks := make([][]int, len(t.scenario.Models))
	for m := range peaks {
		peaks[m] = make([]int, len(t.scenario.Models[m].Variants))
		peaks[m][t.choice[m]] = t.peak(m, t.choice[m], nil)
	}
	return peaks
}

// peak is how many replicas of a variant a model needs in the minute that needs most, beside
// those that are fixed.
func (t placer) peak(m, v int, fixed [][]int) int {
	most := 0
	for at := range t.load[m] {
		rate := float64(t.load[m][at].Rate)
		for other := range t.scenario.Models[m].Variants {
			if fixed != nil {
				rate -= float64(fixed[m][other]) * float64(t.Rates()[m][at][other])
			}
		}
		if one := float64(t.Rates()[m][at][v]); one > 0 {
			most = max(most, wanted(max(0, rate), one))
		}
	}
	return most
}

// fit reports whether there may be so many replicas, and they fit together.
func (t placer) fit(replicas [][]int) bool {
	for m := range replicas {
		for v, n := range replicas[m] {
			if most := t.scenario.Models[m].Variants[v].Policy.Max; most >= 0 && n > most {
				return false
			}
		}
	}
	return t.scenario.Holds(replicas)
}

// fitting is a part of the largest share of the peaks that fits on the nodes, of those
// models that drive another variant; false where that is nothing.
func (t placer) fitting(peaks [][]int, part float64, driven []int) (fixed [][]int, some bool) {
	const steps = 64
	scaled := func(share float64) [][]int {
		all := make([][]int, len(peaks))
		for m := range peaks {
			all[m] = make([]int, len(peaks[m]))
			if v := t.choice[m]; driven[m] != v {
				all[m][v] = int(share * float64(t.scenario.Models[m].Variants[v].Bounded(peaks[m][v])))
			}
		}
		return all
	}
	share := 0.0
	for i := range steps {
		if next := float64(i+1) / steps; t.scenario.Holds(scaled(next)) {
			share = next
		}
	}
	fixed = scaled(part * share)
	for m := range fixed {
		some = some || slices.Max(fixed[m]) > 0
	}
	return fixed, some
}

// placing writes which variants are driven, and what stands beside them.
func (t placer) placing(driven []int, fixed [][]int) Placing {
	var names, split []string
	for m, v := range driven {
		if v != t.choice[m] {
			names = append(names, t.scenario.Models[m].Variants[v].Name)
		}
		for other := range t.scenario.Models[m].Variants {
			if fixed != nil && fixed[m][other] > 0 {
				split = append(split, fmt.Sprintf("%s:%d", t.scenario.Models[m].Variants[other].Name, fixed[m][other]))
			}
		}
	}
	p := Placing{Setting: "variant=" + strings.Join(names, "+"), Tests: t.loadTests(driven, fixed)}
	if len(split) > 0 {
		p.Setting += ",split=" + strings.Join(split, "+")
	}
	return p
}

// loadTests are what load tests of one replica of a variant of each model would find, with
// requests of the mean shape that arrive independently, and how many replicas the peaks need
// beside those that are fixed.
func (t placer) loadTests(variants []int, fixed [][]int) []LoadTest {
	tests := make([]LoadTest, len(variants))
	for m, v := range variants {
		shape, model := t.load.Mean(m), &t.scenario.Models[m]
		tests[m] = LoadTest{
			Rate: float64(t.scenario.Serves(m, v, shape)), Input: float64(shape.Input), ITL: float64(model.SLO.ITL),
			Peak: model.Variants[v].Bounded(t.peak(m, v, fixed)), Least: model.Variants[v].Policy.Min,
		}
		queue, ok := serving.NewQueue(t.scenario.Latency(m, v), shape, serving.Arrivals{})
		if !ok {
			continue
		}
		at := queue.At(capacity.Rate(tests[m].Rate))
		tests[m].InFlight = at.InService
		if model.SLO.ITL <= 0 {
			tests[m].ITL = float64(at.ITL)
		}
	}
	return tests
}

// fine is the relative difference below which two rates are equal.
const fine = 1e-9

// wanted is how many replicas serve a rate.
func wanted(need, one float64) int { return int(math.Ceil(need * (1 - fine) / one)) }

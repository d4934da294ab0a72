package closedloop

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// A replica that flaps is ready for the longer time and then not for the shorter one.
const (
	flapsReady  = 70 * time.Second
	flapsAbsent = 30 * time.Second
)

// factor is what the changes of a kind that are under way make of a variant's number: 1
// where there are none.
func (w *world) factor(kind FaultKind, v *variantState) float64 {
	factor := 1.0
	for i := range w.scenario.Faults {
		if f := &w.scenario.Faults[i]; f.Kind == kind && f.From <= w.now && w.now < f.To && w.hits(f, v) {
			factor *= f.Factor
		}
	}
	return factor
}

// edit brings what a user may change, and what clients ask for, to what it is now.
func (w *world) edit(f *Fault, v *variantState) {
	switch f.Kind {
	case FaultPrice:
		v.cost = v.Cost * capacity.Cost(w.factor(f.Kind, v))
		w.clock.Event(round.Urgent)
	case FaultPrompts:
		before, factor := w.scenario.Models[v.model.index].Shape, w.factor(f.Kind, v)
		v.model.Shape = capacity.TokenShape{Input: scaled(before.Input, factor), Output: scaled(before.Output, factor)}
		w.learnTruths(v.model)
	case FaultPromise:
		before, factor := w.scenario.Models[v.model.index].SLO, capacity.Milliseconds(w.factor(f.Kind, v))
		v.model.SLO = capacity.SLO{TTFT: before.TTFT * factor, ITL: before.ITL * factor}
		w.setPromise(v.model)
		w.learnTruths(v.model)
	case FaultVersion:
		v.version = w.factor(f.Kind, v)
		if f.Count%2 == 1 {
			v.stated = v.version
		}
		w.learnTruths(v.model)
		v.updating = true
	default:
		w.rule(f, v)
	}
}

// scaled is a number of tokens, at least one.
func scaled(tokens capacity.Tokens, factor float64) capacity.Tokens {
	return capacity.Tokens(max(1, math.Round(float64(tokens)*factor)))
}

// setPromise gives a model the promise that it has now; the policy that a round was given
// is left as it was.
func (w *world) setPromise(m *modelState) {
	promises := make(map[decision.ModelKey]decision.Promise, len(w.policy.Promises)+1)
	for key, p := range w.policy.Promises {
		promises[key] = p
	}
	key := decision.ModelKey{Namespace: namespace, ID: m.Name}
	promises[key] = decision.Promise{Class: "class", Priority: m.Priority, Weight: m.Weight, SLO: m.SLO}
	w.policy.Promises = promises
	w.clock.Event(round.Soon)
}

// learnTruths finds out anew what the replicas of a model do.
func (w *world) learnTruths(m *modelState) {
	for _, v := range m.variants {
		v.truths = map[float64]*truth{}
		v.truth = *w.truthOf(v, v.version)
	}
}

// truthOf is what a replica of a version does, in which everything takes so many times as
// long.
func (w *world) truthOf(v *variantState, version float64) *truth {
	if version == 0 {
		version = 1
	}
	if t := v.truths[version]; t != nil {
		return t
	}
	variant := *v.Variant
	variant.Profile = times(variant.Profile, version)
	t := newTruth(v.model.Model, &variant, w.scenario, v.model.final())
	v.truths[version] = &t
	return &t
}

// update replaces replicas of an earlier version, a quarter at a time, or one after the
// other where they keep their order.
func (w *world) update(v *variantState) {
	if !v.updating {
		return
	}
	atOnce := max(1, len(v.pods)/4)
	if v.Ordered {
		atOnce = 1
	}
	left := false
	absent := len(v.pods) - v.ready()
	for i := len(v.pods) - 1; i >= 0; i-- {
		p := v.pods[i]
		if p.version == v.version {
			left = left || !p.serving
			continue
		}
		left = true
		if p.serving && absent >= atOnce {
			continue
		}
		if p.serving {
			absent++
		}
		w.replace(v, p)
	}
	v.updating = left
}

// replace has a new pod start in the place of another one.
func (w *world) replace(v *variantState, p *pod) {
	v.model.held += p.waiting
	v.born++
	next := pod{name: p.name, created: w.now, node: p.node, placed: w.now, refused: p.refused, version: v.version, extra: p.extra}
	if !v.Ordered {
		next.name += "r"
	}
	next.starts = w.startup(v)
	*p = next
	w.changed = true
}

// startup is how long a replica takes that is placed now.
func (w *world) startup(v *variantState) time.Duration {
	return time.Duration(float64(v.Startup) * w.factor(FaultSlowStart, v)).Truncate(step)
}

// flap has the replicas that flap come and go.
func (w *world) flap(v *variantState) {
	for _, p := range v.pods {
		if !p.flaps || p.node == nil || p.down() || p.cut {
			continue
		}
		switch {
		case p.serving && w.now >= p.since+flapsReady:
			p.serving, p.stopped, p.absent = false, w.now, true
			v.model.held += p.waiting
			p.waiting = 0
			w.changed = true
		case p.absent && w.now >= p.stopped+flapsAbsent:
			p.serving, p.since, p.absent = true, w.now, false
			w.changed = true
		}
	}
}

// choose marks the first replicas that serve.
func (v *variantState) choose(n int, mark func(*pod)) {
	for _, p := range v.pods {
		if p.serving && n > 0 {
			mark(p)
			n--
		}
	}
}

// doubtful is how many replicas serve that flap or show no metrics, for good.
func (v *variantState) doubtful() (n int) {
	for _, p := range v.pods {
		if p.flaps || p.silent {
			n++
		}
	}
	return n
}

// blind says that no replica of the model shows anything, and halfBlind that more than a
// fifth do not: then no replica may go.
func (m *modelState) blind() bool {
	serving, doubtful := m.doubts()
	return serving > 0 && doubtful == serving
}

func (m *modelState) halfBlind() bool {
	serving, doubtful := m.doubts()
	return 5*doubtful > serving
}

func (m *modelState) doubts() (serving, doubtful int) {
	for _, v := range m.variants {
		serving += v.serves()
		doubtful += v.doubtful()
	}
	return serving, doubtful
}

// flapsBelow says whether the replicas that flap are needed for the load: without them what
// serves is saturated.
func (m *modelState) flapsBelow(load float64) bool {
	steady, flaps := 0.0, false
	for _, v := range m.variants {
		for _, p := range v.pods {
			flaps = flaps || p.flaps
			if p.serving && !p.hung && !p.flaps {
				steady += v.truth.saturation.least
			}
		}
	}
	return flaps && steady < load
}

// doubted is how many replicas that serve so much each may stand in for those of which
// nothing is known: these may be full.
func (m *modelState) doubted(each float64) int {
	load, n := 0.0, 0
	for _, v := range m.variants {
		n += v.doubtful()
		load += float64(v.doubtful()) * v.truth.curve.max
	}
	if each <= 0 {
		return n
	}
	return int(math.Ceil(load / each))
}

// leastOfAll is the least rate that is not zero, or zero.
func leastOfAll(rates []float64) (least float64) {
	for _, rate := range rates {
		if rate > 0 && (least == 0 || rate < least) {
			least = rate
		}
	}
	return least
}

// leastReading is the least that any of a model's replicas may be said to serve.
func (m *modelState) leastReading() float64 {
	var all []float64
	for _, v := range m.variants {
		all = append(all, v.truth.readings(leastOf)...)
	}
	return leastOfAll(all)
}

// drawEdits draws changes of what the user and the clients want, and of what servers do,
// in which nothing is broken.
func drawEdits(d *dice, s *Scenario) {
	if !d.chance(0.35) {
		return
	}
	for range 1 + d.below(2) {
		f := drawFault(d, s)
		f.Kind = pick(d, FaultPrice, FaultPrompts, FaultPromise, FaultVersion, FaultSlowStart, FaultFlap, FaultSilent, FaultMin)
		f.Factor = d.scaled(0.4, 2.5)
		v := &s.Models[f.Model].Variants[f.Variant]
		if f.Kind == FaultSlowStart {
			f.Factor = d.scaled(2, 6)
		}
		if slices.Contains([]FaultKind{FaultVersion, FaultSlowStart}, f.Kind) && v.Startup > 3*time.Minute {
			// Whatever takes several starts one after the other would last for hours.
			f.Kind = FaultPrice
		}
		if (f.Kind == FaultFlap || f.Kind == FaultSilent) && d.chance(0.5) {
			f.Count, f.To = 1, forGood
		}
		s.Faults = append(s.Faults, f)
	}
}

// forGood is the end of what does not end.
const forGood = 1000 * time.Hour

package decision

import (
	"cmp"
	"fmt"
	"math"
	"time"
)

// behavior applies the way down of the variant's behavior, with the meaning that the
// HorizontalPodAutoscaler gives to it, and keeps rounds that are not full from lowering.
// The way up is part of what is bought; ideal is what no window of scaleUp would have held.
func (r *round) behavior(m *model, ideal, giveBack map[*variant]int, idle bool) {
	// All before any is restrained: what one keeps serves no other's load tomorrow.
	m.each(func(v *variant) {
		v.wanted = max(v.target, ideal[v])
		v.needed = m.needed(v)
	})
	m.each(func(v *variant) {
		asked := v.target
		if from := v.from(); v.target < from {
			r.restrainDown(m, v, from, giveBack[v], idle)
		}
		if v.target == asked {
			v.note(StageBehavior, ReasonSteady, "behavior sets no further limit")
		}
	})
}

// decided is the history since the variant was last held or changed by somebody else, or
// rounds were missing: what was wanted before that no longer counts, so that nothing is removed
// for a window.
func (v *variant) decided() []Stretch {
	past := v.old.History
	if v.anew {
		return nil
	}
	for i := len(past) - 1; i >= 0; i-- {
		if !past[i].Decided {
			return past[i+1:]
		}
	}
	return past
}

// needed is how many of the variant's replicas the present load alone needs of those that
// are wanted, at the rate at which the promise is just kept. What is wanted beyond that is
// headroom and forecast: the scale-down window does not hold it. Where that is not known, or
// saturation alone sizes, all of it is needed.
func (m *model) needed(v *variant) int {
	supply := m.served(func(v *variant) int { return v.target })
	if !m.sized || !m.demand.known || m.evidence != evidenceFull || supply <= 0 {
		return v.wanted
	}
	share := min(1, float64((m.demand.now+m.need.queued)/supply))
	return int(math.Ceil(share*float64(v.wanted) - precision))
}

// held is for how long what the load needed is not given up: the window, but not where nobody
// chose one, latency sizes, and the load is not likely to jump back within it to where it was.
// What the forecast asks for then suffices.
func (m *model) held(v *variant) time.Duration {
	b := v.policy.Down
	if b.Adaptive && m.sized && m.demand.known && m.demand.forecast.Lately.Returns(b.Window) <= 1-m.demand.risk {
		return 0
	}
	return b.Window
}

// highestNeeded is the highest number that was needed within the window, now included, and
// for how long such a number is held. What was wanted, also for a forecast alone, is given one
// start-up, the time in which it would have started.
func (r *round) highestNeeded(m *model, v *variant, past []Stretch) (highest int, started, held time.Duration) {
	started = min(cmp.Or(v.in.Startup, m.lead), v.policy.Down.Window)
	highest, held = v.target, m.held(v)
	for _, s := range past {
		switch age := r.snapshot.Time.Sub(s.Until); {
		case age <= started:
			highest = max(highest, s.Wanted)
		case age < held:
			highest = max(highest, s.Needed)
		}
	}
	return highest, started, held
}

// history is that of the variant with this round, as far back as any window or period
// looks.
func (r *round) history(v *variant) []Stretch {
	span := max(v.policy.Up.Window, v.policy.Down.Window, podPatience)
	for _, b := range []Behavior{v.policy.Up, v.policy.Down} {
		for _, p := range b.Policies {
			span = max(span, p.Period)
		}
	}
	past, shown := v.old.History, v.target
	if v.anew {
		past = nil
	}
	if v.plan.Fallback != nil {
		shown = v.plan.Fallback.Replicas
	}
	now := r.snapshot.Time
	return record(past, Stretch{From: now, Until: now, Replicas: v.plan.Current, Wanted: v.wanted, Needed: v.needed, Desired: shown, Decided: v.managed}, span)
}

// from is the number below which the variant is lowered: that of its target, or in mode
// Metric what was shown last. Whoever follows it may not be there yet, and takes a lower
// number for a wish to remove replicas.
func (v *variant) from() int {
	if last, known := v.old.before(); known && v.policy.Actuation == ActuationMetric {
		return v.bounded(last.Desired)
	}
	return v.in.Current
}

// mayReach is the most replicas that the variant's scaleUp policies allow now, and why no
// more, where it has them. Who has no policies is bounded by the growth limit, from the
// replicas that serve: those that start have not shown yet that the estimate which asked for
// them was right. While some find no node, policies allow no more than that, either: more that
// wait serve nobody.
func (r *round) mayReach(v *variant) (most int, why string) {
	up, limit, serves := &v.policy.Up, r.policy.Growth, min(v.in.Ready, v.in.Current)
	limited := mostReplicas
	if limit != (Growth{}) {
		limited = max(v.in.Current, serves+max(limit.Pods, serves*limit.Percent/100))
	}
	if up.Select == SelectDisabled {
		return v.in.Current, "scaleUp.selectPolicy is Disabled"
	}
	if len(up.Policies) > 0 {
		most = max(r.rateLimit(v, *up, 1), v.in.Current)
		if v.fleet.unplaced() == 0 || most <= limited {
			if v.target >= most {
				why = fmt.Sprintf("scaleUp.policies allow %d now", most)
			}
			return most, why
		}
	}
	if v.target >= limited {
		why = fmt.Sprintf("the growth limit allows %d while %d serve", limited, serves)
	}
	return limited, why
}

// heldUp is how many of the wanted replicas the window and the tolerance of scaleUp allow
// now, where without a bound so many would be wanted.
func (r *round) heldUp(v *variant, wanted, unbounded int) int {
	up := v.policy.Up
	most := wanted
	for _, s := range v.decided() {
		if r.snapshot.Time.Sub(s.Until) < up.Window {
			most = min(most, max(s.Wanted, v.in.Current))
		}
	}
	if v.tolerates(up, most+unbounded-wanted) {
		most = min(most, v.in.Current)
	}
	return most
}

// restrainDown slows down what goes, from a number on; but not what goes because nothing is
// asked of the model, or never served, or is above maxReplicas.
func (r *round) restrainDown(m *model, v *variant, from, giveBack int, idle bool) {
	switch {
	case r.kind != RoundFull:
		v.step(StageBehavior, from, ReasonRoundMayNotLower, "scale-down only in periodic full rounds")
		return
	case v.rolling():
		v.step(StageBehavior, from, ReasonRollingUpdate, "no scale-down during a rolling update")
		return
	case v.policy.Actuation == ActuationMetric && m.evidence != evidenceFull:
		v.step(StageBehavior, from, ReasonMetricsPartial, "wva_desired_replicas held: incomplete metrics")
	case !idle || v.policy.Down.Select == SelectDisabled:
		r.slowDown(m, v, from)
	}
	if without := max(v.in.Current-giveBack, min(v.policy.Min, v.in.Current)); giveBack > 0 && v.target > without {
		v.step(StageBehavior, without, v.fleet.lostTo(), "replicas that never became ready bypass scaleDown")
	}
	if most := v.bounded(v.target); most < v.target {
		v.step(StageBehavior, most, ReasonMaxReplicas, "maxReplicas bypasses scaleDown")
	}
}

// slowDown applies the window, the policies and the tolerance of the way down.
func (r *round) slowDown(m *model, v *variant, from int) {
	b, past, window := v.policy.Down, v.decided(), v.policy.Down.Window
	if window > 0 && (len(past) == 0 || r.snapshot.Time.Sub(past[0].From) < window) {
		v.step(StageBehavior, from, ReasonStabilized, "waiting for a full stabilization window (%s)", window)
		return
	}
	highest, started, held := r.highestNeeded(m, v, past)
	if highest = min(highest, from-v.yields); highest > v.target {
		what := "stabilization window"
		if held < started {
			what = "one start-up"
		}
		v.step(StageBehavior, highest, ReasonStabilized, "%s (%s) keeps %d", what, max(started, held).Round(time.Second), highest)
	}
	if b.Select == SelectDisabled && v.target < from {
		v.step(StageBehavior, from, ReasonRateLimited, "scaleDown.selectPolicy is Disabled")
	} else if limit := r.rateLimit(v, b, -1); v.target < limit {
		v.step(StageBehavior, min(limit, from), ReasonRateLimited, "scaleDown.policies allow %d now", limit)
	}
	if v.tolerates(b, v.target) {
		v.step(StageBehavior, from, ReasonWithinTolerance, "within scaleDown.tolerance (%.0f %%)", 100*b.Tolerance)
	}
}

// tolerates reports whether a change to so many replicas is within the tolerance.
func (v *variant) tolerates(b Behavior, wanted int) bool {
	return wanted != v.in.Current && b.Tolerance > 0 &&
		math.Abs(float64(wanted)/float64(v.in.Current)-1) <= b.Tolerance+precision
}

// rateLimit is the furthest that the policies of one direction (+1 up, -1 down)
// allow; 0 without any. The selection Max takes the policy that allows the larger change.
func (r *round) rateLimit(v *variant, b Behavior, sign int) int {
	best, found := 0, false
	for _, p := range b.Policies {
		start := r.replicasBefore(v, p.Period)
		step := p.Pods
		if p.Percent > 0 {
			// A share of nothing would never let a variant begin.
			step = max(1, int(math.Ceil(float64(start)*float64(p.Percent)/100)))
		}
		further := sign*(start+sign*step) > sign*best
		if !found || further == (b.Select != SelectMin) {
			best = start + sign*step
		}
		found = true
	}
	return max(best, 0)
}

// replicasBefore is what the target asked for when the period began, or in mode Metric what
// was shown: whoever follows that need not have. What a round wrote was so from that round on,
// although only the next one saw it.
func (r *round) replicasBefore(v *variant, period time.Duration) int {
	start := v.from()
	for i := len(v.old.History) - 1; i >= 0 && !v.anew; i-- {
		s := &v.old.History[i]
		switch {
		case v.policy.Actuation == ActuationMetric && r.snapshot.Time.Sub(s.From) >= period:
			return s.Desired
		case r.snapshot.Time.Sub(s.Until) >= period:
			return start
		}
		start = s.Replicas
	}
	return start
}

package decision

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// behavior applies the variant's scaling behaviour, with the meaning that the
// HorizontalPodAutoscaler gives to it, and keeps rounds that are not full from
// lowering.
func behavior(r *round, m *model) {
	m.each(func(v *variant) {
		r.holdShown(m, v)
		asked := v.target
		v.wanted = max(v.target, v.ideal)
		v.needed = v.wanted
		if m.sized && m.demand.known && m.evidence == evidenceFull {
			v.needed = m.needed(v)
		}
		past := v.decided()
		if v.target < v.in.Current {
			r.restrainDown(v, past)
		}
		r.stabilizeShown(v, past)
		if v.target == asked {
			v.note(StageBehavior, ReasonSteady, "nothing to restrain")
		}
	})
}

// decided is the history since the variant was last held or changed by somebody else:
// what was wanted before that no longer counts, so that nothing is removed for a window.
func (v *variant) decided() []Stretch {
	past := v.old.History
	for i := len(past) - 1; i >= 0; i-- {
		if !past[i].Decided || v.externallyChanged {
			return past[i+1:]
		}
	}
	return past
}

// needed is how many of the variant's replicas the present load alone needs of those that
// are wanted, at the rate at which the promise is just kept. What is wanted beyond that is
// headroom and forecast: the scale-down window does not hold it.
func (m *model) needed(v *variant) int {
	supply := capacity.Rate(0)
	for _, other := range m.variants {
		if other.exists() {
			supply += other.rate.serves() * capacity.Rate(other.target)
		}
	}
	if supply <= 0 {
		return v.wanted
	}
	share := min(1, float64((m.demand.now+m.need.queued)/supply))
	return int(math.Ceil(share*float64(v.wanted) - 1e-9))
}

// highestNeeded is the highest number that was needed within the window, now included. What
// was wanted for a forecast is given one start-up, the time in which it would serve.
func (r *round) highestNeeded(v *variant, past []Stretch, window time.Duration) int {
	highest := v.target
	for _, s := range past {
		switch age := r.snapshot.Time.Sub(s.Until); {
		case age <= min(v.in.Startup, window):
			highest = max(highest, s.Wanted)
		case age < window:
			highest = max(highest, s.Needed)
		}
	}
	return highest
}

// remember records the round. Span is as long as any window or period looks back.
func (r *round) remember(v *variant, shown int) {
	span := max(v.policy.Up.Window, v.policy.Down.Window)
	for _, b := range []Behavior{v.policy.Up, v.policy.Down} {
		for _, p := range b.Policies {
			span = max(span, p.Period)
		}
	}
	now := Stretch{From: r.snapshot.Time, Until: r.snapshot.Time, Replicas: v.in.Current, Wanted: v.wanted, Needed: v.needed, Desired: shown, Decided: v.managed}
	past := v.old.History
	if v.externallyChanged {
		past = nil
	}
	v.next.History = record(past, now, span)
}

// shown is what the metric of a variant in mode Metric last showed. Whoever follows
// it may not be there yet, and takes a lower number for a wish to remove replicas;
// so that number, and not that of the target, is what may not fall unseen.
func (v *variant) shown() (int, bool) {
	last, known := v.old.before()
	return v.bounded(last.Desired), known && v.policy.Actuation == ActuationMetric
}

// holdShown keeps the number that is shown in a round that may not lower.
func (r *round) holdShown(m *model, v *variant) {
	shown, is := v.shown()
	if !is || v.target >= shown {
		return
	}
	switch {
	case r.kind != RoundFull:
		v.step(StageBehavior, shown, ReasonRoundMayNotLower, "only a full round lowers what is shown")
	case m.evidence != evidenceFull:
		v.step(StageBehavior, shown, ReasonMetricsPartial, "what is shown stays while the metrics do not allow less")
	case v.rolling():
		v.step(StageBehavior, shown, ReasonRollingUpdate, "pods are replaced by newer ones; what is shown stays until that is done")
	}
}

// stabilizeShown applies the scale-down window to the number that is shown.
func (r *round) stabilizeShown(v *variant, past []Stretch) {
	shown, is := v.shown()
	if !is || v.target >= shown || v.idle {
		return
	}
	window := v.policy.Down.Window
	highest := r.highestNeeded(v, past, window)
	if hold := min(shown, highest); hold > v.target {
		v.step(StageBehavior, hold, ReasonStabilized, "%d were wanted within the last %s", highest, window)
	}
}

// mayReach is the most replicas that the variant's scaleUp policies allow now, and why no
// more. Who has none is bounded by the growth limit, from the replicas that serve: those
// that start have not shown yet that the estimate which asked for them was right.
func (r *round) mayReach(v *variant) (most int, why string) {
	up, limit := v.policy.Up, r.policy.Growth
	switch {
	case up.Select == SelectDisabled:
		return v.in.Current, "scaleUp.selectPolicy is Disabled"
	case len(up.Policies) > 0:
		most = max(r.rateLimit(v, up, 1), v.in.Current)
		return most, fmt.Sprintf("the scale-up policies allow %d now", most)
	case limit == Growth{}:
		return mostReplicas, ""
	}
	serves := min(v.in.Ready, v.in.Current)
	most = max(v.in.Current, serves+max(limit.Pods, serves*limit.Percent/100))
	return most, fmt.Sprintf("the growth limit allows %d while %d serve", most, serves)
}

// heldUp is how many of the wanted replicas the window and the tolerance of scaleUp allow
// now.
func (r *round) heldUp(v *variant, wanted int) int {
	up := v.policy.Up
	most := wanted
	if up.Window > 0 {
		for _, s := range v.decided() {
			if r.snapshot.Time.Sub(s.Until) < up.Window {
				most = min(most, max(s.Wanted, v.in.Current))
			}
		}
	}
	if v.tolerates(up, most) {
		most = min(most, v.in.Current)
	}
	return most
}

func (r *round) restrainDown(v *variant, past []Stretch) {
	if r.kind != RoundFull {
		v.step(StageBehavior, v.in.Current, ReasonRoundMayNotLower, "only a full round lowers")
		return
	}
	if v.rolling() {
		v.step(StageBehavior, v.in.Current, ReasonRollingUpdate, "pods are replaced by newer ones; none goes before that is done")
		return
	}
	if !v.idle || v.policy.Down.Select == SelectDisabled {
		r.slowDown(v, past)
	}
	if without := v.in.Current - v.giveBack; v.giveBack > 0 && v.target > max(without, v.least) {
		v.step(StageBehavior, max(without, v.least), ReasonNoSlots, "what never served is not missed, so giving it back is not slowed down")
	}
	if p := v.policy; p.Max >= 0 && v.target > p.Max {
		v.step(StageBehavior, p.Max, ReasonMaxReplicas, "maxReplicas is not slowed down")
	}
}

// slowDown applies the window, the policies and the tolerance of the way down.
func (r *round) slowDown(v *variant, past []Stretch) {
	b := v.policy.Down
	window := v.policy.Down.Window
	if window > 0 && (len(past) == 0 || r.snapshot.Time.Sub(past[0].From) < window) {
		v.step(StageBehavior, v.in.Current, ReasonStabilized, "the last %s are not all seen yet", window)
		return
	}
	highest := r.highestNeeded(v, past, window)
	if highest = min(highest, v.in.Current); highest > v.target {
		v.step(StageBehavior, highest, ReasonStabilized, "%d were wanted within the last %s", highest, window)
	}
	if b.Select == SelectDisabled || len(b.Policies) > 0 {
		if limit := r.rateLimit(v, b, -1); v.target < limit {
			v.step(StageBehavior, min(limit, v.in.Current), ReasonRateLimited, "the scale-down policies allow %d now", limit)
		}
	}
	if v.tolerates(b, v.target) {
		v.step(StageBehavior, v.in.Current, ReasonWithinTolerance, "the change is within the tolerance of %.0f %%", 100*b.Tolerance)
	}
}

// tolerates reports whether a change to so many replicas is within the tolerance.
func (v *variant) tolerates(b Behavior, wanted int) bool {
	return v.in.Current > 0 && wanted != v.in.Current && b.Tolerance > 0 &&
		math.Abs(float64(wanted)/float64(v.in.Current)-1) <= b.Tolerance+1e-9
}

// rateLimit is the furthest that the policies of one direction (+1 up, -1 down)
// allow. The selection Max takes the policy that allows the larger change.
func (r *round) rateLimit(v *variant, b Behavior, sign int) int {
	if b.Select == SelectDisabled {
		return v.in.Current
	}
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

// replicasBefore is what the target asked for when the period began.
func (r *round) replicasBefore(v *variant, period time.Duration) int {
	for i := len(v.old.History) - 1; i >= 0 && !v.externallyChanged; i-- {
		if s := v.old.History[i]; i == 0 || r.snapshot.Time.Sub(s.From) >= period {
			return s.Replicas
		}
	}
	return v.in.Current
}

package decision

import (
	"math"
	"time"
)

// behavior applies the variant's scaling behaviour, with the meaning that the
// HorizontalPodAutoscaler gives to it, and keeps rounds that are not full from
// lowering.
func behavior(r *round, m *model) {
	for _, v := range m.variants {
		r.recordChange(v)
	}
	m.each(func(v *variant) {
		r.holdShown(m, v)
		wanted := v.target
		recommended := r.recommend(v, wanted)
		switch {
		case wanted > v.in.Current:
			r.restrainUp(v, recommended)
		case wanted < v.in.Current:
			r.restrainDown(v, recommended)
		}
		r.stabilizeShown(v, recommended)
		if v.target == wanted {
			v.note(StageBehavior, ReasonSteady, "nothing to restrain")
		}
	})
	for _, v := range m.variants {
		if v.exists() {
			r.next.Asked[v.key] = v.target
		}
	}
}

// shown is what the metric of a variant in mode Metric last showed. Whoever follows
// it may not be there yet, and takes a lower number for a wish to remove replicas;
// so that number, and not that of the target, is what may not fall unseen.
func (r *round) shown(v *variant) (int, bool) {
	n, known := r.old.Wanted[v.key]
	return v.bounded(n), known && v.policy.Actuation == ActuationMetric
}

// holdShown keeps the number that is shown in a round that may not lower.
func (r *round) holdShown(m *model, v *variant) {
	shown, is := r.shown(v)
	if !is || v.target >= shown {
		return
	}
	switch {
	case r.kind != RoundFull:
		v.step(StageBehavior, shown, ReasonRoundMayNotLower, "only a full round lowers what is shown")
	case m.evidence != evidenceFull:
		v.step(StageBehavior, shown, ReasonMetricsPartial, "what is shown stays while the metrics do not allow less")
	case v.in.Rolling:
		v.step(StageBehavior, shown, ReasonRollingUpdate, "pods are replaced by newer ones; what is shown stays until that is done")
	}
}

// stabilizeShown applies the scale-down window to the number that is shown.
func (r *round) stabilizeShown(v *variant, recommended []Recommendation) {
	shown, is := r.shown(v)
	if !is || v.target >= shown || v.idle {
		return
	}
	highest, window := v.target, r.downWindow(v)
	for _, c := range recommended {
		if r.snapshot.Time.Sub(c.Time) < window {
			highest = max(highest, c.Replicas)
		}
	}
	if hold := min(shown, highest); hold > v.target {
		v.step(StageBehavior, hold, ReasonStabilized, "%d were wanted within the last %s", highest, window)
	}
}

// recordChange keeps the changes of the target's replicas that were seen, for the
// rate policies.
func (r *round) recordChange(v *variant) {
	span := longestPeriod(v.policy)
	var kept []Change
	for _, c := range r.old.Changes[v.key] {
		if r.snapshot.Time.Sub(c.Time) < span {
			kept = append(kept, c)
		}
	}
	before, known := r.old.Replicas[v.key]
	if known && before != v.in.Current {
		kept = append(kept, Change{r.snapshot.Time, v.in.Current - before})
	}
	if len(kept) > 0 && span > 0 {
		r.next.Changes[v.key] = kept
	}
	if v.exists() {
		r.next.Replicas[v.key] = v.in.Current
	}
}

func longestPeriod(p VariantPolicy) time.Duration {
	var longest time.Duration
	for _, b := range []Behavior{p.Up, p.Down} {
		for _, rate := range b.Policies {
			longest = max(longest, rate.Period)
		}
	}
	return longest
}

// recommend remembers what is wanted and returns the recommendations of the longer
// window, the newest last, with one older than the window when there is one: it
// shows that the window is covered. After a change by somebody else what was
// recommended before it no longer counts, so that nothing is removed for one window.
func (r *round) recommend(v *variant, wanted int) []Recommendation {
	window := max(v.policy.Up.Window, r.downWindow(v))
	old := r.old.Recommendations[v.key]
	if v.foreign {
		old = nil
	}
	first := 0
	for i := range old {
		if r.snapshot.Time.Sub(old[i].Time) >= window {
			first = i
		}
	}
	kept := append([]Recommendation(nil), old[first:]...)
	kept = append(kept, Recommendation{r.snapshot.Time, wanted})
	r.next.Recommendations[v.key] = kept
	return kept
}

func (r *round) restrainUp(v *variant, recommended []Recommendation) {
	b := v.policy.Up
	lowest := v.target
	for _, c := range recommended {
		if r.snapshot.Time.Sub(c.Time) < b.Window {
			lowest = min(lowest, c.Replicas)
		}
	}
	if lowest = max(lowest, v.in.Current); lowest < v.target {
		v.step(StageBehavior, lowest, ReasonStabilized, "only %d were wanted within the last %s", lowest, b.Window)
	}
	if limit, ok := r.upLimit(v); ok && v.target > limit {
		v.step(StageBehavior, max(limit, v.in.Current), ReasonRateLimited, "the scale-up policies allow %d now", limit)
	}
	v.withinTolerance(b)
	if v.target < v.least {
		v.step(StageBehavior, v.least, v.leastReason, "a minimum is not slowed down")
	}
}

func (r *round) restrainDown(v *variant, recommended []Recommendation) {
	if r.kind != RoundFull {
		v.step(StageBehavior, v.in.Current, ReasonRoundMayNotLower, "only a full round lowers")
		return
	}
	if v.in.Rolling {
		v.step(StageBehavior, v.in.Current, ReasonRollingUpdate, "pods are replaced by newer ones; none goes before that is done")
		return
	}
	if !v.idle || v.policy.Down.Select == SelectDisabled {
		r.slowDown(v, recommended)
	}
	if without := v.in.Current - v.back; v.back > 0 && v.target > max(without, v.least) {
		v.step(StageBehavior, max(without, v.least), ReasonNoSlots, "what never served is not missed, so giving it back is not slowed down")
	}
	if p := v.policy; p.Max >= 0 && v.target > p.Max {
		v.step(StageBehavior, p.Max, ReasonMaxReplicas, "maxReplicas is not slowed down")
	}
}

// slowDown applies the window, the policies and the tolerance of the way down.
func (r *round) slowDown(v *variant, recommended []Recommendation) {
	b := v.policy.Down
	window := r.downWindow(v)
	if oldest := recommended[0]; r.snapshot.Time.Sub(oldest.Time) < window {
		v.step(StageBehavior, v.in.Current, ReasonStabilized, "the last %s are not all seen yet", window)
		return
	}
	highest := v.target
	for _, c := range recommended {
		if r.snapshot.Time.Sub(c.Time) < window {
			highest = max(highest, c.Replicas)
		}
	}
	if highest = min(highest, v.in.Current); highest > v.target {
		v.step(StageBehavior, highest, ReasonStabilized, "%d were wanted within the last %s", highest, window)
	}
	if limit, ok := r.downLimit(v); ok && v.target < limit {
		v.step(StageBehavior, min(limit, v.in.Current), ReasonRateLimited, "the scale-down policies allow %d now", limit)
	}
	v.withinTolerance(b)
}

func (v *variant) withinTolerance(b Behavior) {
	if v.in.Current == 0 || v.target == v.in.Current || b.Tolerance <= 0 {
		return
	}
	if change := math.Abs(float64(v.target)/float64(v.in.Current) - 1); change <= b.Tolerance+1e-9 {
		v.step(StageBehavior, v.in.Current, ReasonWithinTolerance, "a change of %.0f %% is within the tolerance of %.0f %%", 100*change, 100*b.Tolerance)
	}
}

// upLimit is the most replicas that the scale-up policies allow.
func (r *round) upLimit(v *variant) (int, bool) {
	return r.rateLimit(v, v.policy.Up, 1)
}

// downLimit is the fewest replicas that the scale-down policies allow.
func (r *round) downLimit(v *variant) (int, bool) {
	return r.rateLimit(v, v.policy.Down, -1)
}

// rateLimit is the furthest that the policies of one direction (+1 up, -1 down)
// allow. The selection Max takes the policy that allows the larger change.
func (r *round) rateLimit(v *variant, b Behavior, sign int) (int, bool) {
	if b.Select == SelectDisabled {
		return v.in.Current, true
	}
	best, found := 0, false
	for _, p := range b.Policies {
		start := v.in.Current - r.changed(v, p.Period)
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
	return max(best, 0), found
}

// changed is the sum of the changes within the period: the replicas now without it
// are those that the period began with.
func (r *round) changed(v *variant, period time.Duration) int {
	sum := 0
	for _, c := range r.next.Changes[v.key] {
		if r.snapshot.Time.Sub(c.Time) < period {
			sum += c.Replicas
		}
	}
	return sum
}

// slowStarts bounds how much longer than its window a variant is held that starts slowly.
const slowStarts = 2

// downWindow is the scale-down window. Where the promised latency is kept watch on, what
// takes longer to start than half of the window is held for two of its start-ups, and no
// longer than for two windows: to throw it away and to start it again costs more than to
// keep it through the lull, and the promise is broken meanwhile. A window of zero stays
// zero.
func (r *round) downWindow(v *variant) time.Duration {
	window := v.policy.Down.Window
	if !r.policy.Hybrid {
		return window
	}
	return max(window, min(2*v.in.Startup, slowStarts*window))
}

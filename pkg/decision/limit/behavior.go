package limit

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Decided is the history since the variant was last held or changed by somebody else, or
// rounds were missing: what was wanted before that no longer counts, so that nothing is removed
// for a window.
func (v *Variant) Decided() []contract.HistoryEntry {
	past := v.Old.History
	if v.Anew {
		return nil
	}
	for i := len(past) - 1; i >= 0; i-- {
		if !past[i].Decided {
			return past[i+1:]
		}
	}
	return past
}

// From is the number below which the variant is lowered: that of its target, or where somebody
// else sets that, what was shown last. Whoever follows the number in mode Metric may not be there
// yet, and takes a lower one for a wish to remove replicas; in mode Off nobody follows it.
func (v *Variant) From() int {
	if !v.IsShown() {
		return v.In.Current
	}
	if asked, known := v.Asked(); known {
		return v.Bounded(asked)
	}
	return v.In.Current
}

// IsShown reports whether the number that is decided is only shown.
func (v *Variant) IsShown() bool {
	return v.Policy.Actuation == contract.ActuationMetric || v.Policy.Actuation == contract.ActuationOff
}

// Asked is the number that the variant asked for last, if it is known. In mode Off that is what the
// object shows where nothing is remembered: it would have been written.
func (v *Variant) Asked() (replicas int, known bool) {
	last, known := v.Old.Before()
	if !known && v.Policy.Actuation == contract.ActuationOff && v.In.Before != nil {
		return *v.In.Before, true
	}
	return last.Desired, known
}

// GoesOnAsking has a variant in mode Off ask for what it asked for last, where no change is wanted
// of it: what is there is somebody else's number.
func (v *Variant) GoesOnAsking() {
	asked, known := v.Asked()
	if asked = v.Bounded(max(asked, v.Policy.Min)); !known || v.Target != v.In.Current || asked == v.Target {
		return
	}
	reason, message := v.Plan.Reason, v.Plan.Message
	v.Step(contract.StageAllocation, asked, reason, contract.SaysAsksOn.With(asked))
	v.Plan.Reason, v.Plan.Message = reason, message
}

// MayReach is the most replicas that the variant's scaleUp policies allow now, and why no
// more, where it has them. Who has no policies is bounded by the growth limit, from the
// replicas that serve: those that start have not shown yet that the estimate which asked for
// them was right. While some find no node, policies allow no more than that, either: more that
// wait serve nobody.
func (r *Round) MayReach(v *Variant) (most int, why contract.Finding) {
	up, limit, serves := &v.Policy.Up, r.Policy.Growth, min(v.In.Ready, v.In.Current)
	limited := MostReplicas
	if limit != (contract.Growth{}) {
		limited = max(v.In.Current, serves+max(limit.Pods, serves*limit.Percent/100))
	}
	if up.Select == contract.SelectDisabled {
		return v.In.Current, contract.SaysUpDisabled.With()
	}
	if len(up.Policies) > 0 {
		most = max(r.RateLimit(v, *up, 1), v.In.Current)
		if v.Fleet.Unplaced() == 0 || most <= limited {
			if v.Target >= most {
				why = contract.SaysUpPolicies.With(most)
			}
			return most, why
		}
	}
	if v.Target >= limited {
		why = contract.SaysGrowthLimit.With(limited, serves)
	}
	return limited, why
}

// HeldUp is how many of the wanted replicas the window and the tolerance of scaleUp allow
// now, where without a bound so many would be wanted.
func (r *Round) HeldUp(v *Variant, wanted, unbounded int) int {
	up := v.Policy.Up
	most := wanted
	for _, s := range v.Decided() {
		if r.Snapshot.Time.Sub(s.Until) < up.Window {
			most = min(most, max(s.Wanted, v.In.Current))
		}
	}
	if v.Tolerates(up, most+unbounded-wanted) {
		most = min(most, v.In.Current)
	}
	return most
}

// Tolerates reports whether a change to so many replicas is within the tolerance.
func (v *Variant) Tolerates(b contract.Behavior, wanted int) bool {
	return wanted != v.In.Current && b.Tolerance > 0 &&
		math.Abs(float64(wanted)/float64(v.In.Current)-1) <= b.Tolerance+signal.Precision
}

// RateLimit is the furthest that the policies of one direction (+1 up, -1 down)
// allow; 0 without any. The selection Max takes the policy that allows the larger change.
func (r *Round) RateLimit(v *Variant, b contract.Behavior, sign int) int {
	best, found := 0, false
	for _, p := range b.Policies {
		start := r.ReplicasBefore(v, p.Period)
		step := p.Pods
		if p.Percent > 0 {
			// A share of nothing would never let a variant begin.
			step = max(1, int(math.Ceil(float64(start)*float64(p.Percent)/100)))
		}
		further := sign*(start+sign*step) > sign*best
		if !found || further == (b.Select != contract.SelectMin) {
			best = start + sign*step
		}
		found = true
	}
	return max(best, 0)
}

// ReplicasBefore is what the target asked for when the period began, or where somebody else sets
// that, what was shown: in mode Metric whoever follows it need not have. What a round wrote was so from that round on,
// although only the next one saw it. The history reaches as far back as settle.HistoryOf keeps it: whoever asks
// for a longer period than those of the policies has it kept there.
func (r *Round) ReplicasBefore(v *Variant, period time.Duration) int {
	start := v.From()
	for i := len(v.Old.History) - 1; i >= 0 && !v.Anew; i-- {
		s := &v.Old.History[i]
		switch {
		case v.IsShown() && r.Snapshot.Time.Sub(s.From) >= period:
			return s.Desired
		case r.Snapshot.Time.Sub(s.Until) >= period:
			return start
		}
		start = s.Replicas
	}
	return start
}

package decision

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// alternativeOf is the next best answer: the cheapest other mix of variants that would
// serve what is asked for, and what it costs; where a price is not known, which devices it takes.
// It keeps the bounds of the objects. In a
// cluster that does not grow it fits: its replicas are those that hold a node already and
// those for which the nodes have room all at once beside everything that this round asks
// for, so what the answer's own new replicas take is not offered twice. Where the cluster
// grows it says what to ask for, whether or not that fits now. It says nothing where there is none,
// and where so much work does not find it.
func alternativeOf(r *limit.Round, m *limit.Model, work allocation.Work) contract.Finding {
	if !m.Rated {
		return contract.Finding{}
	}
	options, variants := make([]allocation.Option, 0, len(m.Variants)), make([]*limit.Variant, 0, len(m.Variants))
	serve := capacity.Rate(0)
	signal.Each(m.Variants, func(v *limit.Variant) {
		options = append(options, allocation.Option{
			Cost: v.In.Cost, Serves: v.Rate.Serves(), Now: thereOf(v), Least: min(thereOf(v), v.Policy.Min), Most: availableOf(r, v),
		})
		variants = append(variants, v)
		serve += v.Rate.Serves() * capacity.Rate(v.Target)
	})
	if len(options) < 2 || serve <= 0 {
		return contract.Finding{}
	}
	best := allocation.Vector{Replicas: make([]int, len(options))}
	for i, v := range variants {
		best.Replicas[i] = v.Target
		best.Cost += v.In.Cost * capacity.Cost(v.Target)
	}
	// What is asked for, not the spare that the answer happens to have.
	need := min(serve, max(m.Need.Required, rate.OneMore))
	began := len(r.Placed)
	next, ok := work.Next(options, need, best)
	for ok && r.Policy.Limited && !allocate.PlaceAll(r, variants, next.Replicas, options, false) {
		allocate.TakeBack(r, began)
		next, ok = work.Next(options, need, best)
	}
	allocate.TakeBack(r, began)
	if !ok {
		return contract.Finding{}
	}
	found := contract.SaysAlternative.With(allocate.PricedMix(variants, next.Replicas), next.Cost, best.Cost)
	if allocate.Unpriced(variants) {
		found = contract.SaysAlternativeUnpriced.With(allocate.UnpricedMix(variants, next.Replicas), allocate.UnpricedMix(variants, best.Replicas))
	}
	if next.Cost < best.Cost {
		return contract.Clauses(found, preferredWhy(r, m, variants, next))
	}
	return found
}

// availableOf is how many replicas of the variant there could be instead of those that are
// asked for; negative means no bound.
func availableOf(r *limit.Round, v *limit.Variant) int {
	if !r.Policy.Limited {
		return v.Policy.Max
	}
	there, more := thereOf(v), 0
	switch {
	case v.Fleet.Paused > 0 || v.Fleet.Unhealthy:
	case v.Unknown() == nil:
		more = r.Slots(v.In.Request)
	default:
		return v.Policy.Max
	}
	return v.Bounded(there + more)
}

// thereOf is how many replicas of the variant need no more room: those that are asked for,
// and those on their way out that still hold a node.
func thereOf(v *limit.Variant) int {
	return max(v.Target, min(v.In.Current, v.In.Ready+len(v.In.Starting)-v.In.Unscheduled()))
}

// preferredWhy says why a mix that would cost less is not the answer: what keeps the
// replicas that it does without. As long as the same is in the way it says the same, in
// rounds that are not full too.
func preferredWhy(r *limit.Round, m *limit.Model, variants []*limit.Variant, next allocation.Vector) contract.Finding {
	for i, v := range variants {
		if v.Target <= next.Replicas[i] {
			continue
		}
		for _, s := range slices.Backward(v.Plan.Steps) {
			switch {
			case s.After <= s.Before || s.Stage != contract.StageBounds && s.Stage != contract.StageBehavior:
			case s.Reason == contract.ReasonRollingUpdate:
				return contract.SaysIsHeld.With(v.In.Name, s.Detail)
			default:
				return contract.SaysHeldByScaleDown.With(v.In.Name)
			}
		}
	}
	for i, v := range variants {
		if v.ScarceFor != nil && v.Target < next.Replicas[i] {
			return contract.SaysNeedsRoom.With(v.ScarceFor.As(v.Key.Namespace), v.In.Name)
		}
	}
	switch {
	case m.Need.Want == need.WantMore:
		return contract.SaysNoSwitchWhileMore.With()
	case m.Need.Want != need.WantLess:
		return contract.SaysNoSwitchWhileHeld.With()
	case r.Policy.Horizon <= 0:
		return contract.SaysSwitchesOff.With()
	case allocate.IsChanging(m):
		return contract.SaysNoSwitchWhileChanging.With()
	case allocate.TooFewLeft(m, allocate.With(allocate.ChangeTo(variants, next.Replicas).Mix)):
		return contract.SaysSwitchUndone.With()
	case !m.Next.Cheaper.IsZero():
		return contract.SaysSavingMustLast.With()
	}
	return contract.SaysSavesTooLittle.With()
}

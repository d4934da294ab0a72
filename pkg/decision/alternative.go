package decision

import (
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// workExplained is at how many choices a round looks to find the next best mix of a model, and which
// of its variants would grow. In random clusters a quarter of it suffices for models with a few
// variants.
const workExplained = 4000

// alternative is the next best answer: the cheapest other mix of variants that would
// serve what is asked for, and what it costs. It keeps the bounds of the objects. In a
// cluster that does not grow it fits: its replicas are those that hold a node already and
// those for which the nodes have room all at once beside everything that this round asks
// for, so what the answer's own new replicas take is not offered twice. Where the cluster
// grows it says what to ask for, whether or not that fits now. It is empty where there is none,
// and where so much work does not find it.
func (r *round) alternative(m *model, work allocation.Work) string {
	if !m.rated {
		return ""
	}
	options, variants := make([]allocation.Option, 0, len(m.variants)), make([]*variant, 0, len(m.variants))
	serve := capacity.Rate(0)
	m.each(func(v *variant) {
		options = append(options, allocation.Option{
			Cost: v.in.Cost, Serves: v.rate.serves(), Now: v.there(), Least: min(v.there(), v.policy.Min), Most: r.available(v),
		})
		variants = append(variants, v)
		serve += v.rate.serves() * capacity.Rate(v.target)
	})
	if len(options) < 2 || serve <= 0 {
		return ""
	}
	best := allocation.Vector{Replicas: make([]int, len(options))}
	for i, v := range variants {
		best.Replicas[i] = v.target
		best.Cost += v.in.Cost * capacity.Cost(v.target)
	}
	// What is asked for, not the spare that the answer happens to have.
	need := min(serve, max(m.need.required, oneMore))
	began := len(r.placed)
	next, ok := work.Next(options, need, best)
	for ok && r.policy.Limited && !r.placeAll(variants, next.Replicas, options, false) {
		r.takeBack(began)
		next, ok = work.Next(options, need, best)
	}
	r.takeBack(began)
	if !ok {
		return ""
	}
	var parts []string
	for i, n := range next.Replicas {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d of %s", n, variants[i].in.Name))
		}
	}
	told := fmt.Sprintf("%s for %.2f/h, now %.2f/h", strings.Join(parts, " and "), next.Cost, best.Cost)
	if next.Cost < best.Cost {
		told += "; " + r.preferred(m, variants, next)
	}
	return told
}

// available is how many replicas of the variant there could be instead of those that are
// asked for; negative means no bound.
func (r *round) available(v *variant) int {
	if !r.policy.Limited {
		return v.policy.Max
	}
	there, more := v.there(), 0
	switch {
	case v.fleet.paused > 0 || v.fleet.unhealthy:
	case r.unknown(v) == nil:
		more = r.slots(v.in.Request)
	default:
		return v.policy.Max
	}
	return v.bounded(there + more)
}

// there is how many replicas of the variant need no more room: those that are asked for,
// and those on their way out that still hold a node.
func (v *variant) there() int {
	return max(v.target, min(v.in.Current, v.in.Ready+len(v.in.Starting)-v.in.unscheduled()))
}

// preferred says why a mix that would cost less is not the answer: what keeps the
// replicas that it does without. As long as the same is in the way it says the same, in
// rounds that are not full too.
func (r *round) preferred(m *model, variants []*variant, next allocation.Vector) string {
	for i, v := range variants {
		if v.target <= next.Replicas[i] {
			continue
		}
		for _, s := range slices.Backward(v.plan.Steps) {
			switch {
			case s.After <= s.Before || s.Stage != StageBounds && s.Stage != StageBehavior:
			case s.Reason == ReasonRollingUpdate:
				return v.in.Name + " is held: " + s.Detail
			default:
				return v.in.Name + " is held by scaleDown"
			}
		}
	}
	for i, v := range variants {
		if v.scarceFor != nil && v.target < next.Replicas[i] {
			return fmt.Sprintf("%s needs the room of %s", v.scarceFor.as(v.key.Namespace), v.in.Name)
		}
	}
	switch {
	case m.need.want == wantMore:
		return "no switch while more is needed"
	case m.need.want != wantLess:
		return "no switch while replicas may not go"
	case r.policy.Horizon <= 0:
		return "switches are off"
	case m.changing():
		return "no switch while replicas start or go"
	case m.tooFew(with(changeTo(variants, next.Replicas).mix)):
		return "a switch to such a mix was undone: it serves less than it was taken to"
	case !m.next.Cheaper.IsZero():
		return "the saving must last as long as a scale-down waits"
	}
	return "it saves too little, or leaves too little headroom"
}

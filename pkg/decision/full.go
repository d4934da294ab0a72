package decision

import (
	"cmp"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Full is what a replica of a variant does which others wait for: it may be full with few
// requests in service, as where long prompts keep it busy, and its KV cache does not tell.
type Full struct {
	// InService is how many requests it has in service then, and 0 means unknown; Rate is what
	// it serves then.
	InService float64
	Rate      capacity.Rate
	// Unfed is the most that one without such a queue was seen to serve, and Shape what of all
	// that is.
	Unfed capacity.Rate
	Shape capacity.TokenShape
	// Fed is since when most of the replicas, but for those that just began, have more waiting than
	// in service, zero while they have not, and Sure is set once they had for a whole metrics window.
	Fed  time.Time
	Sure bool
}

// known reports whether that is so. A full replica serves the most: one that serves less than
// others did without a queue is not full but slow, for a reason that more replicas may share.
// Where none was ever without one, as after a start with more requests than they serve, what
// they show is all that is known.
func (f *Full) known() bool {
	return f.Sure && f.InService > 0 && f.Rate >= (1-settledWithin)*f.Unfed
}

// fullOf is what the variant's replicas do when they are full. It is the most that was seen while
// most of them were fed: those that just began show less, and so do those whose queue drains,
// before it is gone from the window's mean. It stands until one has more in service, or the
// requests have other lengths.
func (r *round) fullOf(v *variant, shape capacity.TokenShape) Full {
	full, fed, began, most, fullest := v.old.Full, 0, 0, 0.0, &Replica{}
	if v.in.Rolling || !sameShape(full.Shape, shape) {
		full = Full{Shape: shape}
	}
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if r.fledgling(p) {
			began++
		}
		if v.odd.at(i) || !r.fresh(p.Running, p.Served) || p.Served.Value == 0 || !r.settled(p) {
			continue
		}
		most = max(most, p.Running.Value)
		if !r.fed(p) {
			full.Unfed = max(full.Unfed, capacity.Rate(p.Served.Value))
			continue
		}
		if fed++; p.Running.Value > fullest.Running.Value {
			fullest = p
		}
	}
	if fed <= max(0, v.in.Ready-began-fed) {
		full.Fed = time.Time{}
	} else {
		full.Fed = cmp.Or(full.Fed, r.snapshot.Time)
		full.Sure = full.Sure || r.snapshot.Time.Sub(full.Fed) >= r.policy.Window
		if fullest.Running.Value > full.InService {
			full.InService, full.Rate = fullest.Running.Value, capacity.Rate(fullest.Served.Value)
		}
	}
	if most > (1+settledWithin)*full.InService {
		full.InService, full.Rate, full.Sure = 0, 0, false
	}
	return full
}

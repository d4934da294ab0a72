package rate

import (
	"cmp"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// IsFull reports whether that is so. A full replica serves the most: one that serves less than
// others did without a queue is not full but slow, for a reason that more replicas may share.
// Where none was ever without one, as after a start with more requests than they serve, what
// they show is all that is known.
func IsFull(f *contract.ObservedLimit) bool {
	return f.Sure && f.InService > 0 && f.Rate >= (1-signal.SettledWithin)*f.Unfed
}

// fullOf is what the variant's replicas do when they are full. It is the most that was seen while
// most of them were fed: those that just began show less, and so do those whose queue drains,
// before it is gone from the window's mean. It stands until one has more in service, or the
// requests have other lengths.
func (v *Variant) fullOf(shape capacity.TokenShape) contract.ObservedLimit {
	full, fed, began, most, fullest := v.Old.Full, 0, 0, 0.0, &contract.Replica{}
	if v.In.Rolling || !signal.SameShape(full.Shape, shape) {
		full = contract.ObservedLimit{Shape: shape}
	}
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		if v.Round.Fledgling(p) {
			began++
		}
		if v.Odd.At(i) || !v.Round.Fresh(p.Running, p.Served) || p.Served.Value == 0 || !v.Round.Settled(p) {
			continue
		}
		most = max(most, p.Running.Value)
		if !v.Round.Fed(p) {
			full.Unfed = max(full.Unfed, capacity.Rate(p.Served.Value))
			continue
		}
		if fed++; p.Running.Value > fullest.Running.Value {
			fullest = p
		}
	}
	if fed <= max(0, v.In.Ready-began-fed) {
		full.Fed = time.Time{}
	} else {
		full.Fed = cmp.Or(full.Fed, v.Round.Snapshot.Time)
		full.Sure = full.Sure || v.Round.Snapshot.Time.Sub(full.Fed) >= v.Round.Policy.Window
		if fullest.Running.Value > full.InService {
			full.InService, full.Rate = fullest.Running.Value, capacity.Rate(fullest.Served.Value)
		}
	}
	if most > (1+signal.SettledWithin)*full.InService {
		full.InService, full.Rate, full.Sure = 0, 0, false
	}
	return full
}

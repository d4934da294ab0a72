package limit

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// MostReplicas is the largest number that a scale subresource holds.
const MostReplicas = math.MaxInt32

// Minimum raises the variant to its minReplicas, and takes the room for that before anybody
// grows: in a cluster that does not grow as far as they fit.
func (r *Round) Minimum(v *Variant) {
	missing, lacks := v.Policy.Min-v.Target, contract.Finding{}
	if missing <= 0 {
		return
	}
	add := missing
	switch {
	case v.Unknown() != nil:
	case !r.Policy.Limited:
		add = min(missing, r.Allowed(v))
		r.Take(v, add)
		if add < missing {
			lacks = r.noRoom(v)
		}
	case v.Fleet.Paused > 0:
		add, lacks = 0, v.PausedFor()
	default:
		if add = len(r.place(v, v.OneAtATime(missing))); add < missing {
			lacks = r.noRoom(v)
		}
	}
	if !lacks.None() {
		detail := contract.Clauses(contract.SaysMinimum.With(v.Policy.Min), lacks)
		v.Fact(contract.ReasonNoSlots, detail)
		v.Note(contract.StageAllocation, contract.ReasonNoSlots, detail)
	}
	if add > 0 {
		says := contract.SaysMinimum
		if most, _ := r.MayReach(v); v.Target+add > most {
			says = contract.SaysMinimumBypasses
		}
		v.Step(contract.StageAllocation, v.Target+add, contract.ReasonMinReplicas, says.With(v.Policy.Min))
	}
}

// Bounds keeps each variant below its maxReplicas.
func (r *Round) Bounds(m *Model) {
	signal.Each(m.Variants, func(v *Variant) {
		switch most := v.Bounded(MostReplicas); {
		case v.Target > most && most < MostReplicas:
			v.Step(contract.StageBounds, most, contract.ReasonMaxReplicas, v.Maximum())
		case v.Target > most:
			v.Step(contract.StageBounds, most, contract.ReasonMaxReplicas, contract.SaysHoldsNoMore.With(most))
		case v.Target < v.Policy.Min:
			v.Note(contract.StageBounds, contract.ReasonNoSlots, contract.SaysMinimum.With(v.Policy.Min))
		default:
			v.Note(contract.StageBounds, contract.ReasonSteady, contract.SaysWithinBounds.With())
		}
	})
}

package allocate

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// KeepOne gives the model one replica, and reports whether any variant may have it. Where it is
// known what one serves, growth adds to it what those that wait need. Stage is the one that asks.
func KeepOne(r *limit.Round, m *limit.Model, stage contract.Stage) bool {
	none := m.Total() == 0
	keep := keeperOf(r, m, none)
	signal.Each(m.Variants, func(v *limit.Variant) {
		switch {
		case keep == nil && !none:
			v.Note(stage, contract.ReasonSteady, contract.SaysNoOtherFits.With())
		case keep == nil:
			detail := contract.Clauses(contract.SaysNothingFits.With(), r.Crowded(v))
			v.Note(stage, contract.ReasonNoSlots, detail)
			v.Settle(contract.ReasonNoSlots, detail)
		case v != keep:
			v.Note(stage, contract.ReasonSteady, contract.SaysKeeps.With(keep.In.Name))
			if v.Price < keep.Price && r.Full(v) {
				v.Fact(contract.ReasonNoSlots, r.Crowded(v))
			}
		case m.Called():
			v.Step(stage, v.Target+1, contract.ReasonWake, contract.SaysWakes.With(int(math.Round(m.Demand.Backlog))))
		default:
			v.Step(stage, v.Target+1, contract.ReasonKeepOne, contract.SaysKeptOne.With())
		}
	})
	return keep != nil
}

// keeperOf is the variant with the least price of which one more replica fits; one that is
// left alone or cannot keep the promise only when there is no other; in a cluster that
// grows and if anything will do, the cheapest of all when none fits. Beside others scaleUp has
// to allow it. Nil means none.
func keeperOf(r *limit.Round, m *limit.Model, anything bool) *limit.Variant {
	var best *limit.Variant
	least := 0
	signal.Each(m.Variants, func(v *limit.Variant) {
		fits := v.OneAtATime(1) > 0 && !r.Full(v)
		forbidden := v.Policy.Up.Select == contract.SelectDisabled || v.Bounded(v.Target+1) == v.Target || v.Target > 0 && r.MayAdd(v) == 0
		if forbidden || !fits && (!anything || r.Policy.Limited || r.Allowed(v) == 0) || v.Fleet.Paused > 0 && !anything {
			return
		}
		rank := 0
		for i, worse := range []bool{v.Rate.Unfit(), v.Fleet.Paused > 0, !fits} {
			if worse {
				rank |= 1 << i
			}
		}
		if best == nil || rank < least || rank == least && v.Price < best.Price {
			best, least = v, rank
		}
	})
	if best != nil && best.Unknown() == nil {
		r.Take(best, 1)
	}
	return best
}

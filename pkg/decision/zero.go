package decision

import "cmp"

// zero keeps one replica of the model, on its cheapest variant that fits. A replica
// that waits in vain for a node keeps nothing.
func zero(r *round, m *model) {
	total, alive := 0, 0
	for _, v := range m.variants {
		if v.exists() {
			total += v.target
			alive += max(0, v.target-v.lost+v.back)
		}
	}
	if alive > 0 {
		m.each(func(v *variant) { v.note(StageZero, ReasonSteady, "the model has a replica") })
		return
	}
	keep := r.cheapestFitting(m, total == 0)
	m.each(func(v *variant) {
		switch {
		case keep == nil && total > 0:
			v.note(StageZero, ReasonSteady, "no other variant fits that could keep the model's replica")
		case keep == nil:
			r.nothingFits(v)
		case v != keep:
			v.note(StageZero, ReasonSteady, "another variant keeps the model's replica")
			if why := r.crowded(v); why != "" && v.in.Cost < keep.in.Cost {
				r.deny(v, max(v.serves, oneMore, r.next.Denied[v.key]), why)
			}
		case m.plan.Demand != nil && m.plan.Demand.Backlog > 0:
			v.least, v.leastReason = v.target+1, ReasonWake
			v.step(StageZero, v.target+1, ReasonWake, "%.0f requests wait and nothing serves", m.plan.Demand.Backlog)
		default:
			v.least, v.leastReason = v.target+1, ReasonKeepOne
			v.step(StageZero, v.target+1, ReasonKeepOne, "a model keeps one replica, on its cheapest variant that fits")
		}
	})
}

// nothingFits records why the model gets no replica of the variant.
func (r *round) nothingFits(v *variant) {
	reason, detail := ReasonNoSlots, "the model has no replica, and none fits or is allowed"
	if why := r.unknown(v); why != nil && !r.guesses(v) {
		reason, detail = ReasonCapacityUnknown, "the model has no replica, and nobody knows whether one fits: "+why.Error()
	} else if why := r.crowded(v); why != "" {
		detail += "; " + why
	}
	v.note(StageZero, reason, "%s", detail)
	if reason == ReasonNoSlots {
		v.plan.Facts = append(v.plan.Facts, Fact{reason, detail})
	}
	v.plan.Reason, v.plan.Message = reason, detail
}

// cheapestFitting is the variant with the least cost of one replica of which one
// fits, one that is left alone only when there is no other; in a cluster that grows
// and if anything will do, the cheapest of all when none fits. Nil means that there is
// none.
func (r *round) cheapestFitting(m *model, anything bool) *variant {
	var fits, paused, cheapest *variant
	better := func(v, best *variant) bool { return best == nil || v.in.Cost < best.in.Cost }
	m.each(func(v *variant) {
		if v.headroom(0) == 0 || r.unknown(v) != nil && !r.guesses(v) {
			return
		}
		if better(v, cheapest) {
			cheapest = v
		}
		switch fitting := r.fitting(v) != 0; {
		case fitting && v.paused > 0 && better(v, paused):
			paused = v
		case fitting && v.paused == 0 && better(v, fits):
			fits = v
		}
	})
	if fits == nil && anything && !r.policy.Limited {
		fits = cmp.Or(paused, cheapest)
	}
	if fits != nil && r.unknown(fits) == nil {
		r.place(fits.in, 1)
	}
	return fits
}

package decision

// zero keeps one replica of the model, on its cheapest variant that fits.
func zero(r *round, m *model) {
	total := 0
	for _, v := range m.variants {
		if v.exists() {
			total += v.target
		}
	}
	if total > 0 {
		m.each(func(v *variant) { v.note(StageZero, ReasonSteady, "the model has a replica") })
		return
	}
	keep := r.cheapestFitting(m)
	m.each(func(v *variant) {
		switch {
		case keep == nil:
			detail := "the model has no replica, and none fits or is allowed"
			if why := r.crowded(v); why != "" {
				detail += "; " + why
			}
			v.note(StageZero, ReasonNoSlots, "%s", detail)
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
			v.plan.Reason, v.plan.Message = ReasonNoSlots, detail
		case v != keep:
			v.note(StageZero, ReasonSteady, "another variant keeps the model's replica")
		case m.plan.Demand != nil && m.plan.Demand.Backlog > 0:
			v.least, v.leastReason = 1, ReasonWake
			v.step(StageZero, 1, ReasonWake, "%.0f requests wait and nothing serves", m.plan.Demand.Backlog)
		default:
			v.least, v.leastReason = 1, ReasonKeepOne
			v.step(StageZero, 1, ReasonKeepOne, "a model keeps one replica, on its cheapest variant that fits")
		}
	})
}

// cheapestFitting is the variant with the least cost of one replica of which one
// fits; in a cluster that grows, the cheapest of all when none does. Nil means
// that there is none.
func (r *round) cheapestFitting(m *model) *variant {
	var fits, cheapest *variant
	m.each(func(v *variant) {
		if v.policy.Max == 0 {
			return
		}
		if cheapest == nil || v.in.Cost < cheapest.in.Cost {
			cheapest = v
		}
		if r.fitting(v) != 0 && (fits == nil || v.in.Cost < fits.in.Cost) {
			fits = v
		}
	})
	if fits == nil && !r.policy.Limited {
		fits = cheapest
	}
	if fits != nil && r.unknown(fits) == nil {
		r.place(fits.in, 1)
	}
	return fits
}

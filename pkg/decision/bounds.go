package decision

// bounds keeps each variant between its minReplicas and maxReplicas. A minimum is
// the user's own word: it holds even where nothing fits.
func bounds(r *round, m *model) {
	m.each(func(v *variant) {
		if v.policy.Min > v.least {
			v.least, v.leastReason = v.policy.Min, ReasonMinReplicas
		}
		switch p := v.policy; {
		case v.target < p.Min:
			v.step(StageBounds, p.Min, ReasonMinReplicas, "minReplicas is %d", p.Min)
		case p.Max >= 0 && v.target > p.Max:
			v.step(StageBounds, p.Max, ReasonMaxReplicas, "maxReplicas is %d", p.Max)
		default:
			v.note(StageBounds, ReasonSteady, "within bounds")
		}
	})
}

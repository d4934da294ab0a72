package decision

import "fmt"

// bounds keeps each variant between its minReplicas and maxReplicas. A minimum holds
// as far as its replicas may be added: in a cluster that does not grow they must fit.
func bounds(r *round, m *model) {
	m.each(func(v *variant) {
		least, reason, lacks := r.leastPossible(v)
		if least > v.least {
			v.least, v.leastReason = least, ReasonMinReplicas
		}
		switch p := v.policy; {
		case v.target < least:
			v.step(StageBounds, least, ReasonMinReplicas, "minReplicas is %d%s", p.Min, lacks)
		case p.Max >= 0 && v.target > p.Max:
			v.step(StageBounds, p.Max, ReasonMaxReplicas, "maxReplicas is %d", p.Max)
		case lacks != "":
			v.note(StageBounds, reason, "minReplicas is %d%s", p.Min, lacks)
		default:
			v.note(StageBounds, ReasonSteady, "within bounds")
		}
		if reason == ReasonNoSlots {
			v.plan.Facts = append(v.plan.Facts, Fact{reason, fmt.Sprintf("minReplicas is %d%s", v.policy.Min, lacks)})
		}
	})
}

// leastPossible is the minimum as far as it may be asked for, and what is in the way
// of the rest. It takes the room of what the minimum adds.
func (r *round) leastPossible(v *variant) (least int, reason Reason, lacks string) {
	least = v.policy.Min
	from := max(v.target, v.in.Current-v.lost, 0)
	if least <= from {
		return least, "", ""
	}
	if err := r.unknown(v); err != nil {
		if r.guesses(v) {
			return least, "", ""
		}
		return from, ReasonCapacityUnknown, "; " + err.Error()
	}
	if !r.policy.Limited {
		return least, "", ""
	}
	if v.paused > 0 {
		return from, ReasonNoSlots, "; " + v.pausedDetail()
	}
	fits := r.place(v.in, r.atMost(v, least-from))
	if from+fits == least {
		return least, "", ""
	}
	return from + fits, ReasonNoSlots, "; " + r.cluster.Explain(v.in.Request).String()
}

package decision

import (
	"fmt"
	"math"
)

// mostReplicas is the largest number that a scale subresource holds.
const mostReplicas = math.MaxInt32

// bounds keeps each variant between its minReplicas and maxReplicas. A minimum holds
// as far as its replicas may be added: in a cluster that does not grow they must fit.
func bounds(r *round, m *model) {
	m.each(func(v *variant) {
		least, reason, lacks := v.minimum.least, v.minimum.reason, v.minimum.lacks
		if least > v.least {
			v.least, v.leastReason = least, ReasonMinReplicas
		}
		v.least = min(v.least, mostReplicas)
		switch p := v.policy; {
		case v.target < least:
			v.step(StageBounds, least, ReasonMinReplicas, "minReplicas is %d%s", p.Min, lacks)
		case p.Max >= 0 && v.target > p.Max:
			v.step(StageBounds, p.Max, ReasonMaxReplicas, "maxReplicas is %d", p.Max)
		case v.target > mostReplicas:
			v.step(StageBounds, mostReplicas, ReasonMaxReplicas, "a scale target holds no more than %d", mostReplicas)
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

// minimum is a variant's lower bound as far as it may be asked for.
type minimum struct {
	least int
	// held is how many replicas beyond the target have their room already.
	held int
	// reason and lacks say what is in the way of the rest.
	reason Reason
	lacks  string
}

// minimumOf is the variant's lower bound as far as it may be asked for: in a cluster
// that does not grow its replicas must fit. It takes the room of what the bound adds.
func (r *round) minimumOf(v *variant) minimum {
	m := minimum{least: v.policy.Min}
	from := max(v.target, v.in.Current-v.fleet.unplaced(), 0)
	if m.least <= from {
		return m
	}
	if r.unknown(v) != nil {
		m.held = m.least - from
		return m
	}
	if !r.policy.Limited {
		// What fits nowhere yet counts against quotas too.
		m.held = min(m.least-from, r.allowed(v))
		r.trial.Charge(v.in.Request, m.held-r.place(v.in, m.held))
	} else {
		if v.fleet.paused > 0 {
			return minimum{least: from, reason: ReasonNoSlots, lacks: "; " + v.pausedDetail()}
		}
		m.held = r.place(v.in, r.atMost(v, m.least-from))
	}
	if from+m.held == m.least {
		return m
	}
	m.least, m.reason, m.lacks = from+m.held, ReasonNoSlots, "; "+r.trial.Explain(v.in.Request).String()
	return m
}

package decision

import (
	"fmt"
)

// limits says what the nodes allow, and in a cluster that does not grow gives back
// what was asked for and fits nowhere.
func limits(r *round, m *model) {
	m.each(func(v *variant) {
		switch {
		case r.cluster == nil && m.wants == wantMore && r.policy.Limited:
			v.note(StageLimits, ReasonCapacityUnknown, "the nodes could not be read, so nothing is added")
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonCapacityUnknown, "the nodes could not be read"})
		case r.policy.Limited && v.lost > 0 && v.target == v.in.Current:
			v.step(StageLimits, max(0, v.target-v.lost), ReasonNoSlots, "no node holds %s", plural(v.lost, "replica", "replicas"))
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, v.plan.Message})
		case m.short > 0:
			v.lacks(m)
		case v.plan.Slots != nil:
			v.note(StageLimits, ReasonSteady, "%s", v.plan.Slots.detail())
		default:
			v.note(StageLimits, ReasonCapacityUnknown, "the nodes could not be read")
		}
	})
}

// lacks records that the model could not get all that it wants.
func (v *variant) lacks(m *model) {
	detail := m.load.detail + "; no more replicas fit or are allowed"
	if m.missing > 0 {
		detail = fmt.Sprintf("%s; %.2f of %.2f requests/s stay unserved, because no more replicas fit or are allowed", m.load.detail, m.short, m.required)
	}
	v.note(StageLimits, ReasonNoSlots, "%s", detail)
	v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
	if v.target == v.in.Current {
		v.plan.Reason, v.plan.Message = ReasonNoSlots, detail
	}
}

func (s Slots) detail() string {
	if s.Bound != "" {
		return fmt.Sprintf("at most %d more fit; %s is not modelled", s.Count, s.Bound)
	}
	return fmt.Sprintf("%d more fit", s.Count)
}

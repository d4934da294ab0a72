package decision

import (
	"fmt"
)

// limits says what the nodes allow, and in a cluster that does not grow gives back
// what was asked for and fits nowhere.
//
// The model's last replica is not given back: while it waits it says why.
func limits(r *round, m *model) {
	total := 0
	for _, v := range m.variants {
		if v.exists() {
			total += v.target
		}
	}
	m.each(func(v *variant) {
		back := min(v.lost, total-1)
		switch {
		case r.cluster == nil && m.wants == wantMore && r.policy.Limited:
			v.note(StageLimits, ReasonCapacityUnknown, "the nodes could not be read, so nothing is added")
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonCapacityUnknown, "the nodes could not be read"})
		case r.policy.Limited && v.lost > 0 && v.target == v.in.Current:
			detail := "no node holds " + plural(v.lost, "replica", "replicas")
			v.step(StageLimits, v.target-max(back, 0), ReasonNoSlots, "%s", detail)
			total -= max(back, 0)
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
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

package decision

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// limits says what the nodes allow, and gives back what does not come up, and what was
// asked for and fits nowhere: that at once in a cluster that does not grow; in one that
// does, once replicas that hold a node serve the demand without it.
//
// The model's last replica is not given back: while it waits it says why.
func limits(r *round, m *model) {
	total := 0
	for _, v := range m.variants {
		if v.exists() {
			total += v.target
		}
	}
	// While the data do not allow a decision, nothing is given back either.
	decides := m.evidence <= evidencePartial
	homeless := decides && (r.policy.Limited || m.housed())
	m.each(func(v *variant) {
		back := 0
		if v.target <= v.in.Current && decides {
			gone := v.failed
			if homeless {
				gone += v.lost
			}
			// Some may be on their way out for want of load.
			back = max(0, min(v.target-v.in.Current+gone, total-1))
			v.back = min(gone, v.in.Current-v.target+back)
		}
		switch {
		case back > 0:
			detail := r.lostDetail(v) + "; " + v.pausedDetail()
			v.step(StageLimits, v.target-back, ReasonNoSlots, "%s", detail)
			total -= back
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
		case v.lost+v.failed > 0:
			detail := r.lostDetail(v)
			v.note(StageLimits, ReasonNoSlots, "%s", detail)
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
		case m.short > 0:
			r.lacks(m, v)
		case v.plan.Slots != nil:
			v.note(StageLimits, ReasonSteady, "%s", v.plan.Slots.detail())
		default:
			v.note(StageLimits, ReasonCapacityUnknown, "%v", r.unknown(v))
		}
	})
}

// lostDetail says what the replicas lack that do not come up, and what is in the way of
// those that no node holds.
func (r *round) lostDetail(v *variant) string {
	detail := v.stuckDetail()
	if why := r.crowded(v); why != "" && v.lost > v.absent {
		detail += "; " + why
	}
	return detail
}

func (v *variant) stuckDetail() string {
	if v.failed > 0 {
		detail := plural(v.failed, "replica does", "replicas do") + " not come up"
		if v.lost > 0 {
			detail += "; " + v.homelessDetail()
		}
		return detail
	}
	return v.homelessDetail()
}

func (v *variant) homelessDetail() string {
	homeless := v.lost - v.absent
	switch {
	case v.absent == 0:
		return "no node holds " + plural(homeless, "replica", "replicas")
	case homeless == 0:
		return plural(v.absent, "replica has", "replicas have") + " no pod"
	default:
		return fmt.Sprintf("no node holds %s and %s no pod", plural(homeless, "replica", "replicas"), plural(v.absent, "has", "have"))
	}
}

// housed reports whether the replicas that hold a node serve, or will serve, all that
// is asked of the model.
func (m *model) housed() bool {
	if !m.demand.seen || !m.knowsRates() {
		return false
	}
	rate := capacity.Rate(0)
	for _, v := range m.variants {
		if v.exists() {
			rate += v.serves * m.demand.caution * capacity.Rate(v.in.Ready+len(v.in.Starting)-v.in.unscheduled()-v.failed)
		}
	}
	return rate >= max(m.required, m.least())
}

// lacks records that the model could not get all that it wants, and what is in the way
// at this variant.
func (r *round) lacks(m *model, v *variant) {
	reason, why := r.obstacle(v)
	detail := m.load.detail + "; " + why
	if m.missing > 0 {
		detail = fmt.Sprintf("%s; %.2f of %.2f requests/s stay unserved; %s", m.load.detail, m.short, m.required, why)
	}
	v.note(StageLimits, reason, "%s", detail)
	if reason == ReasonNoSlots {
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
	}
	if v.target == v.in.Current {
		v.plan.Reason, v.plan.Message = reason, detail
	}
}

// obstacle says what keeps the variant from having one more replica.
func (r *round) obstacle(v *variant) (Reason, string) {
	switch {
	case v.headroom(0) == 0:
		return ReasonMaxReplicas, fmt.Sprintf("maxReplicas is %d", v.policy.Max)
	case v.unfit:
		return ReasonSLO, "it cannot keep the promised latency"
	case r.full(v):
		return ReasonNoSlots, "no more replicas fit; " + r.crowded(v)
	case v.paused > 0:
		return ReasonBackingOff, v.pausedDetail()
	}
	return ReasonNoSlots, "no more replicas fit"
}

func (s Slots) detail() string {
	if s.Bound != "" {
		return fmt.Sprintf("at most %d more fit; %s is not modelled", s.Count, s.Bound)
	}
	return fmt.Sprintf("%d more fit", s.Count)
}

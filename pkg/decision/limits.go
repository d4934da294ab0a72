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
	unplaced := decides && (r.policy.Limited || m.housed())
	m.each(func(v *variant) {
		back := 0
		if v.target <= v.in.Current && decides {
			gone := v.fleet.hopeless()
			if unplaced {
				gone += v.fleet.unplaced()
			}
			// What a rolling update made on top is not among those that are asked for.
			gone = min(gone, max(0, v.in.Current-v.in.Ready-v.fleet.count[statePending]))
			// Some may be on their way out for want of load.
			back = max(0, min(v.target-v.in.Current+gone, total-1))
			v.giveBack = min(gone, v.in.Current-v.target+back)
		}
		switch {
		case back > 0:
			detail := r.lostDetail(v) + "; " + v.pausedDetail()
			v.step(StageLimits, v.target-back, ReasonNoSlots, "%s", detail)
			total -= back
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, detail})
		case v.fleet.unplaced()+v.fleet.hopeless() > 0:
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
	detail := v.unhealthyDetail()
	if why := r.crowded(v); why != "" && v.fleet.count[stateUnschedulable] > 0 {
		detail += "; " + why
	}
	return detail
}

func (v *variant) unhealthyDetail() string {
	if n := v.fleet.hopeless(); n > 0 {
		detail := plural(n, "replica does", "replicas do") + " not come up"
		if v.fleet.unplaced() > 0 {
			detail += "; " + v.unplacedDetail()
		}
		return detail
	}
	return v.unplacedDetail()
}

func (v *variant) unplacedDetail() string {
	unscheduled, absent := v.fleet.count[stateUnschedulable], v.fleet.count[stateNoPod]
	switch {
	case absent == 0:
		return "no node holds " + plural(unscheduled, "replica", "replicas")
	case unscheduled == 0:
		return plural(absent, "replica has", "replicas have") + " no pod"
	default:
		return fmt.Sprintf("no node holds %s and %s no pod", plural(unscheduled, "replica", "replicas"), plural(absent, "has", "have"))
	}
}

// housed reports whether the replicas that hold a node serve, or will serve, all that
// is asked of the model.
func (m *model) housed() bool {
	if !m.demand.seen || !m.rated {
		return false
	}
	rate := capacity.Rate(0)
	for _, v := range m.variants {
		if v.exists() {
			rate += v.rate.serves() * capacity.Rate(v.in.Ready+len(v.in.Starting)-v.in.unscheduled()-v.fleet.hopeless())
		}
	}
	return rate >= max(m.need.required, m.least())
}

// lacks records that the model could not get all that it wants, and what is in the way
// at this variant.
func (r *round) lacks(m *model, v *variant) {
	reason, why := r.obstacle(v)
	detail := m.need.detail + "; " + why
	if m.need.missing > 0 {
		detail = fmt.Sprintf("%s; %.2f of %.2f requests/s stay unserved; %s", m.need.detail, m.short, m.need.required, why)
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
	switch most, why := r.mayReach(v); {
	case v.policy.Max >= 0 && v.target >= v.policy.Max:
		return ReasonMaxReplicas, fmt.Sprintf("maxReplicas is %d", v.policy.Max)
	case v.target >= most:
		return ReasonRateLimited, why
	case v.policy.Up.Window > 0 && r.heldUp(v, v.ideal) < v.ideal:
		return ReasonStabilized, fmt.Sprintf("fewer were wanted within the last %s", v.policy.Up.Window)
	case v.rate.unfit():
		return ReasonSLO, "it cannot keep the promised latency"
	case r.full(v):
		return ReasonNoSlots, "no more replicas fit; " + r.crowded(v)
	case v.fleet.paused > 0:
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

package decision

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// limits says what the nodes allow, and gives back what does not come up, and what was
// asked for and fits nowhere: that at once in a cluster that does not grow; in one that
// does, once replicas that hold a node serve the demand without it. It returns how many
// replicas of each variant are given back.
//
// The model's last replica is not given back: while it waits it says why.
func (r *round) limits(m *model, short capacity.Rate, ideal map[*variant]int) map[*variant]int {
	giveBack := map[*variant]int{}
	total := m.total()
	// While the data do not allow a decision, nothing is given back either.
	decides := m.evidence <= evidencePartial
	unplaced := decides && (r.policy.Limited || m.placedSuffices())
	m.each(func(v *variant) {
		back := 0
		if v.target <= v.in.Current && decides {
			gone := 0
			if v.fleet.count[statePending] == 0 {
				// Kubernetes would remove what starts before what does not come up.
				gone = v.hopeless()
			}
			if unplaced {
				gone += v.fleet.unplaced()
			}
			// What a rolling update made on top is not among those that are asked for.
			gone = min(gone, max(0, v.in.Current-v.in.Ready-v.fleet.count[statePending]))
			// Some may be on their way out for want of load.
			back = max(0, min(v.target-v.in.Current+gone, total-1))
			least := v.policy.Min
			if r.policy.Limited && r.unknown(v) == nil {
				// No node comes for them, so that minReplicas does not ask for them again.
				least -= v.fleet.unplaced()
			}
			back = max(0, min(back, v.target-least))
			if n := min(gone, v.in.Current-v.target+back); n > 0 {
				giveBack[v] = n
			}
		}
		lost := v.fleet.lost()
		if v.fleet.count[stateUnschedulable] > 0 && r.full(v) {
			lost += "; " + r.crowded(v)
		}
		reason := v.fleet.lostTo()
		switch {
		case back > 0:
			v.fact(reason, "%s; withdrawn", lost)
			if v.fleet.paused > 0 {
				lost += "; " + v.pausedDetail()
			}
			v.step(StageLimits, v.target-back, reason, "%s", lost)
			total -= back
		case lost != "":
			v.fact(reason, "%s", lost)
			v.note(StageLimits, reason, "%s", lost)
		case short > 0:
			r.lacks(m, v, short, ideal[v])
		case v.plan.Slots != nil:
			v.note(StageLimits, ReasonSteady, "%s", v.plan.Slots.detail())
		default:
			v.note(StageLimits, ReasonCapacityUnknown, "%v", r.unknown(v))
		}
	})
	return giveBack
}

// placedSuffices reports whether the replicas that hold a node serve, or will serve, all
// that is asked of the model.
func (m *model) placedSuffices() bool {
	if !m.demand.seen || !m.rated || m.need.want == wantMore {
		return false
	}
	rate := m.served(func(v *variant) int { return v.in.Ready + len(v.in.Starting) - v.in.unscheduled() - v.hopeless() })
	return rate >= max(m.need.required, m.least())
}

// lacks records that the model could not get all that it wants, and what is in the way
// at this variant.
func (r *round) lacks(m *model, v *variant, short capacity.Rate, ideal int) {
	reason, why := r.obstacle(v, ideal)
	detail, message := m.need.detail+"; "+why, why
	if m.need.missing > 0 {
		unserved := fmt.Sprintf("%s of %s req/s unserved", perSecond(short), perSecond(m.need.required))
		detail, message = fmt.Sprintf("%s; %s; %s", m.need.detail, unserved, why), joined(why, unserved)
	}
	v.note(StageLimits, reason, "%s", detail)
	if reason == ReasonNoSlots {
		v.fact(ReasonNoSlots, "%s req/s unserved; %s", perSecond(short), why)
	}
	if v.target == v.in.Current {
		v.plan.Reason, v.plan.Message = reason, message
	}
}

// obstacle says what keeps the variant from having one more replica; ideal is what it would
// have if no window of scaleUp held it.
func (r *round) obstacle(v *variant, ideal int) (Reason, string) {
	switch most, why := r.mayReach(v); {
	case v.bounded(v.target+1) <= v.target:
		return ReasonMaxReplicas, v.maximum()
	case v.target >= most:
		return ReasonRateLimited, why
	case v.policy.Up.Window > 0 && r.heldUp(v, ideal, ideal) < ideal:
		return ReasonStabilized, fmt.Sprintf("scaleUp.stabilizationWindowSeconds (%s) holds it", v.policy.Up.Window)
	case v.tolerates(v.policy.Up, v.target+1):
		return ReasonWithinTolerance, fmt.Sprintf("within scaleUp.tolerance (%.0f %%)", 100*v.policy.Up.Tolerance)
	case v.rate.unfit():
		return ReasonSLO, "misses the SLO even when idle"
	case r.full(v):
		return ReasonNoSlots, "0 more fit; " + r.crowded(v)
	case v.fleet.paused > 0:
		return ReasonBackingOff, v.pausedDetail()
	}
	return ReasonNoSlots, "no more fit"
}

func (s Slots) detail() string {
	if s.Bound != "" {
		return fmt.Sprintf("up to %d more fit; not modelled: %s", s.Count, s.Bound)
	}
	return fmt.Sprintf("%d more fit", s.Count)
}

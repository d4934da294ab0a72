package limit

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Limits says what the nodes allow, and gives back what does not come up, and what was
// asked for and fits nowhere: that at once in a cluster that does not grow; in one that
// does, once replicas that hold a node serve the demand without it. It returns how many
// replicas of each variant are given back.
//
// The model's last replica is not given back: while it waits it says why.
func (r *Round) Limits(m *Model, short capacity.Rate, ideal map[*Variant]int) map[*Variant]int {
	giveBack := map[*Variant]int{}
	total := m.Total()
	// While the data do not allow a decision, nothing is given back either.
	decides := m.Evidence <= signal.EvidencePartial
	unplaced := decides && (r.Policy.Limited || m.PlacedSuffices())
	signal.Each(m.Variants, func(v *Variant) {
		back := 0
		if v.Target <= v.In.Current && decides {
			gone := 0
			if v.Fleet.Count[fleet.StatePending] == 0 {
				// Kubernetes would remove what starts before what does not come up.
				gone = v.Hopeless()
			}
			if unplaced {
				gone += v.Fleet.Unplaced()
			}
			// What a rolling update made on top is not among those that are asked for.
			gone = min(gone, max(0, v.In.Current-v.In.Ready-v.Fleet.Count[fleet.StatePending]))
			// Some may be on their way out for want of load.
			back = max(0, min(v.Target-v.In.Current+gone, total-1))
			least := v.Policy.Min
			if r.Policy.Limited && v.Unknown() == nil {
				// No node comes for them, so that minReplicas does not ask for them again.
				least -= v.Fleet.Unplaced()
			}
			back = max(0, min(back, v.Target-least))
			if n := min(gone, v.In.Current-v.Target+back); n > 0 {
				giveBack[v] = n
			}
		}
		lost := v.Fleet.Lost()
		if v.Fleet.Count[fleet.StateUnschedulable] > 0 && r.Full(v) {
			lost = contract.Clauses(lost, r.Crowded(v))
		}
		reason := v.Fleet.LostTo()
		switch {
		case back > 0:
			v.Fact(reason, contract.Clauses(lost, contract.SaysWithdrawn.With()))
			if v.Fleet.Paused > 0 {
				lost = contract.Clauses(lost, v.PausedDetail())
			}
			v.Step(contract.StageLimits, v.Target-back, reason, lost)
			total -= back
		case !lost.None():
			v.Fact(reason, lost)
			v.Note(contract.StageLimits, reason, lost)
		case short > 0:
			r.lacks(m, v, short, ideal[v])
		case v.Plan.Slots != nil:
			v.Note(contract.StageLimits, contract.ReasonSteady, fitting(*v.Plan.Slots))
		default:
			v.Note(contract.StageLimits, contract.ReasonCapacityUnknown, contract.Words(v.Unknown().Error()))
		}
	})
	return giveBack
}

// PlacedSuffices reports whether the replicas that hold a node serve, or will serve, all
// that is asked of the model.
func (m *Model) PlacedSuffices() bool {
	if !m.Demand.Seen || !m.Rated || m.Need.Want == need.WantMore {
		return false
	}
	rate := rate.Served(m.Variants, func(v *Variant) int { return v.In.Ready + len(v.In.Starting) - v.In.Unscheduled() - v.Hopeless() })
	return rate >= max(m.Need.Required, m.Least())
}

// lacks records that the model could not get all that it wants, and what is in the way
// at this variant.
func (r *Round) lacks(m *Model, v *Variant, short capacity.Rate, ideal int) {
	reason, why := r.Obstacle(v, ideal)
	detail, message := contract.Clauses(m.Need.Detail, why), why
	if m.Need.Missing > 0 {
		unserved := contract.SaysUnservedOf.With(short, m.Need.Required)
		detail, message = contract.Clauses(m.Need.Detail, unserved, why), why.And(unserved)
	}
	v.Note(contract.StageLimits, reason, detail)
	if reason == contract.ReasonNoSlots {
		v.Fact(contract.ReasonNoSlots, contract.Clauses(contract.SaysUnserved.With(short), why))
	}
	if v.Target == v.In.Current {
		v.Plan.Reason, v.Plan.Message = reason, message
	}
}

// Obstacle says what keeps the variant from having one more replica; ideal is what it would
// have if no window of scaleUp held it.
func (r *Round) Obstacle(v *Variant, ideal int) (contract.Reason, contract.Finding) {
	switch most, why := r.MayReach(v); {
	case v.Bounded(v.Target+1) <= v.Target:
		return contract.ReasonMaxReplicas, v.Maximum()
	case v.Target >= most:
		return contract.ReasonRateLimited, why
	case v.Policy.Up.Window > 0 && r.HeldUp(v, ideal, ideal) < ideal:
		return contract.ReasonStabilized, contract.SaysUpWindow.With(v.Policy.Up.Window)
	case v.Tolerates(v.Policy.Up, v.Target+1):
		return contract.ReasonWithinTolerance, contract.SaysUpTolerance.With(contract.Share(v.Policy.Up.Tolerance))
	case v.Rate.Unfit():
		return contract.ReasonSLO, contract.SaysMissesIdle.With()
	case r.Full(v):
		return contract.ReasonNoSlots, contract.Clauses(contract.SaysFit.With(0), r.Crowded(v))
	case v.Fleet.Paused > 0:
		return contract.ReasonBackingOff, v.PausedDetail()
	}
	return contract.ReasonNoSlots, contract.SaysNoMoreFit.With()
}

// fitting says how many more fit.
func fitting(s contract.Slots) contract.Finding {
	if s.Bound != "" {
		return contract.SaysFitAtMost.With(s.Count, s.Bound)
	}
	return contract.SaysFit.With(s.Count)
}

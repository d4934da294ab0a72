package limit

import (
	"fmt"

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
			lost += "; " + r.Crowded(v)
		}
		reason := v.Fleet.LostTo()
		switch {
		case back > 0:
			v.Fact(reason, "%s; withdrawn", lost)
			if v.Fleet.Paused > 0 {
				lost += "; " + v.PausedDetail()
			}
			v.Step(contract.StageLimits, v.Target-back, reason, "%s", lost)
			total -= back
		case lost != "":
			v.Fact(reason, "%s", lost)
			v.Note(contract.StageLimits, reason, "%s", lost)
		case short > 0:
			r.lacks(m, v, short, ideal[v])
		case v.Plan.Slots != nil:
			v.Note(contract.StageLimits, contract.ReasonSteady, "%s", slotsText(*v.Plan.Slots))
		default:
			v.Note(contract.StageLimits, contract.ReasonCapacityUnknown, "%v", v.Unknown())
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
	detail, message := m.Need.Detail+"; "+why, why
	if m.Need.Missing > 0 {
		unserved := fmt.Sprintf("%s of %s req/s unserved", signal.PerSecond(short), signal.PerSecond(m.Need.Required))
		detail, message = fmt.Sprintf("%s; %s; %s", m.Need.Detail, unserved, why), signal.Joined(why, unserved)
	}
	v.Note(contract.StageLimits, reason, "%s", detail)
	if reason == contract.ReasonNoSlots {
		v.Fact(contract.ReasonNoSlots, "%s req/s unserved; %s", signal.PerSecond(short), why)
	}
	if v.Target == v.In.Current {
		v.Plan.Reason, v.Plan.Message = reason, message
	}
}

// Obstacle says what keeps the variant from having one more replica; ideal is what it would
// have if no window of scaleUp held it.
func (r *Round) Obstacle(v *Variant, ideal int) (contract.Reason, string) {
	switch most, why := r.MayReach(v); {
	case v.Bounded(v.Target+1) <= v.Target:
		return contract.ReasonMaxReplicas, v.Maximum()
	case v.Target >= most:
		return contract.ReasonRateLimited, why
	case v.Policy.Up.Window > 0 && r.HeldUp(v, ideal, ideal) < ideal:
		return contract.ReasonStabilized, fmt.Sprintf("scaleUp.stabilizationWindowSeconds (%s) holds it", v.Policy.Up.Window)
	case v.Tolerates(v.Policy.Up, v.Target+1):
		return contract.ReasonWithinTolerance, fmt.Sprintf("within scaleUp.tolerance (%.0f %%)", 100*v.Policy.Up.Tolerance)
	case v.Rate.Unfit():
		return contract.ReasonSLO, "misses the SLO even when idle"
	case r.Full(v):
		return contract.ReasonNoSlots, "0 more fit; " + r.Crowded(v)
	case v.Fleet.Paused > 0:
		return contract.ReasonBackingOff, v.PausedDetail()
	}
	return contract.ReasonNoSlots, "no more fit"
}

func slotsText(s contract.Slots) string {
	if s.Bound != "" {
		return fmt.Sprintf("up to %d more fit; not modelled: %s", s.Count, s.Bound)
	}
	return fmt.Sprintf("%d more fit", s.Count)
}

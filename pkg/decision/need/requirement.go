package need

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Want is the direction that a model's replicas are to go; the zero want is none.
type Want int

// The directions.
const (
	// WantMore: the supply must grow by at least need.missing, and by at least one.
	WantMore Want = iota + 1
	// WantLess: less may do.
	WantLess
)

// LowerHeadroom is how much more than the demand the supply must still be after a
// scale-down, so that the next burst does not raise it again. It is the distance of
// the published token-based analyzer's thresholds: up at 0.85 of the supply, down at
// 0.70.
const LowerHeadroom = 0.85 / 0.70

// ModelHeadroom is the same where sizing for the promised latency decides: that
// reckons with the scatter of arrivals already, and what is left is that of the
// estimates.
const ModelHeadroom = 1.05

// Need is what a model wants: the requirement stage finds it, the allocation answers it.
type Need struct {
	Want Want
	// Reason and detail say why.
	Reason contract.Reason
	Detail contract.Finding
	// Required is the rate that is asked for: what is expected, and queued, the part that
	// serves the backlog within the drain time. Own is what of that part only those replicas
	// can serve that it waits in.
	Required, Queued, Own capacity.Rate
	// Backlog is the number of requests that the replicas which start will meet.
	Backlog float64
	// Supply is the rate of the replicas that serve or will in time.
	Supply capacity.Rate
	// bounded is how many of them an upper bound takes.
	bounded int
	// Missing is what the supply falls short of, when more is wanted.
	Missing capacity.Rate
	// Least is what must still be served after a scale-down.
	Least capacity.Rate
	// Idle is what the saturated replicas count for and do not serve: one that hangs
	// serves nothing, however full it is.
	Idle capacity.Rate
	// Triggered is set when a trigger fired.
	Triggered bool
}

// Requirement decides whether to act. The published thresholds decide on more, and so
// does the promised latency; less is asked for whenever nothing triggers, and proven
// safe by the allocation.
func (m *Model) Requirement() Need {
	n := m.asked()
	n.Triggered, n.Detail = m.Trigger(m.Demand.Backlog)
	m.judgeShortfall(&n)
	switch {
	case m.Asleep() && (!n.Triggered || !m.Rated):
		// Where requests wait one is started, which shows what it serves.
		n.Reason, n.Detail = contract.ReasonSteady, contract.SaysNoReplica.With()
	case m.Evidence == signal.EvidenceMissing:
		n.Reason, n.Detail = contract.ReasonMetricsMissing, contract.SaysMissingNoChange.With()
	case m.Evidence == signal.EvidenceStale:
		n.Reason, n.Detail = contract.ReasonMetricsStale, contract.SaysStaleNoChange.With()
	case n.Triggered:
		m.More(&n)
	case m.Sized && m.Beyond(&n) > 0:
		n.Want, n.Missing, n.Reason = WantMore, m.Beyond(&n), contract.ReasonSLO
		n.Detail = contract.SaysBeyondSLO.With(n.Required, n.Supply)
	case m.Evidence == signal.EvidencePartial:
		n.Reason, n.Detail = contract.ReasonMetricsPartial, contract.SaysTooFewFresh.With()
	default:
		m.Less(&n)
	}
	m.JudgeLowered(&n)
	signal.Each(m.Variants, func(v *rate.Variant) { v.Step(contract.StageRequirement, v.Target, n.Reason, n.Detail) })
	return n
}

// asked is the rate that is asked for, and that of the replicas that serve or will.
func (m *Model) asked() Need {
	n := Need{Backlog: m.Demand.Backlog}
	if m.Rated {
		n.Backlog = m.BacklogAtReady()
		for _, v := range m.Variants {
			// What an upper bound takes away is nothing to rely on, nor is what hangs.
			left := v.Bounded(v.Fleet.Supply)
			n.Supply += v.Rate.Serves() * v.Effective(left-v.Load.Hanging+v.Load.Dead)
			n.bounded += v.Fleet.Supply - left
		}
	}
	m.Drain(&n)
	n.Required = m.SizeFor + n.Queued
	return n
}

// judgeShortfall fires where the triggers look elsewhere: some replicas are saturated,
// or requests wait in front of them all, and what serves or starts does not suffice.
func (m *Model) judgeShortfall(n *Need) {
	short := m.Beyond(n)
	if n.Triggered || short == 0 || !m.Rated {
		return
	}
	var what contract.Finding
	switch backlog := m.Demand.Backlog; {
	case n.bounded > 0:
		what = contract.SaysMaxTakes.With(n.bounded)
	case m.Load.Saturated > 0:
		what = contract.SaysSaturated.With(m.Load.Saturated)
	case m.Empty() > 0:
		// What these take nobody serves, and nobody sees in the others.
		what = contract.SaysNoAnswers.With(m.Empty())
	case backlog > m.WaitingShort():
		what = contract.SaysWaiting.With(backlog)
	default:
		return
	}
	n.Triggered = true
	n.Detail = contract.SaysShort.With(what, short)
}

// Beyond is what is asked for beyond what serves and starts.
func (m *Model) Beyond(n *Need) capacity.Rate {
	missing := n.Required - n.Supply
	if missing <= signal.Precision*n.Required {
		return 0
	}
	return missing
}

// More sets how much is missing once a trigger fired. While nothing is known of what
// a replica serves, one more at a time is all that can be said.
func (m *Model) More(n *Need) {
	if m.Rated {
		n.Missing = m.Beyond(n)
	}
	switch {
	case n.Missing > 0:
	case m.Starts():
		n.Reason, n.Detail = contract.ReasonStartingSuffices, contract.Clauses(n.Detail, contract.SaysStartingSuffice.With())
		return
	case m.Drains(n):
		n.Reason, n.Detail = contract.ReasonBacklog, contract.Clauses(n.Detail, contract.SaysQueueDrains.With())
		return
	case m.Sized && n.Supply > m.Least()+m.smallest():
		n.Reason, n.Detail = contract.ReasonSteady, contract.Clauses(n.Detail, contract.SaysSLONeedsFewer.With())
		return
	}
	n.Want, n.Reason = WantMore, contract.ReasonSaturated
}

// Least is what must still be served after a scale-down: what is expected, where the
// promised latency decides; the published distance of the thresholds stands for that
// elsewhere.
func (m *Model) Least() capacity.Rate { return m.headroom() * m.Carried() }

// Carried is the load that the replicas are to carry.
func (m *Model) Carried() capacity.Rate {
	if m.Sized {
		return m.SizeFor
	}
	return m.Demand.Now
}

// headroom is how much more than the demand the supply must still be after a scale-down.
func (m *Model) headroom() capacity.Rate {
	if m.Sized {
		return ModelHeadroom
	}
	return LowerHeadroom
}

// smallest is the least rate that one replica of those that exist serves; infinite where
// none serves anything.
func (m *Model) smallest() capacity.Rate {
	least := capacity.Rate(math.Inf(1))
	for _, v := range m.Variants {
		if each := v.Rate.Serves(); v.Fleet.Supply > 0 && each > 0 {
			least = min(least, each)
		}
	}
	return least
}

// perReplica is what one of the replicas that serve or will serves in the mean.
func (m *Model) perReplica(n *Need) capacity.Rate {
	return n.Supply / capacity.Rate(max(1, signal.Count(m.Variants, func(v *rate.Variant) int { return v.Fleet.Supply })))
}

// Less sets what must stay, when the arrival rate is known well enough to lower.
// While a backlog is worth a replica all stay, so that the replicas that drain it go
// together when it is gone, and not one by one. But what waits in saturated replicas keeps
// only these, where it is ours to choose who goes.
func (m *Model) Less(n *Need) {
	if !m.Spares() {
		n.Own = 0
	}
	unsettled := m.Unsettled(n)
	switch {
	case !m.Demand.IsCertain || !m.Demand.Seen || m.GuessesSilent():
		n.Reason, n.Detail = contract.ReasonMetricsPartial, contract.Because(contract.SaysArrivalUnsure.With(), m.Unrated())
	case n.Queued > n.Own && n.Queued-n.Own >= m.perReplica(n):
		n.Reason, n.Detail = contract.ReasonBacklog, contract.Clauses(n.Detail, contract.SaysNotWhileWaiting.With(n.Backlog))
	case !unsettled.None():
		n.Reason, n.Detail = contract.ReasonBacklog, contract.Clauses(n.Detail, contract.SaysNotYet.With(unsettled))
	default:
		n.Want, n.Reason = WantLess, contract.ReasonSteady
		_, busy, _ := m.owed()
		n.Least = max(m.Least(), m.headroom()*m.CertainArrivals()) + max(n.Queued, busy)
		n.Idle = m.idleOf()
		if m.Load.Saturated > 0 {
			// One that stays so has what is short of this added in the next round.
			n.Least = max(n.Least, n.Required)
		}
		m.tellShort(n)
	}
}

// tellShort says why nothing is added although more is required than the replicas are taken to serve:
// that is for the triggers to say where no latency sizes.
func (m *Model) tellShort(n *Need) {
	switch {
	case m.Beyond(n) == 0:
	case m.Rated:
		n.Reason, n.Detail = contract.ReasonBelowThresholds, contract.Clauses(n.Detail, contract.SaysBelowThresholds.With(n.Required, n.Supply))
	default:
		n.Reason, n.Detail = contract.ReasonRateUnknown, contract.Clauses(n.Detail, contract.SaysServesUnseen.With())
	}
}

// Spares reports whether no saturated replica goes while another one can.
func (m *Model) Spares() bool {
	return !slices.ContainsFunc(m.Variants, func(v *rate.Variant) bool {
		return v.Load.Saturated > 0 && !v.ChoosesVictims()
	})
}

// CertainArrivals is the arrival rate that a scale-down reckons with: a serving replica without
// fresh samples is taken to be as full as the triggers allow.
func (m *Model) CertainArrivals() capacity.Rate {
	rate := m.Demand.Certain
	for _, v := range m.Variants {
		rate += max(v.Rate.Trigger, v.Rate.Serves()) * capacity.Rate(v.Load.Silent)
	}
	return max(0, rate)
}

// GuessesSilent reports whether a serving replica without fresh samples is of a variant of
// which nothing was seen either: nobody knows then what it may serve.
func (m *Model) GuessesSilent() bool {
	return slices.ContainsFunc(m.Variants, func(v *rate.Variant) bool {
		return v.Load.Silent > 0 && v.Rate.Guessed && !v.Next.Curve.Known()
	})
}

// idleOf is what replicas that may be saturated count for and do not serve; none are while
// no replica is.
func (m *Model) idleOf() capacity.Rate {
	idle := capacity.Rate(0)
	for _, v := range m.Variants {
		for i, c := range v.Load.Of {
			if c == fleet.Unsaturated || c == fleet.Dead || m.Load.Saturated == 0 {
				continue
			}
			served := capacity.Rate(0)
			if p := &v.In.Replicas[i]; m.Round.Age(p.Served) == signal.AgeFresh {
				served = capacity.Rate(p.Served.Value)
			}
			idle += max(0, v.Rate.Serves()-served)
		}
	}
	return idle
}

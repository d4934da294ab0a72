package demand

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// LeastMissing is the share of what arrives that a count must miss to be told from one that
// rounds, or counts a moment earlier.
const LeastMissing = 0.05

// balance holds the gateway's count against that of the replicas, once for each pair of new
// samples. Each request is counted by both, so that chance is no more than that of the arrivals
// within one window, for which the two may be apart; what is missing for longer is missing. One of them
// may be of a longer time than the other and known later. It is then between what the other one was in
// that time.
func (m *Model) balance() contract.Balance {
	b := m.Old.Balance
	replicas, at, known := m.shownBy()
	if m.Round.Age(m.In.Arrival) != signal.AgeFresh || !known {
		if m.In.Arrival.Present && m.Round.Usable(m.In.Arrival) || m.Round.Snapshot.Time.Sub(b.Sampled) < seenWindows*m.WindowOf() {
			return b
		}
		// Without a gateway there is nothing to compare, and what was is forgotten.
		return contract.Balance{}
	}
	if at = contract.Earlier(at, m.In.Arrival.Time); !at.After(b.Sampled) {
		return b
	}
	window, gateway := m.WindowOf(), m.In.Arrival.Value
	span := min(at.Sub(b.Sampled), window).Seconds()
	b.Sampled, b.Gateway, b.Replicas = at, gateway, replicas
	counted := b.GatewayLately.See(gateway, at, m.Behind())
	reached := b.ReplicasLately.See(replicas+m.queueGrowth(), at, signal.Behind(m.In.Pace, m.Round.Policy.Freshness))
	noise, enough := LeastMissing*max(replicas, gateway), signal.SettledChance*math.Sqrt((replicas+gateway)*window.Seconds())
	beside, unseen := reached.Least-counted.Most-noise, counted.Least-reached.Most-noise
	b.Beside = min(max(0, b.Beside+beside*span), enough)
	if m.carriesAll() {
		// What else is missing is refused, or waits where nobody sees it, and is asked for all the same.
		b.Unseen = min(max(0, b.Unseen+unseen*span), enough)
	}
	switch {
	case b.Beside == 0 && b.Unseen == 0:
		b.Since, b.Part = time.Time{}, contract.PartNone
		return b
	case b.Since.IsZero():
		b.Since = at
	}
	// What one scrape shows the other may show an interval later.
	interval := m.In.RecentSpan
	m.EachReplica(func(p *contract.Replica) { interval = max(interval, p.RecentSpan) })
	switch lasted := at.Sub(b.Since) >= window+interval; {
	case lasted && beside > 0 && b.Beside >= enough:
		b.Part = contract.PartGateway
	case lasted && unseen > 0 && b.Unseen >= enough:
		b.Part = contract.PartReplicas
	case b.Part == contract.PartGateway && b.Beside == 0, b.Part == contract.PartReplicas && b.Unseen == 0:
		b.Part = contract.PartNone
	}
	return b
}

// shownBy is the rate that fresh samples of the replicas show over the metrics window, a lower
// bound of what reaches them, and the time of the newest of them. What a replica shows that
// just began is of less than the window.
func (m *Model) shownBy() (rate float64, at time.Time, known bool) {
	m.EachReplica(func(p *contract.Replica) {
		if m.Round.Fledgling(p) || m.Round.Age(p.Served) != signal.AgeFresh || m.Round.AgeSigned(p.InFlightGrowth) != signal.AgeFresh {
			return
		}
		rate, known = rate+p.Served.Value+p.InFlightGrowth.Value, true
		if p.Served.Time.After(at) {
			at = p.Served.Time
		}
	})
	return max(0, rate), at, known
}

// queueGrowth is the rate at which the gateway's queue grew over the last metrics window, as far
// back as it was seen; negative while it drains.
func (m *Model) queueGrowth() float64 {
	if !m.Round.Usable(m.In.Queue) {
		return 0
	}
	var from *contract.Observation
	for i := range m.Old.Seen {
		o := &m.Old.Seen[i]
		if age := m.In.Queue.Time.Sub(o.Sampled); age >= m.Round.Policy.Window || from == nil && age > 0 {
			from = o
		}
	}
	if from == nil {
		return 0
	}
	return (m.In.Queue.Value - from.Queue) / m.In.Queue.Time.Sub(from.Sampled).Seconds()
}

// carriesAll reports whether the replicas must show all that arrives: for as long as is known the
// same ones serve and nothing waits, each of them is heard, and none is full.
func (m *Model) carriesAll() bool {
	l, ready := &m.Load, m.Ready()
	silent := false
	m.EachReplica(func(p *contract.Replica) {
		silent = silent || m.Round.Age(p.Served) != signal.AgeFresh || m.Round.AgeSigned(p.InFlightGrowth) != signal.AgeFresh || m.Round.Fledgling(p)
	})
	other := func(o contract.Observation) bool { return o.Ready != ready || o.Backlog > m.WaitingShort() }
	return ready > 0 && l.Unsaturated == ready && l.Hanging == 0 && !silent && !m.Starts() &&
		m.backlog() <= m.WaitingShort() && !slices.ContainsFunc(m.Old.Seen, other)
}

// TellPart says which count is a part, and of what.
func (m *Model) TellPart() {
	b := &m.Next.Balance
	var reason contract.Reason
	says := contract.SaysGatewayCountsPart
	switch b.Part {
	case contract.PartNone:
		return
	case contract.PartGateway:
		reason = contract.ReasonGatewayCountsPart
	case contract.PartReplicas:
		reason = contract.ReasonReplicasCountPart
		says = contract.SaysReplicasCountPart
	}
	found := says.With(capacity.Rate(b.Gateway), capacity.Rate(b.Replicas))
	signal.Each(m.Variants, func(v *fleet.Variant) {
		v.Note(contract.StageDemand, reason, found)
		v.Fact(reason, found)
	})
}

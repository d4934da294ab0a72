package decision

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// leastMissing is the share of what arrives that a count must miss to be told from one that
// rounds, or counts a moment earlier.
const leastMissing = 0.05

// Part says which of two counts of the same requests is only a part of them: that of the
// gateway, or that of the replicas.
type Part int

// The counts that may be a part.
const (
	// PartNone: both count the same, as far as is known.
	PartNone Part = iota
	// PartGateway: requests reach the replicas that the gateway does not count for the model: they
	// go around it, ask by other names, or are several for the servers.
	PartGateway
	// PartReplicas: the gateway counts requests that no replica shows: they go to pods that are not
	// read, or come to nothing.
	PartReplicas
)

// Balance holds what the gateway counts against what the replicas do. Where both count all, what
// arrives at the gateway is what the replicas complete, plus what they have more in flight, plus
// what waits more in the gateway.
type Balance struct {
	// Sampled is the time of the newest sample that is in it.
	Sampled time.Time
	// Beside is how many requests the replicas had more than the gateway counted, and Unseen how
	// many less, beyond leastMissing of what arrived; Since is when the one that is not zero began.
	Beside, Unseen float64
	Since          time.Time
	// Part is what follows from it. It stands until the counts agree for as long as it took them
	// to differ.
	Part Part
	// Gateway and Replicas are the rates that were held against each other last.
	Gateway, Replicas float64
	// GatewayLately and ReplicasLately are between what they were lately.
	GatewayLately, ReplicasLately lately
}

// extent is the least and the most of some rates.
type extent struct{ Least, Most float64 }

// over is that of these and of those.
func (e extent) over(o extent) extent { return extent{min(e.Least, o.Least), max(e.Most, o.Most)} }

// lately is between what a rate was since a time, and for as long before.
type lately struct {
	Since       time.Time
	Now, Before extent
}

// see adds a rate. It returns the extent of what was seen for at least so long; for no time, of this one.
func (l *lately) see(rate float64, at time.Time, long time.Duration) extent {
	one := extent{rate, rate}
	switch {
	case l.Since.IsZero(), long == 0:
		*l = lately{at, one, one}
	case at.Sub(l.Since) >= long:
		*l = lately{at, one, l.Now}
	default:
		l.Now = l.Now.over(one)
	}
	return l.Now.over(l.Before)
}

// balance holds the gateway's count against that of the replicas, once for each pair of new
// samples. Each request is counted by both, so that chance is no more than that of the arrivals
// within one window, for which the two may be apart; what is missing for longer is missing. One of them
// may be of a longer time than the other and known later. It is then between what the other one was in
// that time.
func (r *round) balance(m *model) Balance {
	b := m.old.Balance
	replicas, at, known := r.shownBy(m)
	if r.age(m.in.Arrival) != ageFresh || !known {
		if m.in.Arrival.Present && r.usable(m.in.Arrival) || r.snapshot.Time.Sub(b.Sampled) < seenWindows*r.windowOf(m) {
			return b
		}
		// Without a gateway there is nothing to compare, and what was is forgotten.
		return Balance{}
	}
	if at = earlier(at, m.in.Arrival.Time); !at.After(b.Sampled) {
		return b
	}
	window, gateway := r.windowOf(m), m.in.Arrival.Value
	span := min(at.Sub(b.Sampled), window).Seconds()
	b.Sampled, b.Gateway, b.Replicas = at, gateway, replicas
	counted := b.GatewayLately.see(gateway, at, r.behind(m))
	reached := b.ReplicasLately.see(replicas+r.queueGrowth(m), at, m.in.Pace.behind(r.policy.Freshness))
	noise, enough := leastMissing*max(replicas, gateway), settledChance*math.Sqrt((replicas+gateway)*window.Seconds())
	beside, unseen := reached.Least-counted.Most-noise, counted.Least-reached.Most-noise
	b.Beside = min(max(0, b.Beside+beside*span), enough)
	if r.carriesAll(m) {
		// What else is missing is refused, or waits where nobody sees it, and is asked for all the same.
		b.Unseen = min(max(0, b.Unseen+unseen*span), enough)
	}
	switch {
	case b.Beside == 0 && b.Unseen == 0:
		b.Since, b.Part = time.Time{}, PartNone
		return b
	case b.Since.IsZero():
		b.Since = at
	}
	// What one scrape shows the other may show an interval later.
	interval := m.in.RecentSpan
	m.eachReplica(func(p *Replica) { interval = max(interval, p.RecentSpan) })
	switch lasted := at.Sub(b.Since) >= window+interval; {
	case lasted && beside > 0 && b.Beside >= enough:
		b.Part = PartGateway
	case lasted && unseen > 0 && b.Unseen >= enough:
		b.Part = PartReplicas
	case b.Part == PartGateway && b.Beside == 0, b.Part == PartReplicas && b.Unseen == 0:
		b.Part = PartNone
	}
	return b
}

// shownBy is the rate that fresh samples of the replicas show over the metrics window, a lower
// bound of what reaches them, and the time of the newest of them. What a replica shows that
// just began is of less than the window.
func (r *round) shownBy(m *model) (rate float64, at time.Time, known bool) {
	m.eachReplica(func(p *Replica) {
		if r.fledgling(p) || r.age(p.Served) != ageFresh || r.ageSigned(p.InFlightGrowth) != ageFresh {
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
func (r *round) queueGrowth(m *model) float64 {
	if !r.usable(m.in.Queue) {
		return 0
	}
	var from *Observation
	for i := range m.old.Seen {
		o := &m.old.Seen[i]
		if age := m.in.Queue.Time.Sub(o.Sampled); age >= r.policy.Window || from == nil && age > 0 {
			from = o
		}
	}
	if from == nil {
		return 0
	}
	return (m.in.Queue.Value - from.Queue) / m.in.Queue.Time.Sub(from.Sampled).Seconds()
}

// carriesAll reports whether the replicas must show all that arrives: for as long as is known the
// same ones serve and nothing waits, each of them is heard, and none is full.
func (r *round) carriesAll(m *model) bool {
	l, ready := &m.load, m.ready()
	silent := false
	m.eachReplica(func(p *Replica) {
		silent = silent || r.age(p.Served) != ageFresh || r.ageSigned(p.InFlightGrowth) != ageFresh || r.fledgling(p)
	})
	other := func(o Observation) bool { return o.Ready != ready || o.Backlog > m.waitingShort() }
	return ready > 0 && l.unsaturated == ready && l.hanging == 0 && !silent && !m.starts() &&
		r.backlog(m) <= m.waitingShort() && !slices.ContainsFunc(m.old.Seen, other)
}

// tellPart says which count is a part, and of what.
func (m *model) tellPart() {
	b := &m.next.Balance
	var reason Reason
	var detail string
	switch b.Part {
	case PartNone:
		return
	case PartGateway:
		reason = ReasonGatewayCountsPart
		detail = fmt.Sprintf("the gateway counts %.2f req/s for the model and %.2f req/s reach its replicas: what the replicas show counts", b.Gateway, b.Replicas)
	case PartReplicas:
		reason = ReasonReplicasCountPart
		detail = fmt.Sprintf("the gateway counts %.2f req/s for the model and its replicas, none of which is full, show %.2f req/s: what the replicas show counts", b.Gateway, b.Replicas)
	}
	m.each(func(v *variant) {
		v.note(StageDemand, reason, "%s", detail)
		v.fact(reason, "%s", detail)
	})
}

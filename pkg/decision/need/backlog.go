package need

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// landingSlack is what passes beside a replica's start-up: the write, the pod's
// creation, and the router's seeing that it is ready.
const landingSlack = 2 * time.Second

// landing are replicas that will serve at the same time.
type landing struct {
	in     time.Duration
	serves capacity.Rate
}

// BacklogAtReady is the number of requests that a replica which is started now will meet:
// the most that wait within the drain time before it serves. Until then the backlog grows
// by what arrives beyond what is served, and those that start already drain it.
func (m *Model) BacklogAtReady() float64 {
	d := &m.Demand
	waits := d.Backlog
	if waits <= m.WaitingShort() {
		waits = 0
	}
	serving := capacity.Rate(0)
	var coming []landing
	for _, v := range m.Variants {
		serving += v.Rate.Max * v.Effective(min(v.In.Current, v.In.Ready))
		coming = m.landings(coming, v)
	}
	waits = max(0, waits+float64(d.Now-serving)*m.backlogAge().Seconds())
	slices.SortStableFunc(coming, func(a, b landing) int { return cmp.Compare(a.in, b.in) })
	// The last one adds nothing: it stands for the replica that would be started now.
	last := m.Lead + landingSlack
	for _, c := range coming {
		last = max(last, c.in)
	}
	coming = append(coming, landing{in: last})
	met, now, from := 0.0, time.Duration(0), last-m.Round.Policy.Drain
	for _, c := range coming {
		grown := func(until time.Duration) float64 {
			return max(0, waits+float64(d.Now-serving)*(until-now).Seconds())
		}
		if c.in >= from {
			met = max(met, grown(max(now, from)))
		}
		waits, now = grown(c.in), c.in
		serving += c.serves
	}
	return max(met, waits)
}

// inSaturated is what waits in saturated replicas, in requests, and the rate of these, as it
// is reckoned with and at most. A request that waits in a replica is served by it alone. All
// that others can do for it is to take over what arrives.
func (m *Model) inSaturated() (waiting float64, rate, most capacity.Rate) {
	for _, v := range m.Variants {
		each := v.Rate.Serves()
		for i, c := range v.Load.Of {
			if p := &v.In.Replicas[i]; each > 0 && c == fleet.Saturated && m.Round.Usable(p.Waiting) && !v.Load.Hung(i) {
				waiting += p.Waiting.Value
				rate, most = rate+each, most+max(each, v.Rate.Max)
			}
		}
	}
	return waiting, rate, most
}

// owed is what waits in saturated replicas that they do not serve within the drain time, and
// their rates. What they do serve by then keeps all that there are, so that those that are too
// many go together; so does it where they may be the ones that go.
func (m *Model) owed() (waiting float64, rate, most capacity.Rate) {
	waiting, rate, most = m.inSaturated()
	if !m.Spares() || drainRate(m.Round, waiting) < rate {
		return 0, 0, 0
	}
	return waiting, rate, most
}

// Drain sets the rate that serves the backlog within the drain time, as far as more
// replicas can: of what waits in saturated ones no more counts than these serve.
func (m *Model) Drain(n *Need) {
	waiting, rate, most := m.inSaturated()
	// However much the others can serve by then, of this they serve nothing.
	left := max(min(waiting, n.Backlog), waiting-float64(most)*m.Lead.Seconds())
	n.Own = min(drainRate(m.Round, left), rate)
	n.Queued = drainRate(m.Round, n.Backlog-waiting) + n.Own
}

// drainRate is the rate that serves so many requests within the drain time.
func drainRate(r *signal.Round, requests float64) capacity.Rate {
	return capacity.Rate(max(0, requests) / r.Policy.Drain.Seconds())
}

// backlogAge is how long ago the backlog was counted.
func (m *Model) backlogAge() time.Duration {
	newest := time.Time{}
	if m.Round.Usable(m.In.Queue) {
		newest = m.In.Queue.Time
	}
	m.EachReplica(func(p *contract.Replica) {
		if m.Round.Usable(p.Waiting) && p.Waiting.Time.After(newest) {
			newest = p.Waiting.Time
		}
	})
	if newest.IsZero() {
		return 0
	}
	return min(max(0, m.Round.Snapshot.Time.Sub(newest)), m.Round.Policy.Freshness.Fresh)
}

// landings adds the starting replicas of the variant that count as supply, with the
// time until each serves.
func (m *Model) landings(list []landing, v *rate.Variant) []landing {
	startup := cmp.Or(v.In.Startup, m.Lead) + landingSlack
	coming := max(0, v.Fleet.Supply-v.In.Ready)
	seen := v.In.Starting[:min(coming, len(v.In.Starting))]
	for i := range seen {
		list = append(list, landing{in: max(0, startup-m.Round.Snapshot.Time.Sub(seen[i].Since)), serves: v.Rate.Max})
	}
	// However many no pod shows yet, they are one.
	if awaiting := coming - len(seen); awaiting > 0 {
		list = append(list, landing{in: startup, serves: v.Rate.Max * capacity.Rate(awaiting)})
	}
	return list
}

// Drains reports whether the load that fired a trigger becomes less, or is about to:
// what serves suffices for what is asked for, and within a metrics window replicas
// began to serve or those that wait became fewer. The word of the same replicas that
// did not make them fewer within a window weighs more.
func (m *Model) Drains(n *Need) bool {
	d := &m.Demand
	if !d.Seen || n.Required > n.Supply {
		return false
	}
	waits, easing := d.Backlog > m.WaitingShort(), false
	for _, o := range m.Next.Seen {
		age, same := m.Round.Snapshot.Time.Sub(o.Time), o.Ready >= m.Ready()
		if waits && same && age >= m.Round.Policy.Window && o.Backlog <= d.Backlog {
			return false
		}
		easing = easing || age <= m.Round.Policy.Window && !same || waits && o.Backlog > d.Backlog
	}
	return easing
}

// Unsettled says why what the metrics window shows is not how things are now: within
// it a backlog was worth a replica, or replicas began to serve, more of them than may be
// without metrics. It says nothing where it is.
func (m *Model) Unsettled(n *Need) contract.Finding {
	if ready := m.Ready(); float64(ready-m.Began()) < signal.LowerCoverage*float64(ready) {
		return contract.SaysJustBegan.With()
	}
	waiting, _, most := m.owed()
	for _, o := range m.Next.Seen {
		// What saturated replicas served of their own since is no reason: they stay.
		age := m.Round.Snapshot.Time.Sub(o.Time)
		others := drainRate(m.Round, o.Backlog-waiting-float64(most)*age.Seconds())
		if age <= m.Round.Policy.Window && others >= m.perReplica(n) && others > 0 {
			return contract.SaysWaitedLately.With()
		}
	}
	return contract.Finding{}
}

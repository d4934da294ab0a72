package decision

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// waitingShort is the number of requests per serving replica that wait in the normal
// course of things: less than what fires the queue trigger is no backlog.
func (m *model) waitingShort() float64 {
	return max(0, m.saturation.QueueLengthThreshold-m.saturation.QueueSpareTrigger) * float64(m.ready())
}

// landingSlack is what passes beside a replica's start-up: the write, the pod's
// creation, and the router's seeing that it is ready.
const landingSlack = 2 * time.Second

// landing are replicas that will serve at the same time.
type landing struct {
	in     time.Duration
	serves capacity.Rate
}

// backlogAtReady is the number of requests that a replica which is started now will meet:
// the most that wait within the drain time before it serves. Until then the backlog grows
// by what arrives beyond what is served, and those that start already drain it.
func (r *round) backlogAtReady(m *model) float64 {
	d := &m.demand
	waits := d.backlog
	if waits <= m.waitingShort() {
		waits = 0
	}
	serving := capacity.Rate(0)
	var coming []landing
	for _, v := range m.variants {
		serving += v.rate.max * v.effective(min(v.in.Current, v.in.Ready))
		coming = r.landings(coming, m, v)
	}
	waits = max(0, waits+float64(d.now-serving)*r.backlogAge(m).Seconds())
	slices.SortStableFunc(coming, func(a, b landing) int { return cmp.Compare(a.in, b.in) })
	// The last one adds nothing: it stands for the replica that would be started now.
	last := m.lead + landingSlack
	for _, c := range coming {
		last = max(last, c.in)
	}
	coming = append(coming, landing{in: last})
	met, now, from := 0.0, time.Duration(0), last-r.policy.Drain
	for _, c := range coming {
		grown := func(until time.Duration) float64 {
			return max(0, waits+float64(d.now-serving)*(until-now).Seconds())
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
func (r *round) inSaturated(m *model) (waiting float64, rate, most capacity.Rate) {
	for _, v := range m.variants {
		each := v.rate.serves()
		for i, c := range v.load.of {
			if p := &v.in.Replicas[i]; each > 0 && c == saturated && r.usable(p.Waiting) && !v.load.hung(i) {
				waiting += p.Waiting.Value
				rate, most = rate+each, most+max(each, v.rate.max)
			}
		}
	}
	return waiting, rate, most
}

// owed is what waits in saturated replicas that they do not serve within the drain time, and
// their rates. What they do serve by then keeps all that there are, so that those that are too
// many go together; so does it where they may be the ones that go.
func (r *round) owed(m *model) (waiting float64, rate, most capacity.Rate) {
	waiting, rate, most = r.inSaturated(m)
	if !r.spares(m) || r.within(waiting) < rate {
		return 0, 0, 0
	}
	return waiting, rate, most
}

// drain sets the rate that serves the backlog within the drain time, as far as more
// replicas can: of what waits in saturated ones no more counts than these serve.
func (r *round) drain(m *model, n *need) {
	waiting, rate, most := r.inSaturated(m)
	// However much the others can serve by then, of this they serve nothing.
	left := max(min(waiting, n.backlog), waiting-float64(most)*m.lead.Seconds())
	n.own = min(r.within(left), rate)
	n.queued = r.within(n.backlog-waiting) + n.own
}

// within is the rate that serves so many requests within the drain time.
func (r *round) within(requests float64) capacity.Rate {
	return capacity.Rate(max(0, requests) / r.policy.Drain.Seconds())
}

// backlogAge is how long ago the backlog was counted.
func (r *round) backlogAge(m *model) time.Duration {
	newest := time.Time{}
	if r.usable(m.in.Queue) {
		newest = m.in.Queue.Time
	}
	m.eachReplica(func(p *Replica) {
		if r.usable(p.Waiting) && p.Waiting.Time.After(newest) {
			newest = p.Waiting.Time
		}
	})
	if newest.IsZero() {
		return 0
	}
	return min(max(0, r.snapshot.Time.Sub(newest)), r.policy.Freshness.Fresh)
}

// landings adds the starting replicas of the variant that count as supply, with the
// time until each serves.
func (r *round) landings(list []landing, m *model, v *variant) []landing {
	startup := cmp.Or(v.in.Startup, m.lead) + landingSlack
	coming := max(0, v.fleet.supply-v.in.Ready)
	seen := v.in.Starting[:min(coming, len(v.in.Starting))]
	for i := range seen {
		list = append(list, landing{in: max(0, startup-r.snapshot.Time.Sub(seen[i].Since)), serves: v.rate.max})
	}
	// However many no pod shows yet, they are one.
	if awaiting := coming - len(seen); awaiting > 0 {
		list = append(list, landing{in: startup, serves: v.rate.max * capacity.Rate(awaiting)})
	}
	return list
}

// drains reports whether the load that fired a trigger becomes less, or is about to:
// what serves suffices for what is asked for, and within a metrics window replicas
// began to serve or those that wait became fewer. The word of the same replicas that
// did not make them fewer within a window weighs more.
func (r *round) drains(m *model, n *need) bool {
	d := &m.demand
	if !d.seen || n.required > n.supply {
		return false
	}
	waits, easing := d.backlog > m.waitingShort(), false
	for _, o := range m.next.Seen {
		age, same := r.snapshot.Time.Sub(o.Time), o.Ready >= m.ready()
		if waits && same && age >= r.policy.Window && o.Backlog <= d.backlog {
			return false
		}
		easing = easing || age <= r.policy.Window && !same || waits && o.Backlog > d.backlog
	}
	return easing
}

// unsettled says why what the metrics window shows is not how things are now: within
// it a backlog was worth a replica, or replicas began to serve, more of them than may be
// without metrics. Empty means that it is.
func (r *round) unsettled(m *model, n *need) string {
	if ready := m.ready(); float64(ready-r.began(m)) < lowerCoverage*float64(ready) {
		return "replicas just began to serve"
	}
	waiting, _, most := r.owed(m)
	for _, o := range m.next.Seen {
		// What saturated replicas served of their own since is no reason: they stay.
		age := r.snapshot.Time.Sub(o.Time)
		others := r.within(o.Backlog - waiting - float64(most)*age.Seconds())
		if age <= r.policy.Window && others >= m.perReplica(n) && others > 0 {
			return "requests waited lately"
		}
	}
	return ""
}

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

// landing is a replica that will serve.
type landing struct {
	in     time.Duration
	serves capacity.Rate
}

// meets is the number of requests that will wait when the replicas that start begin
// to serve, or when one that is started now would: the backlog grows until then by
// what arrives beyond what is served.
func (r *round) meets(m *model) float64 {
	d := m.plan.Demand
	waits := d.Backlog
	if waits <= m.waitingShort() {
		waits = 0
	}
	serving := capacity.Rate(0)
	var coming []landing
	for _, v := range m.variants {
		if v.exists() {
			serving += v.most * capacity.Rate(min(v.in.Current, v.in.Ready))
			coming = append(coming, r.landings(m, v)...)
		}
	}
	slices.SortStableFunc(coming, func(a, b landing) int { return cmp.Compare(a.in, b.in) })
	// The last one adds nothing: it stands for the replica that would be started now.
	coming = append(coming, landing{in: max(m.lead(), last(coming))})
	met, now := waits, time.Duration(0)
	for _, c := range coming {
		waits = max(0, waits+float64(d.Arrival-serving)*(c.in-now).Seconds())
		met, now = max(met, waits), c.in
		serving += c.serves
	}
	return met
}

func last(coming []landing) time.Duration {
	if len(coming) == 0 {
		return 0
	}
	return coming[len(coming)-1].in
}

// landings are the starting replicas of the variant that count as supply, with the
// time until each serves.
func (r *round) landings(m *model, v *variant) []landing {
	startup := v.in.Startup
	if startup == 0 {
		startup = m.lead()
	}
	var list []landing
	for i := range max(0, v.supply-v.in.Ready) {
		l := landing{in: startup, serves: v.most}
		if i < len(v.in.Starting) {
			l.in = max(0, startup-r.snapshot.Time.Sub(v.in.Starting[i].Created))
		}
		list = append(list, l)
	}
	return list
}

// drains reports whether the requests that wait become fewer, or are about to: what
// serves suffices to serve them in time, and within a metrics window they became fewer
// or replicas began to serve. The word of the same replicas that did not make them
// fewer within a window weighs more.
func (r *round) drains(m *model) bool {
	d := m.plan.Demand
	if d == nil || d.Backlog <= m.waitingShort() || m.required > m.total*m.caution {
		return false
	}
	easing := false
	for _, o := range r.next.Arrivals[m.key] {
		same := o.Ready >= m.ready()
		if r.snapshot.Time.Sub(o.Time) >= r.policy.Window && same && o.Backlog <= d.Backlog {
			return false
		}
		easing = easing || !same || o.Backlog > d.Backlog
	}
	return easing
}

package decision

import (
	"slices"
	"time"
)

// window is what the replica's means and rates are taken over.
func (r *round) window(p *Replica) time.Duration { return max(r.policy.Window, p.Pace.Window) }

// windowOf is the widest window of the model's replicas.
func (r *round) windowOf(m *model) time.Duration {
	widest := max(r.policy.Window, m.in.Pace.Window)
	for _, v := range m.variants {
		for i := range v.in.Replicas {
			widest = max(widest, r.window(&v.in.Replicas[i]))
		}
	}
	return widest
}

// behind is how far back what the model's replicas show reaches, where that is not as usual.
func (r *round) behind(m *model) (long time.Duration) {
	m.eachReplica(func(p *Replica) { long = max(long, p.Pace.behind(r.policy.Freshness)) })
	return long
}

// behind is how far back such samples reach; 0 where that is as usual.
func (p Pace) behind(limit Freshness) time.Duration { return p.Window + p.late(limit) }

// late is how old a sample is although nothing newer could be known: samples arrive late, and
// between two of them lies an interval. There is a bound: what is older than that says nothing of
// now, whatever the reason.
func (p Pace) late(limit Freshness) time.Duration {
	if p.Window == 0 {
		return 0
	}
	return min(max(0, p.Lag+p.Interval), limit.Ageing)
}

// caughtUp is the model with the times at which its samples would have been taken if they were
// known at once: what cannot be newer is as good as it gets, and must not count as old. The model
// itself is not changed.
func (m *Model) caughtUp(now time.Time, limit Freshness) *Model {
	if !m.isLate(limit) {
		return m
	}
	next := *m
	move := func(late time.Duration, samples ...*Sample) {
		for _, s := range samples {
			if s.Present && s.Time.Before(now) {
				s.Time = earliest(now, s.Time.Add(late))
			}
		}
	}
	move(m.Pace.late(limit), &next.Arrival, &next.Recent, &next.Queue)
	move(m.serversLate(limit), &next.Met.Sample)
	next.Variants = slices.Clone(m.Variants)
	for i := range next.Variants {
		v := &next.Variants[i]
		v.Replicas = slices.Clone(v.Replicas)
		for j := range v.Replicas {
			p := &v.Replicas[j]
			move(p.Pace.late(limit), &p.KVUse, &p.Waiting, &p.Running, &p.Served, &p.InService, &p.InFlightGrowth,
				&p.Recent, &p.TTFT, &p.ITL, &p.KVTokens, &p.Input, &p.Output)
		}
	}
	return &next
}

// serversLate is how old what the servers of the model say together is although nothing newer could be
// known: as old as that of the one that is known soonest.
func (m *Model) serversLate(limit Freshness) time.Duration {
	least := limit.Ageing
	for _, v := range m.Variants {
		for _, p := range v.Replicas {
			least = min(least, p.Pace.late(limit))
		}
	}
	return least
}

func (m *Model) isLate(limit Freshness) bool {
	return m.Pace.late(limit) > 0 || slices.ContainsFunc(m.Variants, func(v Variant) bool {
		return slices.ContainsFunc(v.Replicas, func(p Replica) bool { return p.Pace.late(limit) > 0 })
	})
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

package signal

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Window is what the replica's means and rates are taken over.
func (r *Round) Window(p *contract.Replica) time.Duration { return max(r.Policy.Window, p.Pace.Window) }

// WindowOf is the widest window of the model's replicas.
func (m *Model) WindowOf() time.Duration {
	widest := max(m.Round.Policy.Window, m.In.Pace.Window)
	for _, v := range m.Variants {
		for i := range v.In.Replicas {
			widest = max(widest, m.Round.Window(&v.In.Replicas[i]))
		}
	}
	return widest
}

// Behind is how far back what the model's replicas show reaches, where that is not as usual.
func (m *Model) Behind() (long time.Duration) {
	m.EachReplica(func(p *contract.Replica) { long = max(long, Behind(p.Pace, m.Round.Policy.Freshness)) })
	return long
}

// Behind is how far back such samples reach; 0 where that is as usual.
func Behind(p contract.Pace, limit contract.Freshness) time.Duration {
	return p.Window + late(p, limit)
}

// late is how old a sample is although nothing newer could be known: samples arrive late, and
// between two of them lies an interval. There is a bound: what is older than that says nothing of
// now, whatever the reason.
func late(p contract.Pace, limit contract.Freshness) time.Duration {
	if p.Window == 0 {
		return 0
	}
	return min(max(0, p.Lag+p.Interval), limit.Ageing)
}

// CaughtUp is the model with the times at which its samples would have been taken if they were
// known at once: what cannot be newer is as good as it gets, and must not count as old. The model
// itself is not changed.
func CaughtUp(m *contract.Model, now time.Time, limit contract.Freshness) *contract.Model {
	if !isLate(m, limit) {
		return m
	}
	next := *m
	move := func(late time.Duration, samples ...*contract.Sample) {
		for _, s := range samples {
			if s.Present && s.Time.Before(now) {
				s.Time = contract.Earlier(now, s.Time.Add(late))
			}
		}
	}
	move(late(m.Pace, limit), &next.Arrival, &next.Recent, &next.Queue)
	move(serversLate(m, limit), &next.Met.Sample)
	next.Variants = slices.Clone(m.Variants)
	for i := range next.Variants {
		v := &next.Variants[i]
		v.Replicas = slices.Clone(v.Replicas)
		for j := range v.Replicas {
			p := &v.Replicas[j]
			move(late(p.Pace, limit), &p.KVUse, &p.Waiting, &p.Running, &p.Served, &p.InService, &p.InFlightGrowth,
				&p.Recent, &p.TTFT, &p.ITL, &p.KVTokens, &p.Input, &p.Output)
		}
	}
	return &next
}

// serversLate is how old what the servers of the model say together is although nothing newer could be
// known: as old as that of the one that is known soonest.
func serversLate(m *contract.Model, limit contract.Freshness) time.Duration {
	least := limit.Ageing
	for _, v := range m.Variants {
		for _, p := range v.Replicas {
			least = min(least, late(p.Pace, limit))
		}
	}
	return least
}

func isLate(m *contract.Model, limit contract.Freshness) bool {
	return late(m.Pace, limit) > 0 || slices.ContainsFunc(m.Variants, func(v contract.Variant) bool {
		return slices.ContainsFunc(v.Replicas, func(p contract.Replica) bool { return late(p.Pace, limit) > 0 })
	})
}

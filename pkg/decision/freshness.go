package decision

import (
	"math"
	"time"
)

// evidence says what the data of a model's serving replicas allow.
type evidence int

const (
	// evidenceFull: enough is fresh to raise and to lower.
	evidenceFull evidence = iota
	// evidencePartial: something is known; it may raise, not lower.
	evidencePartial
	// evidenceStale: only old data; hold.
	evidenceStale
	// evidenceMissing: nothing is known; hold.
	evidenceMissing
)

// lowerCoverage is the share of the ready replicas that must be fresh before a
// count may be lowered.
const lowerCoverage = 0.8

// age is the class of a sample's age.
type age int

const (
	ageFresh age = iota
	ageAgeing
	ageStale
	ageAbsent
)

// age classifies a sample of something that cannot be negative. One from the future (a
// skewed clock) is as old as it is ahead, and what is no number is absent.
func (r *round) age(s Sample) age {
	if s.Value < 0 {
		return ageAbsent
	}
	return r.ageSigned(s)
}

// ageSigned is the same for what may be negative: the growth of something.
func (r *round) ageSigned(s Sample) age {
	if !s.Present || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return ageAbsent
	}
	old := r.snapshot.Time.Sub(s.Time).Abs()
	limit := r.policy.Freshness
	for _, c := range []struct {
		below time.Duration
		class age
	}{{limit.Fresh, ageFresh}, {limit.Ageing, ageAgeing}, {limit.Stale, ageStale}} {
		if old < c.below {
			return c.class
		}
	}
	return ageAbsent
}

// usable reports whether a sample may enter an estimate that raises a count.
func (r *round) usable(s Sample) bool { return r.age(s) <= ageAgeing }

func (r *round) usableSigned(s Sample) bool { return r.ageSigned(s) <= ageAgeing }

// freshness finds out what the data allow.
func (r *round) freshness(m *model) (found evidence) {
	ready, count := 0, map[age]int{}
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		// A variant whose shape is unknown still serves, and still counts.
		ready += v.in.Ready
		for i := range v.in.Replicas {
			count[r.replicaAge(v, &v.in.Replicas[i])]++
		}
	}
	count[ageAbsent] += max(0, ready-count[ageFresh]-count[ageAgeing]-count[ageStale]-count[ageAbsent])
	var reason Reason
	switch {
	case ready == 0 || float64(count[ageFresh]) >= lowerCoverage*float64(ready):
		found, reason = evidenceFull, ReasonMetricsFound
	case count[ageFresh]+count[ageAgeing] > 0:
		found, reason = evidencePartial, ReasonMetricsPartial
	case count[ageStale] > 0:
		found, reason = evidenceStale, ReasonMetricsStale
	case r.justBegun(m):
		found, reason = evidencePartial, ReasonMetricsPartial
	default:
		found, reason = evidenceMissing, ReasonMetricsMissing
	}
	m.each(func(v *variant) {
		v.note(StageFreshness, reason, "%d of %d serving replicas have fresh metrics", count[ageFresh], ready)
		if reason != ReasonMetricsFound || ready > 0 {
			v.plan.Facts = append(v.plan.Facts, Fact{reason, v.plan.Steps[len(v.plan.Steps)-1].Detail})
		}
	})
	return found
}

// justBegun reports whether every serving replica began to serve too lately to be known:
// it is scraped in a while.
func (r *round) justBegun(m *model) bool {
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		for i := range v.in.Replicas {
			if since := v.in.Replicas[i].Since; since.IsZero() || r.snapshot.Time.Sub(since) >= r.policy.Freshness.Fresh {
				return false
			}
		}
		if len(v.in.Replicas) < v.in.Ready {
			return false
		}
	}
	return true
}

// replicaAge is the class of the older of the two things that a trigger needs: how
// full the replica is and how many requests wait in it.
func (r *round) replicaAge(v *variant, p *Replica) age {
	full := r.age(p.KVUse)
	if v.batchLimit() > 0 {
		full = min(full, r.age(p.Running))
	}
	return max(full, r.age(p.Waiting))
}

package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
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

// aheadFactor is how many times as old a sample counts as it is ahead of the clock, which one
// of the two must then be wrong: clocks differ by less than samples age.
const aheadFactor = 2

// age is the class of a sample's age.
type age int

const (
	ageFresh age = iota
	ageAgeing
	ageStale
	ageAbsent
)

// age classifies a sample of something that cannot be negative. One from the future (a
// skewed clock) counts as old, too. What is no number is absent.
func (r *round) age(s Sample) age {
	if s.Value < 0 {
		return ageAbsent
	}
	return r.ageSigned(s)
}

// ageSigned is the same for what may be negative: the growth of something.
func (r *round) ageSigned(s Sample) age {
	old, limit := r.snapshot.Time.Sub(s.Time), r.policy.Freshness
	if old < 0 {
		old *= -aheadFactor
	}
	switch {
	case !s.Present || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || old >= limit.Stale:
		return ageAbsent
	case old >= limit.Ageing:
		return ageStale
	case old >= limit.Fresh:
		return ageAgeing
	}
	return ageFresh
}

// ageOfShare is the same for a share of something: more than all of it, as where a server counts
// in percent, is absent.
func (r *round) ageOfShare(s Sample) age {
	if s.Value > 1+precision {
		return ageAbsent
	}
	return r.age(s)
}

// fresh reports whether all of the samples may enter an estimate that lowers a count.
func (r *round) fresh(samples ...Sample) bool {
	return !slices.ContainsFunc(samples, func(s Sample) bool { return r.age(s) != ageFresh })
}

// usable reports whether a sample may enter an estimate that raises a count.
func (r *round) usable(s Sample) bool { return r.age(s) <= ageAgeing }

func (r *round) usableSigned(s Sample) bool { return r.ageSigned(s) <= ageAgeing }

// value is that of a usable sample; an unknown one adds nothing.
func (r *round) value(s Sample) float64 {
	if r.usable(s) {
		return s.Value
	}
	return 0
}

// freshness finds out what the data allow. A variant whose shape is unknown still serves,
// and still counts.
func (r *round) freshness(m *model) evidence {
	fresh, ready := m.load.fresh, m.ready()
	found, reason := evidenceMissing, ReasonMetricsMissing
	switch {
	case ready == 0 || float64(fresh) >= lowerCoverage*float64(ready):
		found, reason = evidenceFull, ReasonMetricsFound
	case m.load.newest <= ageAgeing:
		found, reason = evidencePartial, ReasonMetricsPartial
	case m.load.newest == ageStale:
		found, reason = evidenceStale, ReasonMetricsStale
	case r.justBegun(m):
		found, reason = evidencePartial, ReasonMetricsPartial
	}
	counted := fmt.Sprintf("%d of %d serving replicas have fresh metrics", fresh, ready)
	m.each(func(v *variant) {
		detail := counted
		if r.uncached(v) {
			detail += "; they show no KV cache use, so their queues and what they have in service count"
		}
		if unread := cmp.Or(r.unread(v), r.paced(v)); unread != "" {
			detail += "; " + unread
		}
		v.note(StageFreshness, reason, "%s", detail)
		if reason != ReasonMetricsFound || ready > 0 {
			v.fact(reason, "%s", detail)
		}
	})
	return found
}

// justBegun reports whether every serving replica began to serve too lately to be known:
// it is scraped in a while.
func (r *round) justBegun(m *model) bool {
	for _, v := range m.variants {
		known := func(p Replica) bool { return !r.fledgling(&p) }
		if len(v.in.Replicas) < v.in.Ready || slices.ContainsFunc(v.in.Replicas, known) {
			return false
		}
	}
	return true
}

// fledgling reports whether the replica serves for less than a metrics window: its
// means and rates are then of its start, and nothing is learned from them.
func (r *round) fledgling(p *Replica) bool {
	return !p.Since.IsZero() && r.snapshot.Time.Sub(p.Since) < r.window(p)
}

// In a window that shows one state, what is in service is within settledWithin of Little's
// law, as a share of it, and what arrived last within settledChance standard deviations of
// independent arrivals. Its means are those of its middle, along a straight line.
const (
	settledWithin = 0.25
	settledChance = 3
	middle        = 0.5
)

// settled reports whether the metrics window shows one state of the replica, of which
// something can be learned. Where the load changed within it, or the replica hung, the
// mean number in service belongs to another time than the latencies of the requests that
// completed. Then what is in service is not what completes times its time in service, or
// what arrived last is further from what arrives than chance explains.
func (r *round) settled(p *Replica) bool {
	if r.fledgling(p) || r.age(p.InService) == ageFresh && !near(p.Running.Value, p.Served.Value*p.InService.Value, settledWithin) {
		return false
	}
	if r.ageSigned(p.Recent) != ageFresh || r.ageSigned(p.InFlightGrowth) != ageFresh || r.fed(p) {
		return true
	}
	// A count of independent arrivals has the variance of its mean.
	span := p.RecentSpan.Seconds()
	expected := span * max(0, p.Served.Value+p.InFlightGrowth.Value)
	return math.Abs(span*p.Recent.Value-expected) <= settledChance*math.Sqrt(expected)
}

// steady reports whether the window also shows one number in service, to which its latencies
// belong: what is in flight changed by no more than chance explains, or more waited than was in
// service from its begin to its end. The means of a batch that fills or empties are those of no
// batch.
func (r *round) steady(p *Replica) bool {
	if settled := r.settled(p); !settled || r.ageSigned(p.InFlightGrowth) != ageFresh {
		return settled
	}
	n, changed := p.Running.Value, math.Abs(p.InFlightGrowth.Value)*r.window(p).Seconds()
	return changed <= max(settledWithin*n, settledChance*math.Sqrt(n)) || p.Waiting.Value-middle*changed > n
}

// fed reports whether more requests wait in the replica than are in service: who arrives
// changes nothing of what it does, and it has as many in service as it can.
func (r *round) fed(p *Replica) bool {
	return r.usable(p.Waiting) && r.usable(p.Running) && p.Waiting.Value > p.Running.Value
}

// since is t, or now for one that is not set yet.
func (r *round) since(t time.Time) time.Time {
	if t.IsZero() {
		return r.snapshot.Time
	}
	return t
}

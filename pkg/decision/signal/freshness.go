package signal

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
)

// Evidence says what the data of a model's serving replicas allow.
type Evidence int

// What the data allow.
const (
	// EvidenceFull: enough is fresh to raise and to lower.
	EvidenceFull Evidence = iota
	// EvidencePartial: something is known; it may raise, not lower.
	EvidencePartial
	// EvidenceStale: only old data; hold.
	EvidenceStale
	// EvidenceMissing: nothing is known; hold.
	EvidenceMissing
)

// LowerCoverage is the share of the ready replicas that must be fresh before a
// count may be lowered.
const LowerCoverage = 0.8

// aheadFactor is how many times as old a sample counts as it is ahead of the clock, which one
// of the two must then be wrong: clocks differ by less than samples age.
const aheadFactor = 2

// Age is the class of a sample's age.
type Age int

// The ages, the freshest first.
const (
	AgeFresh Age = iota
	AgeAgeing
	AgeStale
	AgeAbsent
)

// Age classifies a sample of something that cannot be negative. One from the future (a
// skewed clock) counts as old, too. What is no number is absent.
func (r *Round) Age(s contract.Sample) Age {
	if s.Value < 0 {
		return AgeAbsent
	}
	return r.AgeSigned(s)
}

// AgeSigned is the same for what may be negative: the growth of something.
func (r *Round) AgeSigned(s contract.Sample) Age {
	old, limit := r.Snapshot.Time.Sub(s.Time), r.Policy.Freshness
	if old < 0 {
		old *= -aheadFactor
	}
	switch {
	case !s.Present || math.IsNaN(s.Value) || math.IsInf(s.Value, 0) || old >= limit.Stale:
		return AgeAbsent
	case old >= limit.Ageing:
		return AgeStale
	case old >= limit.Fresh:
		return AgeAgeing
	}
	return AgeFresh
}

// AgeOfShare is the same for a share of something: more than all of it, as where a server counts
// in percent, is absent.
func (r *Round) AgeOfShare(s contract.Sample) Age {
	if s.Value > 1+Precision {
		return AgeAbsent
	}
	return r.Age(s)
}

// Fresh reports whether all of the samples may enter an estimate that lowers a count.
func (r *Round) Fresh(samples ...contract.Sample) bool {
	return !slices.ContainsFunc(samples, func(s contract.Sample) bool { return r.Age(s) != AgeFresh })
}

// Usable reports whether a sample may enter an estimate that raises a count.
func (r *Round) Usable(s contract.Sample) bool { return r.Age(s) <= AgeAgeing }

// UsableSigned is the same for what may be negative.
func (r *Round) UsableSigned(s contract.Sample) bool { return r.AgeSigned(s) <= AgeAgeing }

// Value is that of a usable sample; an unknown one adds nothing.
func (r *Round) Value(s contract.Sample) float64 {
	if r.Usable(s) {
		return s.Value
	}
	return 0
}

// Fledgling reports whether the replica serves for less than a metrics window: its
// means and rates are then of its start, and nothing is learned from them.
func (r *Round) Fledgling(p *contract.Replica) bool {
	return !p.Since.IsZero() && r.Snapshot.Time.Sub(p.Since) < r.Window(p)
}

// In a window that shows one state, what is in service is within settledWithin of Little's
// law, as a share of it, and what arrived last within settledChance standard deviations of
// independent arrivals. Its means are those of its middle, along a straight line.
const (
	SettledWithin = 0.25
	SettledChance = 3
	middle        = 0.5
)

// Settled reports whether the metrics window shows one state of the replica, of which
// something can be learned. Where the load changed within it, or the replica hung, the
// mean number in service belongs to another time than the latencies of the requests that
// completed. Then what is in service is not what completes times its time in service, or
// what arrived last is further from what arrives than chance explains.
func (r *Round) Settled(p *contract.Replica) bool {
	if r.Fledgling(p) || r.Age(p.InService) == AgeFresh && !Near(p.Running.Value, p.Served.Value*p.InService.Value, SettledWithin) {
		return false
	}
	if r.AgeSigned(p.Recent) != AgeFresh || r.AgeSigned(p.InFlightGrowth) != AgeFresh || r.Fed(p) {
		return true
	}
	// A count of independent arrivals has the variance of its mean.
	span := p.RecentSpan.Seconds()
	expected := span * max(0, p.Served.Value+p.InFlightGrowth.Value)
	return math.Abs(span*p.Recent.Value-expected) <= SettledChance*math.Sqrt(expected)
}

// Steady reports whether the window also shows one number in service, to which its latencies
// belong: what is in flight changed by no more than chance explains, or more waited than was in
// service from its begin to its end. The means of a batch that fills or empties are those of no
// batch.
func (r *Round) Steady(p *contract.Replica) bool {
	if settled := r.Settled(p); !settled || r.AgeSigned(p.InFlightGrowth) != AgeFresh {
		return settled
	}
	n, changed := p.Running.Value, math.Abs(p.InFlightGrowth.Value)*r.Window(p).Seconds()
	return changed <= max(SettledWithin*n, SettledChance*math.Sqrt(n)) || p.Waiting.Value-middle*changed > n
}

// Fed reports whether more requests wait in the replica than are in service: who arrives
// changes nothing of what it does, and it has as many in service as it can.
func (r *Round) Fed(p *contract.Replica) bool {
	return r.Usable(p.Waiting) && r.Usable(p.Running) && p.Waiting.Value > p.Running.Value
}

// Since is t, or now for one that is not set yet.
func (r *Round) Since(t time.Time) time.Time {
	if t.IsZero() {
		return r.Snapshot.Time
	}
	return t
}

package rate

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Repeats is the time after which loads repeat: what was attained counts 1/e then, and a
// scale-down that was undone for a load may be made again for it.
const Repeats = 24 * time.Hour

const (
	// attainedPrior is how long what is promised is taken to have been attained before
	// anything was seen: misses come in bursts, and the first minutes say little.
	attainedPrior = time.Hour
	// LeastCounted is the least share of what its latency model says that a replica is
	// counted to serve. Models that were learned were wrong by up to that much; where misses
	// do not depend on the rate, more than that would cost and bring nothing.
	LeastCounted = 0.85
)

// Factor is what a replica is counted to serve, as a share of what its latency model says.
func Factor(a *contract.Attained) capacity.Rate { return capacity.Rate(math.Exp(-a.Caution)) }

// AttainedShare says which share of the requests kept the promise.
func AttainedShare(a *contract.Attained) contract.Finding {
	return contract.SaysMet.With(contract.Share(1-(a.Missed+a.Unsure)/a.Requests), contract.Share(1-a.Missed/a.Requests))
}

// TellBuckets says that the buckets of the servers do not tell whether the promise is kept,
// where that is so of more requests than may miss it, and which targets they would tell of.
func (m *Model) TellBuckets() {
	kept := &m.In.Met
	if m.Round.Age(kept.Sample) != signal.AgeFresh || kept.Value-kept.Sure <= 1-m.Round.Policy.Share {
		return
	}
	for _, one := range []struct {
		of      contract.Bucket
		target  capacity.Milliseconds
		setting string
	}{{kept.TTFT, m.Promise.SLO.TTFT, "slo-ttft"}, {kept.ITL, m.Promise.SLO.ITL, "slo-tpot"}} {
		if one.of == (contract.Bucket{}) {
			continue
		}
		met := contract.SaysMet.With(contract.Share(kept.Sure), contract.Share(kept.Value))
		m.Note(contract.StageSupply, contract.ReasonMetricsFound, contract.SaysWithinBucket.With(met, one.setting, one.target, one.of))
	}
}

// Attained adds what share of the requests kept the promise since the last sample. Only what
// surely missed it counts as missed: a target within a bucket must not buy for what may well
// have met it. Misses
// while replicas start, or while more arrives than those that serve are counted for, are
// the price of a step or of a bound, and not of counting too much on each replica. A sample
// speaks of the whole metrics window before it.
func (m *Model) Attained() contract.Attained {
	a, met := m.Old.Attained, &m.In.Met
	if !m.Sized {
		return a
	}
	if a.SLO != m.Promise.SLO || a.Share != m.Round.Policy.Share {
		// What was missed of another promise says nothing of this one.
		a = contract.Attained{SLO: m.Promise.SLO, Share: m.Round.Policy.Share, Sampled: a.Sampled, Short: a.Short}
	}
	if m.Round.Age(met.Sample) != signal.AgeFresh || met.Value > 1 || !met.Time.After(a.Sampled) {
		return a
	}
	window := m.WindowOf()
	span := min(met.Time.Sub(a.Sampled), window)
	a.Sampled = met.Time
	best := m.CheapestSized()
	if best == nil || !m.complete() {
		a.Short = met.Time
		return a
	}
	if met.Time.Sub(a.Short) < window {
		return a
	}
	fade := math.Exp(-span.Hours() / Repeats.Hours())
	requests := float64(m.Demand.Now) * span.Seconds()
	a.Span = time.Duration(fade*float64(a.Span)) + span
	a.Requests = fade*a.Requests + requests
	a.Missed = fade*a.Missed + requests*(1-met.Value)
	a.Unsure = fade*a.Unsure + requests*max(0, met.Value-met.Sure)
	a.Counted = fade*a.Counted + requests*a.Caution
	allowed, prior := 1-m.Round.Policy.Share, float64(attainedPrior)/float64(a.Span)
	missed := (a.Missed/a.Requests + prior*allowed) / (1 + prior)
	a.Caution = a.Counted/a.Requests + math.Log(missed/allowed)/Growth(&best.Next.Sizing)
	a.Caution = min(max(0, a.Caution), -math.Log(LeastCounted))
	return a
}

// complete reports whether the fleet is what sizing asks for: no replica starts, none serves
// that cannot keep the promise, and those that serve are counted for what arrives.
func (m *Model) complete() bool {
	odd := func(v *Variant) bool { return v.Odd.Seen > 0 }
	return m.Demand.Now > 0 && !slices.ContainsFunc(m.Variants, odd) && m.Demand.Now <= Served(m.Variants, func(v *Variant) int { return v.In.Ready }) &&
		!slices.ContainsFunc(m.Variants, func(v *Variant) bool { return len(v.In.Starting) > 0 || v.In.Ready > 0 && v.Rate.Unfit() })
}

// leastPeakShare is the least share of the requests that is to keep the promise at the
// expected peak, however rare that is.
const leastPeakShare = 0.5

// PeakShare is the share of the requests that is to keep the promise while the demand is at
// the quantile that is sized for. It is beyond that for 1-risk of the time, and the misses of
// the whole time may fall into it.
func PeakShare(p *contract.Policy) float64 {
	return min(p.Share, max(leastPeakShare, 1-(1-p.Share)/(1-p.Risk)))
}

// Growth is the logarithm of how many times as many requests miss the promise when a replica
// serves twice its rate: the share of misses grows about exponentially with the rate.
func Growth(s *contract.Sizing) float64 {
	return math.Log((1-s.PeakShare)/(1-s.Share)) / (float64(s.PeakRate/s.Rate) - 1)
}

// CheapestSized is the variant that serves within the promise for least, of those that serve
// more where more may miss it; nil where none does.
func (m *Model) CheapestSized() *Variant {
	var best *Variant
	for _, v := range m.Variants {
		s := v.Next.Sizing
		if v.Rate.Bound && v.Rate.Promised > 0 && s.PeakRate > s.Rate && s.PeakShare < s.Share && (best == nil || v.UnitPrice() < best.UnitPrice()) {
			best = v
		}
	}
	return best
}

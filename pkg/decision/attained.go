package decision

import (
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// repeats is the time after which loads repeat: what was attained counts 1/e then, and a
// scale-down that was undone for a load may be made again for it.
const repeats = 24 * time.Hour

const (
	// attainedPrior is how long what is promised is taken to have been attained before
	// anything was seen: misses come in bursts, and the first minutes say little.
	attainedPrior = time.Hour
	// leastCounted is the least share of what its latency model says that a replica is
	// counted to serve. Models that were learned were wrong by up to that much; where misses
	// do not depend on the rate, more than that would cost and bring nothing.
	leastCounted = 0.85
)

// Attained is how well the promise was kept for about a day, of the time in which the
// fleet was what sizing asks for. It corrects what latency models get wrong: where more
// requests miss the promise than may, a replica is counted to serve less, until that many
// miss it. The zero value is that of a model of which nothing was seen.
type Attained struct {
	// SLO and Share are the promise that it speaks of.
	SLO   capacity.SLO
	Share float64
	// Sampled is the time of the newest sample, and Short that of the newest one that found
	// the fleet less than what sizing asks for.
	Sampled, Short time.Time
	// Span is the time that it speaks of, Requests how many arrived in it and Missed how
	// many of these missed the promise. What is older counts less.
	Span             time.Duration
	Requests, Missed float64
	// Unsure is how many of them may have missed it or not, beside those that surely did.
	// They correct nothing.
	Unsure float64
	// Counted is the sum of Caution over the requests.
	Counted float64
	// Caution says what a replica is counted to serve: exp(-Caution) of what its latency
	// model says. It is at least 0.
	Caution float64
}

// factor is what a replica is counted to serve, as a share of what its latency model says.
func (a *Attained) factor() capacity.Rate { return capacity.Rate(math.Exp(-a.Caution)) }

// told says which share of the requests kept the promise.
func (a *Attained) told() string {
	return met(1-(a.Missed+a.Unsure)/a.Requests, 1-a.Missed/a.Requests)
}

// met says which share of requests kept a promise.
func met(sure, most float64) string {
	least, greatest := fmt.Sprintf("%.1f%%", 100*max(0, sure)), fmt.Sprintf("%.1f%%", 100*most)
	if least == greatest {
		return least + " of the requests met the SLO"
	}
	return least + " to " + greatest + " of the requests met the SLO"
}

// tellBuckets says that the buckets of the servers do not tell whether the promise is kept,
// where that is so of more requests than may miss it, and which targets they would tell of.
func (r *round) tellBuckets(m *model) {
	kept := &m.in.Met
	if r.age(kept.Sample) != ageFresh || kept.Value-kept.Sure <= 1-r.policy.Share {
		return
	}
	for _, one := range []struct {
		of      Bucket
		target  capacity.Milliseconds
		setting string
	}{{kept.TTFT, m.promise.SLO.TTFT, "slo-ttft"}, {kept.ITL, m.promise.SLO.ITL, "slo-tpot"}} {
		if one.of == (Bucket{}) {
			continue
		}
		m.note(StageSupply, ReasonMetricsFound, "%s: %s %s ms lies within a bucket of the servers' histogram, %s, which does not tell how many: set it to %s",
			met(kept.Sure, kept.Value), one.setting, written(one.target), one.of.text(), one.of.ends())
	}
}

func (b Bucket) text() string {
	if b.UpTo == 0 {
		return fmt.Sprintf("the last one, above %s ms", written(b.Above))
	}
	return fmt.Sprintf("from %s to %s ms", written(b.Above), written(b.UpTo))
}

// ends are the targets of which the bucket tells.
func (b Bucket) ends() string {
	switch {
	case b.UpTo == 0:
		return written(b.Above)
	case b.Above == 0:
		return written(b.UpTo)
	}
	return written(b.Above) + " or " + written(b.UpTo)
}

// written is a number as one would write it into a setting.
func written(x capacity.Milliseconds) string { return fmt.Sprintf("%.10g", float64(x)) }

// attained adds what share of the requests kept the promise since the last sample. Only what
// surely missed it counts as missed: a target within a bucket must not buy for what may well
// have met it. Misses
// while replicas start, or while more arrives than those that serve are counted for, are
// the price of a step or of a bound, and not of counting too much on each replica. A sample
// speaks of the whole metrics window before it.
func (r *round) attained(m *model) Attained {
	a, met := m.old.Attained, &m.in.Met
	if !m.sized {
		return a
	}
	if a.SLO != m.promise.SLO || a.Share != r.policy.Share {
		// What was missed of another promise says nothing of this one.
		a = Attained{SLO: m.promise.SLO, Share: r.policy.Share, Sampled: a.Sampled, Short: a.Short}
	}
	if r.age(met.Sample) != ageFresh || met.Value > 1 || !met.Time.After(a.Sampled) {
		return a
	}
	window := r.windowOf(m)
	span := min(met.Time.Sub(a.Sampled), window)
	a.Sampled = met.Time
	best := m.cheapestSized()
	if best == nil || !m.complete() {
		a.Short = met.Time
		return a
	}
	if met.Time.Sub(a.Short) < window {
		return a
	}
	fade := math.Exp(-span.Hours() / repeats.Hours())
	requests := float64(m.demand.now) * span.Seconds()
	a.Span = time.Duration(fade*float64(a.Span)) + span
	a.Requests = fade*a.Requests + requests
	a.Missed = fade*a.Missed + requests*(1-met.Value)
	a.Unsure = fade*a.Unsure + requests*max(0, met.Value-met.Sure)
	a.Counted = fade*a.Counted + requests*a.Caution
	allowed, prior := 1-r.policy.Share, float64(attainedPrior)/float64(a.Span)
	missed := (a.Missed/a.Requests + prior*allowed) / (1 + prior)
	a.Caution = a.Counted/a.Requests + math.Log(missed/allowed)/best.next.Sizing.growth()
	a.Caution = min(max(0, a.Caution), -math.Log(leastCounted))
	return a
}

// complete reports whether the fleet is what sizing asks for: no replica starts, none serves
// that cannot keep the promise, and those that serve are counted for what arrives.
func (m *model) complete() bool {
	odd := func(v *variant) bool { return v.odd.seen > 0 }
	return m.demand.now > 0 && !slices.ContainsFunc(m.variants, odd) && m.demand.now <= m.served(func(v *variant) int { return v.in.Ready }) &&
		!slices.ContainsFunc(m.variants, func(v *variant) bool { return len(v.in.Starting) > 0 || v.in.Ready > 0 && v.rate.unfit() })
}

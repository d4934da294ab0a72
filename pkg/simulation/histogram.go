package simulation

import (
	"slices"
	"sort"
	"time"
)

// Buckets are the upper bounds of the buckets of a model's histograms, in seconds and rising.
// A last bucket without a bound is always there.
type Buckets struct {
	// FirstToken is for the time from arrival to the first token, PerToken for the mean time
	// of a request per further token.
	FirstToken, PerToken []float64
}

// Latencies are the histograms of what the router saw of the requests of a model.
type Latencies struct{ FirstToken, PerToken Histogram }

// Histogram counts observations by size, as a classic histogram of Prometheus does.
type Histogram struct {
	// Bounds are the upper bounds of the buckets, rising. Nobody changes them.
	Bounds []float64
	// Counts are how many observations each bucket alone has; the last one is that of all
	// above the last bound.
	Counts []uint64
}

// NewHistogram has no observations.
func NewHistogram(bounds []float64) Histogram {
	return Histogram{Bounds: bounds, Counts: make([]uint64, len(bounds)+1)}
}

// Observe counts one value. A value that equals a bound is within it.
func (h Histogram) Observe(value float64) { h.Counts[sort.SearchFloat64s(h.Bounds, value)]++ }

// Since is what was observed after an earlier state of the same histogram.
func (h Histogram) Since(earlier Histogram) Histogram {
	out := h.clone()
	for i := range out.Counts {
		out.Counts[i] -= earlier.Counts[i]
	}
	return out
}

func (h Histogram) clone() Histogram {
	return Histogram{Bounds: h.Bounds, Counts: slices.Clone(h.Counts)}
}

// Quantile is the value below which a share q of the observations lies, as histogram_quantile
// of Prometheus reckons it. Within a bucket the observations count as spread evenly, and the
// first bucket begins at 0. Of the last bucket only the lower bound is known. False means that
// there are no observations, or no bounds.
func (h Histogram) Quantile(q float64) (float64, bool) {
	total := uint64(0)
	for _, n := range h.Counts {
		total += n
	}
	if total == 0 || len(h.Bounds) == 0 {
		return 0, false
	}
	rank, before := q*float64(total), uint64(0)
	for i, bound := range h.Bounds {
		if float64(before+h.Counts[i]) < rank {
			before += h.Counts[i]
			continue
		}
		from := 0.0
		if i > 0 {
			from = h.Bounds[i-1]
		}
		if h.Counts[i] == 0 {
			// Only a rank of 0 finds an empty bucket, and Prometheus then divides 0 by 0.
			return from, true
		}
		return from + (bound-from)*((rank-float64(before))/float64(h.Counts[i])), true
	}
	return h.Bounds[len(h.Bounds)-1], true
}

// newLatencies is nil where nobody asks for histograms.
func newLatencies(b *Buckets) *Latencies {
	if b == nil {
		return nil
	}
	return &Latencies{FirstToken: NewHistogram(b.FirstToken), PerToken: NewHistogram(b.PerToken)}
}

// observe takes in a request that has its last token.
func (l *Latencies) observe(arrived, first, last time.Duration, output int) {
	if l == nil {
		return
	}
	l.FirstToken.Observe((first - arrived).Seconds())
	if output > 1 {
		l.PerToken.Observe((last - first).Seconds() / float64(output-1))
	}
}

// Latencies are the histograms of a model as they are now; nil where the options ask for
// none. A request is in them from its last token on, as in those of llm-d's router.
func (w *World) Latencies(model int) *Latencies {
	l := w.models[model].latencies
	if l == nil {
		return nil
	}
	return &Latencies{FirstToken: l.FirstToken.clone(), PerToken: l.PerToken.clone()}
}

package simulation

import (
	"slices"
	"sort"
)

// Buckets are the upper bounds of the buckets of a model's histograms, in seconds and rising.
// A last bucket without a bound is always there.
type Buckets struct {
	// FirstToken is for the time from arrival to the first token, PerToken for the mean time
	// of a request per further token.
	FirstToken, PerToken []float64
	// Servers has the histograms be the sum of those of the servers, as vLLM has them: the
	// first token counts from when the request came to its server, and as soon as it is there.
	// Else they are the router's, which takes note of a request when it ends.
	Servers bool
}

// Latencies are the histograms of the requests of a model.
type Latencies struct {
	FirstToken, PerToken Histogram
	servers              bool
}

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
	return &Latencies{FirstToken: NewHistogram(b.FirstToken), PerToken: NewHistogram(b.PerToken), servers: b.Servers}
}

// observe takes in what happened to a request.
func (l *Latencies) observe(e *Event) {
	switch {
	case l == nil:
	case e.Kind == FirstToken && l.servers:
		l.FirstToken.Observe((e.At - e.Times.Arrived).Seconds())
	case e.Kind == Finished:
		if !l.servers {
			l.FirstToken.Observe((e.Times.FirstToken - arrivalOf(e.Request)).Seconds())
		}
		if further := e.Request.Output - 1; further > 0 {
			l.PerToken.Observe((e.At - e.Times.FirstToken).Seconds() / float64(further))
		}
	}
}

// Latencies are the histograms of a model as they are now; nil where the options ask for
// none.
func (w *World) Latencies(model int) *Latencies {
	l := w.models[model].latencies
	if l == nil {
		return nil
	}
	return &Latencies{FirstToken: l.FirstToken.clone(), PerToken: l.PerToken.clone(), servers: l.servers}
}

package emulation

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// histogram counts observations in buckets. Unlike that of the client library it
// takes many equal observations at the cost of one: an iteration gives every
// request of the batch its token after the same time.
type histogram struct {
	bounds []float64
	counts []uint64
	count  uint64
	sum    float64
}

// newHistogram takes the upper bounds of the buckets, in ascending order.
func newHistogram(bounds []float64) *histogram {
	return &histogram{bounds: bounds, counts: make([]uint64, len(bounds))}
}

// observe adds n observations of one value.
func (h *histogram) observe(value float64, n int) {
	if i, _ := slices.BinarySearch(h.bounds, value); i < len(h.counts) {
		h.counts[i] += uint64(n)
	}
	h.count += uint64(n)
	h.sum += value * float64(n)
}

func (h *histogram) metric(d *prometheus.Desc, labels []string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.bounds))
	below := uint64(0)
	for i, bound := range h.bounds {
		below += h.counts[i]
		buckets[bound] = below
	}
	return prometheus.MustNewConstHistogram(d, h.count, h.sum, buckets, labels...)
}

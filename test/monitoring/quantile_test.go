package monitoring

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// The quantile of the simulated histograms is what histogram_quantile makes of them.
func TestTheQuantileOfAHistogramIsThatOfPrometheus(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bounds := make([]float64, 1+random.IntN(20))
		for i := range bounds {
			bounds[i] = 0.001 + random.Float64()*10
		}
		slices.Sort(bounds)
		h, buckets := simulation.NewHistogram(bounds), make(promql.Buckets, len(bounds)+1)
		for i, bound := range bounds {
			buckets[i].UpperBound = bound
		}
		buckets[len(bounds)].UpperBound = math.Inf(1)
		for range random.IntN(200) {
			value := bounds[random.IntN(len(bounds))]
			if random.IntN(4) > 0 {
				value = random.ExpFloat64() * 4
			}
			h.Observe(value)
			for i := range buckets {
				if value <= buckets[i].UpperBound {
					buckets[i].Count++
				}
			}
		}
		q := []float64{0.1, 0.5, 0.9, 0.99, 1}[random.IntN(5)]
		want, _, _, _, _, _ := promql.BucketQuantile(q, buckets)
		got, some := h.Quantile(q)
		require.Equal(t, !math.IsNaN(want), some)
		if some {
			require.InDelta(t, want, got, 1e-9)
		}
	}
}

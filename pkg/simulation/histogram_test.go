package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestQuantileByHand(t *testing.T) {
	bounds := []float64{1, 2, 4}
	for _, c := range []struct {
		name   string
		counts []uint64
		q      float64
		want   float64
	}{
		{"evenly within the first bucket, which begins at 0", []uint64{10, 0, 0, 0}, 0.5, 0.5},
		{"nine of ten below the second bound", []uint64{5, 5, 0, 0}, 0.9, 1.8},
		{"behind an empty bucket", []uint64{5, 0, 5, 0}, 0.9, 3.6},
		{"at a bound", []uint64{9, 1, 0, 0}, 0.9, 1},
		{"above all bounds the last one is all that is known", []uint64{1, 0, 0, 9}, 0.9, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, some := simulation.Histogram{Bounds: bounds, Counts: c.counts}.Quantile(c.q)
			assert.True(t, some)
			assert.InDelta(t, c.want, got, 1e-12)
		})
	}
	_, some := simulation.NewHistogram(bounds).Quantile(0.9)
	assert.False(t, some, "without observations")
	one := simulation.NewHistogram(nil)
	one.Observe(3)
	_, some = one.Quantile(0.9)
	assert.False(t, some, "without bounds")
}

func TestSinceAnEarlierState(t *testing.T) {
	h := simulation.NewHistogram([]float64{1, 2})
	h.Observe(0.5)
	before := simulation.Histogram{Bounds: h.Bounds, Counts: []uint64{1, 0, 0}}
	h.Observe(1.5)
	h.Observe(9)
	assert.Equal(t, []uint64{0, 1, 1}, h.Since(before).Counts)
	assert.Equal(t, []uint64{1, 1, 1}, h.Counts, "the histogram itself stays")
}

// Three requests of one model: the second one waits behind the first, and none is in the
// histograms before its last token.
func TestTheRouterNotesLatenciesWhenRequestsEnd(t *testing.T) {
	buckets := simulation.Buckets{FirstToken: []float64{0.05, 0.2}, PerToken: []float64{0.005, 0.05}}
	w := world(t, simulation.WorldOptions{Latencies: &buckets}, single(1))
	for i := range 3 {
		require.NoError(t, w.Arrive(simulation.Arrival{Request: workload.Request{Arrival: time.Duration(i) * time.Millisecond, Input: 100, Output: 50}}))
	}
	assert.Equal(t, 300, w.Replicas(simulation.VariantIndex{})[0].Metrics.Prefilling, "no first token is there yet")
	assert.Equal(t, []uint64{0, 0, 0}, w.Latencies(0).FirstToken.Counts)
	for now := time.Duration(0); len(w.done) == 0; now += time.Millisecond {
		assert.Equal(t, []uint64{0, 0, 0}, w.Latencies(0).FirstToken.Counts, now)
		w.Advance(now)
	}
	w.Finish(time.Hour)
	require.Len(t, w.done, 3)
	want := simulation.Latencies{FirstToken: simulation.NewHistogram(buckets.FirstToken), PerToken: simulation.NewHistogram(buckets.PerToken)}
	for _, o := range w.done {
		want.FirstToken.Observe((o.FirstToken - o.Arrived).Seconds())
		want.PerToken.Observe((o.Finished - o.FirstToken).Seconds() / 49)
	}
	assert.Equal(t, &want, w.Latencies(0))
	assert.Zero(t, w.Replicas(simulation.VariantIndex{})[0].Metrics.Prefilling)

	// The servers' own have a first token as soon as it is there.
	buckets.Servers = true
	w = world(t, simulation.WorldOptions{Latencies: &buckets}, single(1))
	require.NoError(t, w.Arrive(simulation.Arrival{Request: workload.Request{Input: 100, Output: 50}}))
	noted := 0
	for now := time.Duration(0); len(w.done) == 0; now += time.Millisecond {
		if w.Latencies(0).FirstToken.Counts[0]+w.Latencies(0).FirstToken.Counts[1] > 0 {
			noted++
		}
		assert.Equal(t, []uint64{0, 0, 0}, w.Latencies(0).PerToken.Counts)
		w.Advance(now)
	}
	assert.Greater(t, noted, 49, "for all the time of the other tokens")
	assert.Equal(t, uint64(1), w.Latencies(0).PerToken.Counts[0]+w.Latencies(0).PerToken.Counts[1]+w.Latencies(0).PerToken.Counts[2])

	assert.Nil(t, world(t, simulation.WorldOptions{}, single(1)).Latencies(0), "who asks for none has none")
}

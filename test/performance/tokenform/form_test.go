package tokenform_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/tokenform"
)

// The published iteration times: of the prefill for one, eight and two and a half
// requests, and of a decode.
func TestPublishedIterationTimes(t *testing.T) {
	ttft := func(f tokenform.Form, n float64, shape capacity.TokenShape) float64 {
		at := f.At(shape).Steady(n, shape)
		return float64(at.TTFT - at.ITL)
	}
	f := tokenform.Form{Alpha: 10, Beta: 0.01, Gamma: 0.001}
	const endless = 1e-9 // an output that adds nothing
	assert.InDelta(t, 32, ttft(f, 1, capacity.TokenShape{Input: 1000, Output: endless}), 1e-6)
	assert.InDelta(t, 208, ttft(f, 8, capacity.TokenShape{Input: 2000, Output: endless}), 1e-6)
	assert.InDelta(t, 29.25, ttft(f, 2.5, capacity.TokenShape{Input: 500, Output: endless}), 1e-6)
	one := capacity.TokenShape{Input: 1, Output: 1}
	for n, want := range map[float64]float64{1: 1.23, 4: 1.575, 8: 2.035} {
		assert.InDelta(t, want, float64(tokenform.Form{Alpha: 1, Beta: 0.1, Gamma: 0.01}.At(one).Steady(n, one).ITL), 1e-9, "n=%v", n)
	}
}

// Worked out by another program: a request of 900 and 150 tokens among 17.5.
func TestTheFormByHand(t *testing.T) {
	shape := capacity.TokenShape{Input: 900, Output: 150}
	at := tokenform.Form{Alpha: 7, Beta: 0.025, Gamma: 5e-5}.At(shape).Steady(17.5, shape)
	assert.InDelta(t, 10.969093543, float64(at.ITL), 1e-8)
	assert.InDelta(t, 44.409437086, float64(at.TTFT), 1e-8)
	assert.InDelta(t, 17500/1678.804375, float64(at.Rate), 1e-6)
}

// The published sizes and means, to the relative tolerance that their single precision has.
func TestPublishedSizes(t *testing.T) {
	shape := capacity.TokenShape{Input: 512, Output: 128}
	queue, ok := serving.NewQueue(tokenform.Form{Alpha: 8, Beta: 0.016, Gamma: 0.0005, MaxBatchSize: 64}.At(shape), shape, serving.Arrivals{Waiting: 640})
	require.True(t, ok)
	for name, c := range map[string]struct {
		slo  capacity.SLO
		want float64
	}{
		"ITL binds":       {capacity.SLO{TTFT: 500, ITL: 16}, 9.62487},
		"its TTFT alone":  {capacity.SLO{TTFT: 500}, 14.7491},
		"all of its rate": {capacity.SLO{ITL: 1000}, 15.5469},
	} {
		assert.InEpsilon(t, c.want, float64(queue.MaxRate(c.slo, serving.MeanShare)), 1.5e-3, name)
	}
	shape = capacity.TokenShape{Input: 100, Output: 10}
	queue, ok = serving.NewQueue(tokenform.Form{Alpha: 1, Beta: 0.01, Gamma: 0.001, MaxBatchSize: 8}.At(shape), shape, serving.Arrivals{Waiting: 16})
	require.True(t, ok)
	for rate, want := range map[capacity.Rate]float64{5: 0.07841, 50: 0.87376} {
		assert.InEpsilon(t, want, queue.At(rate).InService, 1e-3)
	}
	assert.InDelta(t, 0.00019, float64(queue.At(50).Wait), 1e-5)
}

func TestAShapeThatIsNotKnownGivesNothing(t *testing.T) {
	for _, shape := range []capacity.TokenShape{{}, {Input: 5}, {Output: 5}, {Input: -1, Output: 5}} {
		assert.False(t, tokenform.Form{Alpha: 1, Beta: 0.1, Gamma: 0.01}.At(shape).Known(), "%+v", shape)
	}
}

package churn

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestDemandSharesOfOneType(t *testing.T) {
	s := oneType()
	assert.InDeltaSlice(t, []float64{.15 * 752, .20 * 752, .30 * 752, .35 * 752}, s.demand(.94), 1e-9)
	w := newWorld(&s, 94, stream(1, streamTargets))
	require.Len(t, w.variants, 40)
	assert.InDelta(t, 752*.35/8/10, w.variants[39].wave.mean, 1e-9, "replicas of one of ten variants of 8 devices")
}

func TestDemandSharesOfMixedTypes(t *testing.T) {
	s := mixedTypes()
	require.Len(t, s.kinds, 14)
	demand, total := s.demand(.85), 0.0
	pool := map[capacity.Accelerator]float64{}
	for i, devices := range demand {
		total += devices
		pool[s.kinds[i].accelerators[0]] += devices
	}
	assert.InDelta(t, .85*800, total, 1e-9)
	// Shares of .75, .90 and .75 in pools of 320, 320 and 160 devices.
	assert.InDelta(t, .85*800*240/648, pool["H100"], 1e-9)
	assert.InDelta(t, .85*800*288/648, pool["A100"], 1e-9, "also of those that accept H100")
	assert.InDelta(t, .85*800*120/648, pool["L40S"], 1e-9)
	assert.Len(t, newWorld(&s, 85, stream(1, streamTargets)).variants, 42)
}

func TestClusterIsTheStudys(t *testing.T) {
	for _, test := range []struct {
		scenario       scenario
		nodes, devices int
		cores          int64
	}{
		{oneType(), 100, 800, 0},
		{mixedTypes(), 120, 800, 40 * (192 + 96 + 64)},
	} {
		devices, milliCPU := 0, int64(0)
		c := test.scenario.cluster()
		for i := range c.Nodes {
			devices += c.Nodes[i].Free.Devices
			milliCPU += c.Nodes[i].Free.MilliCPU
		}
		assert.Len(t, c.Nodes, test.nodes)
		assert.Equal(t, test.devices, devices)
		assert.Equal(t, 1000*test.cores, milliCPU)
	}
}

func TestWaveHasTheMeanAmplitudeAndNoiseOfTheStudy(t *testing.T) {
	const mean, steps = 1000, 200_000
	chance := stream(3, streamTargets)
	w := newWave(mean, chance)
	period := int(w.period)
	byPhase := make([]float64, period)
	sum, squares := 0.0, 0.0
	for step := range steps {
		target := float64(w.target(step, chance)) / mean
		sum += target
		byPhase[step%period] += target * float64(period) / steps
		noise := target - 1 - .5*math.Sin(2*math.Pi*float64(step)/w.period+w.phase)
		squares += noise * noise
	}
	assert.InDelta(t, 1, sum/steps, .01)
	low, high := math.Inf(1), math.Inf(-1)
	for _, m := range byPhase {
		low, high = min(low, m), max(high, m)
	}
	assert.InDelta(t, .5, low, .05)
	assert.InDelta(t, 1.5, high, .05)
	assert.InDelta(t, .08/math.Sqrt(1-.9*.9), math.Sqrt(squares/steps), .01, "the noise once it has settled")
}

func TestWavesDrawPeriodsAndPhasesEvenly(t *testing.T) {
	chance := stream(4, streamTargets)
	periods, phases := map[float64]int{}, 0.0
	for range 3000 {
		w := newWave(1, chance)
		periods[w.period]++
		phases += w.phase / 3000
	}
	require.Len(t, periods, 3)
	for _, period := range []float64{288, 144, 96} {
		assert.InDelta(t, 1000, periods[period], 100)
	}
	assert.InDelta(t, math.Pi, phases, .1)
}

func TestTargetsAreNeverNegative(t *testing.T) {
	chance := stream(5, streamTargets)
	w := newWave(2, chance)
	w.noise = -5
	assert.Zero(t, w.target(0, chance))
}

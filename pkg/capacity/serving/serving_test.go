package serving

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

var (
	// Llama-3.1-8B on one H100, from published silicon fits.
	llama8B = Profile{Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.022, KVTokens: 447936, BatchLimit: 128}
	conv    = capacity.TokenShape{Input: 1155, Output: 211}
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func TestSteadyObeysLittlesLaw(t *testing.T) {
	for _, n := range []float64{1, 10, 64, 128} {
		at := llama8B.Steady(n, conv)
		inService := float64(at.Rate) / 1000 * float64(conv.Output) * float64(at.ITL)
		assert.InEpsilon(t, n, inService, 1e-9, "n=%v", n)
	}
}

func TestSteadyOfUnknownIsZero(t *testing.T) {
	assert.Zero(t, llama8B.Steady(8, capacity.TokenShape{}))
	assert.Zero(t, Profile{}.Steady(8, conv))
	assert.Zero(t, llama8B.Steady(0, conv))
}

func TestConcurrencyTakesTheTighterLimit(t *testing.T) {
	assert.InDelta(t, 128, llama8B.Concurrency(conv), 1e-9)
	long := capacity.TokenShape{Input: 8000, Output: 400}
	assert.InDelta(t, 447936.0/8200, llama8B.Concurrency(long), 1e-9)
}

func TestMaxRate(t *testing.T) {
	for name, tc := range map[string]struct {
		profile Profile
		slo     capacity.SLO
		want    capacity.Rate
	}{
		"batch limit binds":             {llama8B, capacity.SLO{TTFT: 500, ITL: 50}, llama8B.Steady(128, conv).Rate},
		"no promise":                    {llama8B, capacity.SLO{}, llama8B.Steady(128, conv).Rate},
		"one request misses the ITL":    {llama8B, capacity.SLO{ITL: 5}, 0},
		"unknown profile serves nobody": {Profile{}, capacity.SLO{ITL: 50}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			assert.InDelta(t, float64(tc.want), float64(tc.profile.MaxRate(conv, tc.slo, 1)), 1e-6)
		})
	}
	t.Run("ITL binds", func(t *testing.T) {
		rate := llama8B.MaxRate(conv, capacity.SLO{ITL: 20}, 1)
		assert.Positive(t, rate)
		assert.Less(t, rate, llama8B.Steady(128, conv).Rate)
	})
}

func TestCurveRecoversTheProfileItWatches(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var curve Curve
	for i := range 60 {
		n := 20 + 100*random.Float64()
		rate := llama8B.Steady(n, conv).Rate * capacity.Rate(1+0.05*random.NormFloat64())
		curve = curve.Observe(epoch.Add(time.Duration(i)*10*time.Second), n, rate, conv)
	}
	for _, n := range []float64{30, 64, 90, 128} {
		assert.InEpsilon(t, float64(llama8B.Steady(n, conv).Rate), float64(curve.Rate(n, conv, Profile{})), 0.06, "n=%v", n)
	}
}

func TestCurveFromOneSaturatedReplica(t *testing.T) {
	curve := Curve{}.Observe(epoch, 128, llama8B.Steady(128, conv).Rate, conv)
	truth := llama8B.Steady(90, conv).Rate
	t.Run("with a profile as prior it is exact", func(t *testing.T) {
		assert.InEpsilon(t, float64(truth), float64(curve.Rate(90, conv, llama8B)), 1e-9)
	})
	t.Run("without one it stays between proportional and constant", func(t *testing.T) {
		got := float64(curve.Rate(90, conv, Profile{}))
		full := float64(llama8B.Steady(128, conv).Rate)
		assert.Greater(t, got, full*90/128)
		assert.Less(t, got, full)
		assert.InEpsilon(t, float64(truth), got, 0.15)
	})
}

func TestCurveFollowsTheTokenMix(t *testing.T) {
	curve := Curve{}.Observe(epoch, 64, 20, conv)
	twice := capacity.TokenShape{Input: conv.Input, Output: 2 * conv.Output}
	assert.InEpsilon(t, float64(curve.Rate(64, conv, Profile{}))/2, float64(curve.Rate(64, twice, Profile{})), 1e-9)
}

func TestCurveLeavesOutPointsWithoutLoad(t *testing.T) {
	curve := Curve{}.Observe(epoch, 0, 5, conv).Observe(epoch, 5, 0, conv)
	assert.False(t, curve.Known())
	assert.Zero(t, curve.Rate(10, conv, llama8B))
}

func TestCurveForgets(t *testing.T) {
	var curve Curve
	for i := range 30 {
		curve = curve.Observe(epoch.Add(time.Duration(i)*10*time.Second), 64, 10, conv)
	}
	later := epoch.Add(2 * time.Hour)
	for i := range 30 {
		curve = curve.Observe(later.Add(time.Duration(i)*10*time.Second), 64, 20, conv)
	}
	require.True(t, curve.Known())
	assert.InEpsilon(t, 20, float64(curve.Rate(64, conv, Profile{})), 0.01)
}

// Nothing is asked, or nothing is known: nobody is in service.
func TestUnderWithoutARate(t *testing.T) {
	for name, c := range map[string]struct {
		p     Profile
		rate  capacity.Rate
		shape capacity.TokenShape
	}{
		"no rate": {llama8B, 0, conv}, "less than none": {llama8B, -1, conv}, "no shape": {llama8B, 1, capacity.TokenShape{}}, "no profile": {Profile{}, 1, conv},
	} {
		n, at := c.p.Under(c.rate, c.shape)
		assert.Zero(t, n, name)
		assert.Zero(t, at, name)
	}
}

// With 8 in service ITL is 14 ms and with 0.5 6.5 ms; of one alone 7.
func TestMaxRateOfFewInService(t *testing.T) {
	p := Profile{Base: 6, PerRequest: 1, BatchLimit: 8}
	for name, c := range map[string]struct {
		itl, fraction, n float64
	}{
		"all":                   {14, 1, 8},
		"half of the batch":     {14, 0.5, 4},
		"what keeps the ITL":    {9, 1, 3},
		"one and no more":       {7, 1, 1},
		"not even one":          {6.9, 1, 0},
		"half a place":          {14, 0.0625, 0.5},
		"less than one keeps":   {6.6, 0.0625, 0.5},
		"of which none is used": {14, 0, 0},
	} {
		want := 0.0
		if c.n > 0 {
			want = 1000 * c.n / (128 * (6 + c.n))
		}
		got := p.MaxRate(square, capacity.SLO{ITL: capacity.Milliseconds(c.itl)}, c.fraction)
		assert.InDelta(t, want, float64(got), 1e-9, name)
	}
	assert.Zero(t, p.MaxRate(capacity.TokenShape{}, capacity.SLO{}, 1))
	p.BatchLimit = 7
	assert.InDelta(t, 1000.0/(128*7), float64(p.MaxRate(square, capacity.SLO{ITL: 7}, 1)), 1e-9, "one, to which halving never comes")
}

func TestConcurrencyThatIsNotKnown(t *testing.T) {
	assert.True(t, math.IsInf(Profile{Base: 1}.Concurrency(conv), 1))
	assert.InDelta(t, 7, Profile{Base: 1, BatchLimit: 7, KVTokens: 1e9}.Concurrency(capacity.TokenShape{}), 0)
	assert.InDelta(t, 1000/(100+50.0/2), Profile{Base: 1, BatchLimit: 70, KVTokens: 1000}.Concurrency(capacity.TokenShape{Input: 100, Output: 50}), 1e-12)
}

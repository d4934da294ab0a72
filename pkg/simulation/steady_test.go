package simulation_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// With n requests in service all the time, rate and time per token are those of
// the mean-field formula that the capacity model sizes by.
func TestAgreesWithSteadyState(t *testing.T) {
	profiles := map[string]serving.Profile{
		"8B on one H100":       {Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.0220},
		"70B fp8 on four H100": {Base: 10.98, PerRequest: 0.0526, PerResidentToken: 2.87e-5, PerPrefillToken: 0.0461},
	}
	shapes := []capacity.TokenShape{{Input: 1155, Output: 211}, {Input: 256, Output: 256}, {Input: 2000, Output: 100}}
	for name, profile := range profiles {
		for _, shape := range shapes {
			for _, n := range []int{1, 8, 32, 64, 128} {
				rate, itl := closedLoop(t, profile, shape, n)
				want := profile.Steady(float64(n), shape)
				assert.InEpsilon(t, float64(want.Rate), rate, 0.04, "rate: %s, %v, n=%d", name, shape, n)
				// The formula lets a request's own prompt slow its decoding down, which
				// shows while there are few others.
				if n >= 32 {
					assert.InEpsilon(t, float64(want.ITL), itl, 0.04, "time per token: %s, %v, n=%d", name, shape, n)
				}
			}
		}
	}
}

// closedLoop keeps n requests in service and returns requests per second and
// milliseconds per iteration, weighted by the tokens that it decoded.
func closedLoop(t *testing.T, profile serving.Profile, shape capacity.TokenShape, n int) (rate, itl float64) {
	random := rand.New(rand.NewPCG(uint64(n), 3))
	var gaps, tokens float64
	var e *simulation.Engine
	warm := time.Duration(math.MaxInt64)
	e = newEngine(t, simulation.Options{Profile: profile, TokenBudget: simulation.LargeTokenBudget, Watch: func(i simulation.Iteration) {
		if i.Start >= warm {
			gaps += (i.End - i.Start).Seconds() * 1000 * float64(i.Decoding)
			tokens += float64(i.Decoding)
		}
	}})
	submit := func(at time.Duration) {
		// Lengths vary, or all requests would start and end together for ever.
		r := simulation.Request{Input: 1 + random.IntN(2*int(shape.Input)), Output: 1 + random.IntN(2*int(shape.Output))}
		require.NoError(t, e.Submit(at, r))
	}
	for range n {
		submit(0)
	}
	finished, counted := 0, 0
	var last time.Duration
	for finished < 1000+20*n {
		end, ok := e.Next()
		require.True(t, ok)
		for _, event := range e.Advance(end) {
			if event.Kind != simulation.Finished {
				continue
			}
			finished++
			submit(end)
			if finished == 100+5*n {
				warm = end
			}
			if warm < end {
				counted, last = counted+1, end
			}
		}
	}
	return float64(counted) / (last - warm).Seconds(), gaps / tokens
}

func TestNothingIsAllocatedInSteadyState(t *testing.T) {
	next := steady(t, 128)
	for range 20_000 {
		next()
	}
	assert.Zero(t, testing.AllocsPerRun(2000, next))
}

// steady returns a function that runs one iteration of an engine with n requests
// in service.
func steady(t testing.TB, n int) func() {
	random := rand.New(rand.NewPCG(1, 2))
	e := newEngine(t, simulation.Options{
		Profile:     serving.Profile{Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.0220, KVTokens: 447_936, BatchLimit: n},
		TokenBudget: simulation.LargeTokenBudget,
	})
	submit := func(at time.Duration) {
		require.NoError(t, e.Submit(at, simulation.Request{Input: 1 + random.IntN(2000), Output: 1 + random.IntN(400)}))
	}
	for range n + 5 {
		submit(0)
	}
	return func() {
		end, _ := e.Next()
		for _, event := range e.Advance(end) {
			if event.Kind == simulation.Finished {
				submit(end)
			}
		}
	}
}

func BenchmarkIteration(b *testing.B) {
	for name, n := range map[string]int{"batch=16": 16, "batch=128": 128, "batch=1024": 1024} {
		b.Run(name, func(b *testing.B) {
			next := steady(b, n)
			b.ReportAllocs()
			for b.Loop() {
				next()
			}
		})
	}
}

package workload_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

var nan = math.NaN()

// Whatever was counted: each interval has its requests but for rounding, their tokens add up
// to what was counted, and the same seed gives the same requests.
func TestAHistoryIsWhatWasCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for trial := range 30 {
		h := workload.History{
			Step: time.Duration(1+random.IntN(120)) * time.Second, Seed: uint64(trial),
			Input: workload.LengthsOf(1000, 1000*(1+4*random.Float64()), 50_000), Output: workload.Lengths{Max: 9000},
		}
		var requests, input, output float64
		for range 1 + random.IntN(50) {
			i := workload.Interval{Arrived: 40 * random.Float64(), Input: 100 + 2000*random.Float64(), Output: 1 + 300*random.Float64()}
			h.Intervals = append(h.Intervals, i)
		}
		stream, err := workload.NewHistory(h)
		require.NoError(t, err)
		all, err := readAll(stream)
		require.NoError(t, err)
		require.True(t, inOrder(all))
		next := 0
		var gotInput, gotOutput float64
		for k, i := range h.Intervals {
			requests += i.Arrived
			begin := next
			for next < len(all) && all[next].Arrival < time.Duration(k+1)*h.Step {
				require.GreaterOrEqual(t, all[next].Arrival, time.Duration(k)*h.Step)
				gotInput += float64(all[next].Input)
				gotOutput += float64(all[next].Output)
				next++
			}
			require.InDelta(t, requests, float64(next), 0.5, "up to interval %d", k)
			input += float64(next-begin) * i.Input
			output += float64(next-begin) * i.Output
			require.InDelta(t, input, gotInput, 1)
			require.InDelta(t, output, gotOutput, 1)
		}
		assert.Len(t, all, next)
		again, err := workload.NewHistory(h)
		require.NoError(t, err)
		same, err := readAll(again)
		require.NoError(t, err)
		assert.Equal(t, all, same)
		h.Seed++
		other, err := workload.NewHistory(h)
		require.NoError(t, err)
		others, err := readAll(other)
		require.NoError(t, err)
		if len(all) > 3 {
			assert.NotEqual(t, all, others, "another seed")
		}
	}
}

func TestTheLengthsOfAHistoryVary(t *testing.T) {
	h := workload.History{
		Step: time.Minute, Input: workload.LengthsOf(1000, 4000, 6000),
		Intervals: []workload.Interval{{Arrived: 20_000, Input: 1000, Output: 100}},
	}
	stream, err := workload.NewHistory(h)
	require.NoError(t, err)
	all, err := readAll(stream)
	require.NoError(t, err)
	long, longest := 0, 0
	for _, r := range all {
		assert.InDelta(t, 100, r.Output, 1, "nothing says that they vary")
		longest = max(longest, r.Input)
		if r.Input > 4000 {
			long++
		}
	}
	assert.InDelta(t, 0.01, float64(long)/float64(len(all)), 0.004, "one in a hundred is above the 99th percentile")
	assert.Equal(t, 6000, longest)
}

func TestWhatAHistoryDoesNotKnow(t *testing.T) {
	stream, err := workload.NewHistory(workload.History{Step: time.Second, Intervals: []workload.Interval{
		{Arrived: 1, Input: nan, Output: nan}, {Arrived: 1, Input: 7, Output: 0}, {Arrived: nan, Input: 7, Output: 5},
		{Arrived: 2, Input: nan, Output: nan}, {Arrived: -2, Input: 9, Output: 6}, {Arrived: 3, Input: 9, Output: 6},
	}})
	require.NoError(t, err)
	all, err := readAll(stream)
	require.NoError(t, err)
	require.Len(t, all, 5, "what was too much before is missing later")
	for k, want := range []struct{ second, input, output int }{{0, 7, 5}, {1, 7, 5}, {3, 7, 5}, {3, 7, 5}, {5, 9, 6}} {
		assert.Equal(t, want.second, int(all[k].Arrival/time.Second), k)
		assert.Equal(t, want.input, all[k].Input, k)
		assert.Equal(t, want.output, all[k].Output, k)
	}
	for want, h := range map[string]workload.History{
		"no interval of the history knows the mean input tokens of its requests":  {Step: time.Second, Intervals: []workload.Interval{{Arrived: 1, Input: nan, Output: 1}}},
		"no interval of the history knows the mean output tokens of its requests": {Step: time.Second, Intervals: []workload.Interval{{Arrived: 1, Input: 1, Output: math.Inf(1)}}},
		"the intervals of a history are 0s long; expected at least 1ms":           {},
	} {
		_, err := workload.NewHistory(h)
		assert.EqualError(t, err, want)
	}
}

func TestHowCountersGrow(t *testing.T) {
	for name, c := range map[string]struct {
		values         []float64
		known          int
		grown, changed []float64
	}{
		"grows":                      {[]float64{10, 15, 15, 20}, 0, []float64{5, 0, 5}, []float64{5, 0, 5}},
		"begins anew":                {[]float64{10, 15, 2, 4}, 0, []float64{5, 2, 2}, []float64{5, -13, 2}},
		"not scraped for a time":     {[]float64{10, nan, nan, 16}, 0, []float64{2, 2, 2}, []float64{2, 2, 2}},
		"began anew in that time":    {[]float64{10, nan, 4}, 0, []float64{2, 2}, []float64{-3, -3}},
		"new":                        {[]float64{nan, 3, 5}, 0, []float64{3, 2}, []float64{3, 2}},
		"there before anybody looks": {[]float64{nan, 1000, 1002}, 1, []float64{0, 2}, []float64{0, 2}},
		"gone":                       {[]float64{1, 3, nan, nan}, 0, []float64{2, 0, 0}, []float64{2, 0, 0}},
		"never there":                {[]float64{nan, nan}, 0, []float64{0}, []float64{0}},
		"one instant":                {[]float64{3}, 0, []float64{}, []float64{}},
		"none":                       {nil, 0, []float64{}, []float64{}},
	} {
		assert.Equal(t, c.grown, workload.Grown(c.values, c.known), name)
		assert.Equal(t, c.changed, workload.Changed(c.values, c.known), name)
	}
}

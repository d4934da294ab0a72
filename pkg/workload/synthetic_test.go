package workload_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func synthetic(t *testing.T, s workload.Synthetic) []workload.Request {
	t.Helper()
	stream, err := workload.NewSynthetic(s)
	require.NoError(t, err)
	all, err := readAll(stream)
	require.NoError(t, err)
	return all
}

var tokens = workload.Lengths{Mean: 100, Max: 1000}

func TestSyntheticFollowsItsRate(t *testing.T) {
	const hour = time.Hour
	s := workload.Synthetic{
		// Up, hold, a jump, and down to nothing.
		Rate:  []workload.Point{{0, 0}, {hour, 10}, {2 * hour, 10}, {2 * hour, 4}, {3 * hour, 0}},
		Input: tokens, Output: tokens, Seed: 3,
	}
	counts := make([]float64, 12)
	last := time.Duration(0)
	for _, r := range synthetic(t, s) {
		require.GreaterOrEqual(t, r.Arrival, last)
		last = r.Arrival
		counts[int(r.Arrival/(15*time.Minute))]++
	}
	// The integral of the rate over each quarter of an hour, in requests.
	want := []float64{1125, 3375, 5625, 7875, 9000, 9000, 9000, 9000, 3150, 2250, 1350, 450}
	for i := range want {
		assert.InDelta(t, want[i], counts[i], 4*math.Sqrt(want[i]), "quarter %d, within four standard deviations", i)
	}
}

func TestSyntheticArrivalsArePoisson(t *testing.T) {
	all := synthetic(t, workload.Synthetic{
		Rate: []workload.Point{{0, 20}, {time.Hour, 20}}, Input: tokens, Output: tokens, Seed: 1,
	})
	var sum, squares float64
	for i := 1; i < len(all); i++ {
		gap := (all[i].Arrival - all[i-1].Arrival).Seconds()
		sum, squares = sum+gap, squares+gap*gap
	}
	n := float64(len(all) - 1)
	mean := sum / n
	assert.InEpsilon(t, 0.05, mean, 0.02)
	assert.InDelta(t, 1, math.Sqrt(squares/n-mean*mean)/mean, 0.02, "gaps have a coefficient of variation of 1")
}

func TestSyntheticLengths(t *testing.T) {
	all := synthetic(t, workload.Synthetic{
		Rate:   []workload.Point{{0, 50}, {time.Hour, 50}},
		Input:  workload.Lengths{Mean: 1155, Variation: 1, Max: 1_000_000},
		Output: workload.Lengths{Mean: 20, Variation: 3, Max: 100},
		Seed:   5,
	})
	var sum, squares float64
	atMax, atMin := 0, 0
	for _, r := range all {
		sum += float64(r.Input)
		squares += float64(r.Input) * float64(r.Input)
		require.GreaterOrEqual(t, r.Output, 1)
		require.LessOrEqual(t, r.Output, 100)
		switch r.Output {
		case 1:
			atMin++
		case 100:
			atMax++
		}
	}
	mean := sum / float64(len(all))
	assert.InEpsilon(t, 1155, mean, 0.02)
	assert.InEpsilon(t, 1, math.Sqrt(squares/float64(len(all))-mean*mean)/mean, 0.05)
	assert.Positive(t, atMax, "longer ones are clamped")
	assert.Positive(t, atMin)

	constant := synthetic(t, workload.Synthetic{
		Rate: []workload.Point{{0, 50}, {time.Minute, 50}}, Input: workload.Lengths{Mean: 128, Max: 128}, Output: tokens, Seed: 5,
	})
	for _, r := range constant {
		require.Equal(t, 128, r.Input, "without variation every length is the mean")
	}
}

func TestSyntheticFollowsItsSeed(t *testing.T) {
	of := func(seed uint64) []workload.Request {
		return synthetic(t, workload.Synthetic{
			Rate: []workload.Point{{0, 5}, {time.Minute, 5}}, Input: tokens, Output: workload.Lengths{Mean: 30, Variation: 0.5, Max: 300}, Seed: seed,
		})
	}
	once, again := of(1), of(1)
	assert.Equal(t, once, again)
	assert.NotEqual(t, once, of(2))
}

func TestSyntheticWithoutRateIsEmpty(t *testing.T) {
	assert.Empty(t, synthetic(t, workload.Synthetic{
		Rate: []workload.Point{{0, 0}, {time.Hour, 0}}, Input: tokens, Output: tokens,
	}))
}

func TestSyntheticRefusals(t *testing.T) {
	good := []workload.Point{{0, 1}, {time.Minute, 1}}
	for name, c := range map[string]struct {
		s    workload.Synthetic
		want string
	}{
		"one point":            {workload.Synthetic{Rate: good[:1], Input: tokens, Output: tokens}, "fewer than two points"},
		"points out of order":  {workload.Synthetic{Rate: []workload.Point{{time.Minute, 1}, {0, 1}}, Input: tokens, Output: tokens}, "in order of time"},
		"a point before 0":     {workload.Synthetic{Rate: []workload.Point{{-time.Minute, 1}, {0, 1}}, Input: tokens, Output: tokens}, "at least 0"},
		"a negative rate":      {workload.Synthetic{Rate: []workload.Point{{0, -1}, {1, 1}}, Input: tokens, Output: tokens}, "the rate at 0s is -1"},
		"a rate that is NaN":   {workload.Synthetic{Rate: []workload.Point{{0, math.NaN()}, {1, 1}}, Input: tokens, Output: tokens}, "the rate at 0s is NaN"},
		"no mean":              {workload.Synthetic{Rate: good, Output: tokens}, "input tokens: the mean is 0"},
		"a negative variation": {workload.Synthetic{Rate: good, Input: tokens, Output: workload.Lengths{Mean: 5, Variation: -1, Max: 9}}, "output tokens: the coefficient of variation is -1"},
		"a mean above the max": {workload.Synthetic{Rate: good, Input: workload.Lengths{Mean: 50, Max: 49}, Output: tokens}, "input tokens: the largest length is 49"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := workload.NewSynthetic(c.s)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestSyntheticGapsVaryAsTheyShould(t *testing.T) {
	for _, c := range []float64{0.3, 1.7, 4} {
		all := synthetic(t, workload.Synthetic{
			Rate: []workload.Point{{0, 50}, {time.Hour, 50}}, Variation: c, Input: tokens, Output: tokens, Seed: 2,
		})
		n := 50 * 3600.0
		assert.InDelta(t, n, len(all), 4*c*math.Sqrt(n), "a variation of %v: the number of requests, within four standard deviations", c)
		// The kurtosis of gamma gaps is 3 + 6c^2; the relative error of a standard deviation
		// is sqrt((kurtosis-1)/4n).
		assert.InEpsilon(t, c, gaps(all), 5*math.Sqrt((2+6*c*c)/(4*n)))
	}
}

func TestSyntheticBurstsAreRunningFromTheBeginning(t *testing.T) {
	const seeds, rate = 600, 1.0
	var first, sum float64
	for seed := range uint64(seeds) {
		for _, r := range synthetic(t, workload.Synthetic{
			Rate: []workload.Point{{0, rate}, {10 * time.Minute, rate}}, Variation: 5, Input: tokens, Output: tokens, Seed: seed,
		}) {
			sum++
			if r.Arrival < time.Minute {
				first++
			}
		}
	}
	assert.InEpsilon(t, seeds*600*rate, sum, 4*5/math.Sqrt(seeds*600), "no more than the rate, within four standard deviations")
	assert.InEpsilon(t, seeds*60*rate, first, 4*5/math.Sqrt(seeds*60), "also in the first minute")
}

func TestSyntheticVariationOfOneIsPoisson(t *testing.T) {
	of := func(variation float64) []workload.Request {
		return synthetic(t, workload.Synthetic{
			Rate: []workload.Point{{0, 5}, {time.Minute, 5}}, Variation: variation, Input: tokens, Output: tokens, Seed: 1,
		})
	}
	assert.Equal(t, of(0), of(1))
	for _, variation := range []float64{-1, math.NaN(), math.Inf(1), 1001} {
		_, err := workload.NewSynthetic(workload.Synthetic{
			Rate: []workload.Point{{0, 5}, {time.Minute, 5}}, Variation: variation, Input: tokens, Output: tokens,
		})
		assert.ErrorContains(t, err, "the coefficient of variation of the gaps is")
	}
}

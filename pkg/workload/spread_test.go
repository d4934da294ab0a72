package workload_test

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// withinSeconds is the plain rule of a spread of one second: the first copy as it is,
// the others anywhere in the same second, with their lengths.
func withinSeconds(requests []workload.Request, factor float64, seed uint64) (all []workload.Request) {
	const copies = 1 // the stream of random numbers
	random := rand.New(rand.NewPCG(seed, copies))
	for _, r := range requests {
		second, n := r.Arrival.Truncate(time.Second), int(factor)
		if rest := factor - math.Floor(factor); rest > 0 && random.Float64() < rest {
			n++
		}
		for i := range n {
			if i > 0 {
				r.Arrival = second + time.Duration(random.Int64N(int64(time.Second)))
			}
			all = append(all, r)
		}
	}
	slices.SortStableFunc(all, func(a, b workload.Request) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return all
}

// loadOf is some synthetic load, each request with a length of its own.
func loadOf(t *testing.T, seed uint64, points ...workload.Point) []workload.Request {
	t.Helper()
	s, err := workload.NewSynthetic(workload.Synthetic{
		Rate: points, Variation: 1.5, Seed: seed,
		Input: workload.LengthsOf(1155, 4142, 32768), Output: workload.LengthsOf(211, 601, 8192),
	})
	require.NoError(t, err)
	all, err := readAll(s)
	require.NoError(t, err)
	return all
}

func TestRateSpreadOverASecondIsThePlainRule(t *testing.T) {
	for seed := range uint64(5) {
		requests := loadOf(t, seed, workload.Point{At: 0, Rate: 3}, workload.Point{At: 5 * time.Minute, Rate: 0.05}, workload.Point{At: 10 * time.Minute, Rate: 8})
		for _, factor := range []float64{0.3, 1, 2.5, 20} {
			require.Equal(t, withinSeconds(requests, factor, seed), rated(t, requests, factor, time.Second, seed))
		}
	}
}

// Whatever the spread: no request is lost or made up, the source's own are among them
// as they were, nothing leaves the source's time, and lengths only change owners.
func TestRateSpreadKeepsWhatThereIs(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	for trial := range 40 {
		requests := loadOf(t, uint64(trial), workload.Point{At: 0, Rate: 10 * random.Float64()},
			workload.Point{At: time.Duration(1+random.IntN(300)) * time.Second, Rate: 10 * random.Float64()})
		if len(requests) == 0 {
			continue
		}
		factor := 1 + random.IntN(12)
		spread := spreads[trial%len(spreads)]
		got := rated(t, requests, float64(factor), spread, uint64(trial))

		require.Len(t, got, factor*len(requests))
		require.True(t, inOrder(got))
		assert.GreaterOrEqual(t, got[0].Arrival, time.Duration(0))
		end := requests[len(requests)-1].Arrival.Truncate(time.Second) + time.Second
		assert.Less(t, got[len(got)-1].Arrival, end, "spread %s", spread)
		type lengths struct{ input, output int }
		left, own := map[lengths]int{}, map[workload.Request]int{}
		for _, r := range got {
			left[lengths{r.Input, r.Output}]++
			own[r]++
		}
		for _, r := range requests {
			left[lengths{r.Input, r.Output}] -= factor
			assert.Positive(t, own[r], "the request as it is")
		}
		for l, n := range left {
			require.Zero(t, n, "%v", l)
		}
	}
}

// Over more than the spread, rates and lengths are what they were.
func TestRateSpreadKeepsRatesAndLengths(t *testing.T) {
	const factor, step = 10, 30 * time.Minute
	var requests []workload.Request
	for i := range int(step / (200 * time.Millisecond)) {
		requests = append(requests, workload.Request{Arrival: time.Duration(i) * 200 * time.Millisecond, Input: 100, Output: 1})
	}
	for i := range int(step / (50 * time.Millisecond)) {
		requests = append(requests, workload.Request{Arrival: step + time.Duration(i)*50*time.Millisecond, Input: 900, Output: 1})
	}
	for _, spread := range []time.Duration{time.Second, time.Minute, 5 * time.Minute} {
		short, long, strange, counts := 0, 0, 0, make([]float64, 60)
		for _, r := range rated(t, requests, factor, spread, 3) {
			counts[r.Arrival/time.Minute]++
			away := r.Arrival - step
			if away < -spread {
				short++
				strange += (r.Input - 100) * (r.Input - 100)
			}
			if away > spread {
				long++
				strange += (r.Input - 900) * (r.Input - 900)
			}
		}
		require.Positive(t, short)
		require.Positive(t, long)
		assert.Zero(t, strange, "spread %s: short ones before the step and long ones after it", spread)
		for minute, n := range counts {
			at := time.Duration(minute) * time.Minute
			want := 60.0 * 5 * factor
			if at >= step {
				want *= 4
			}
			if at+time.Minute <= step-spread/2 || at >= step+spread/2 {
				// The copies fall at random: five standard deviations are a mistake. To the
				// ends of the trace too, where they are mirrored.
				assert.InDelta(t, want, n, 5*math.Sqrt(want), "spread %s, minute %d", spread, minute)
			}
		}
	}
}

// Copies with the same lengths do not come together.
func TestRateSpreadExchangesLengths(t *testing.T) {
	const factor, spread = 30, time.Minute
	requests := each(500*time.Millisecond, 1200)
	farthest, apart, all := time.Duration(0), 0, 0
	for _, r := range rated(t, requests, factor, spread, 5) {
		away := (r.Arrival - requests[r.Input-1].Arrival).Abs()
		farthest = max(farthest, away)
		if away > spread/2 {
			apart++
		}
		all++
	}
	assert.Less(t, farthest, spread+5*time.Second, "neighbours in time")
	// Two independent uniform moves of up to half a spread are further than that with a
	// probability of a quarter; one copy in thirty stays.
	assert.InDelta(t, 0.25*29/30, float64(apart)/float64(all), 0.03)
}

// indexes are those of a trace, by their seconds.
func indexes(requests []workload.Request) map[float64]float64 {
	var d workload.Dispersion
	all, _ := readAll(d.Of(&listed{requests: requests}))
	found := map[float64]float64{}
	if len(all) == len(requests) {
		for _, i := range d.Indexes() {
			found[i.Seconds] = i.Index
		}
	}
	return found
}

// Copies within their second make bursts of as many requests as there are copies. The
// longer they are spread the closer their index comes to that of the source.
func TestRateSpreadLetsDispersionFallTowardsTheSource(t *testing.T) {
	const factor = 20
	s, err := workload.NewSynthetic(workload.Synthetic{
		Rate:  []workload.Point{{At: 0, Rate: 5}, {At: 2 * time.Hour, Rate: 5}},
		Input: workload.Lengths{Mean: 100, Max: 100}, Output: workload.Lengths{Mean: 10, Max: 10}, Seed: 11,
	})
	require.NoError(t, err)
	requests, err := readAll(s)
	require.NoError(t, err)
	source := indexes(requests)
	for _, at := range []float64{1, 10, 60} {
		assert.InDelta(t, 1, source[at], 0.2, "independent arrivals, %v s", at)
	}
	together := indexes(rated(t, requests, factor, time.Second, 11))
	assert.InEpsilon(t, factor, together[10], 0.15)
	assert.InEpsilon(t, factor, together[60], 0.3)
	last := together
	for _, spread := range []time.Duration{10 * time.Second, time.Minute, 5 * time.Minute} {
		now := indexes(rated(t, requests, factor, spread, 11))
		for _, at := range []float64{1, 10, 60} {
			assert.Less(t, now[at], last[at]+0.1, "spread %s, %v s", spread, at)
			if at < spread.Seconds() {
				assert.Less(t, now[at], factor/5.0, "spread %s, %v s", spread, at)
			}
		}
		last = now
	}
	// Of a request at x, a moved copy falls into two neighbouring times with the
	// probabilities p(x) and q(x), so that the index is 1 + (factor-1)/(2 T) times the
	// integral of (p-q)^2 over x: for a time T, and a spread W of at least as much,
	// 1 + (factor-1) (T/W)^2 (2/3 for T much shorter than W, to 1/2 for T = W).
	minute := indexes(rated(t, requests, factor, time.Minute, 11))
	assert.InDelta(t, 1, minute[1], 0.05)
	assert.InEpsilon(t, 1+19.0*2/3/36, minute[10], 0.15)
	assert.InEpsilon(t, 1+19.0/2, minute[60], 0.3)
}

func TestDispersion(t *testing.T) {
	pairs := func(every time.Duration, n, together int) (all []workload.Request) {
		for _, r := range each(every, n) {
			for range together {
				all = append(all, r)
			}
		}
		return all
	}
	assert.Empty(t, indexes(nil), "nothing is known of nothing")
	assert.Empty(t, indexes(each(100*time.Millisecond, 15)), "two seconds, of which the last is not over")
	even := indexes(each(100*time.Millisecond, 3000))
	assert.Equal(t, map[float64]float64{1: 0, 10: 0, 60: 0}, even, "a clock does not scatter")

	poisson := loadOf(t, 1, workload.Point{At: 0, Rate: 20}, workload.Point{At: 6 * time.Hour, Rate: 20})
	for at, index := range indexes(poisson) {
		if at >= 10 {
			// Of a renewal process, in the long run: the squared variation of the gaps.
			assert.InEpsilon(t, 1.5*1.5, index, 0.3, "%v s", at)
		}
	}
	// What rises slowly is no scatter: from 5 to 50 a second in six hours.
	rises := loadOf(t, 2, workload.Point{At: 0, Rate: 5}, workload.Point{At: 6 * time.Hour, Rate: 50})
	assert.InEpsilon(t, 1.5*1.5, indexes(rises)[10], 0.2)
	// 10 at a time every 2 s: counts of 10 and 0, squared differences of 100 over sums of
	// 10.
	assert.InEpsilon(t, 10, indexes(pairs(2*time.Second, 3000, 10))[1], 0.01)
	// A step counts once: ten seconds of 1, then ten of 3.
	step := each(time.Second, 10)
	for _, r := range each(time.Second, 11) {
		r.Arrival += 10 * time.Second
		step = append(step, r, r, r)
	}
	assert.InDelta(t, 4.0/(9*2+4+9*6), indexes(step)[1], 1e-9)
}

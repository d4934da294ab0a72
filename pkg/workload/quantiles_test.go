package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// meanOf integrates the inverse of a distribution.
func meanOf(q *quantiles) float64 {
	const n = 200_000
	sum := 0.0
	for i := range n {
		sum += q.quantile((float64(i) + 0.5) / n)
	}
	return sum / n
}

func TestQuantilesKeepTheMean(t *testing.T) {
	for name, c := range map[string]struct {
		at   [len(levels)]float64
		mean float64
		// longest bounds the largest length.
		longest float64
	}{
		"straight":                        {[...]float64{10, 50, 100, 250, 500, 750, 900, 950, 990}, 500, 1010},
		"all the same":                    {[...]float64{7, 7, 7, 7, 7, 7, 7, 7, 7}, 7, 7},
		"two sorts of prompt":             {[...]float64{289, 293, 296, 296, 7084, 7087, 7091, 7157, 7222}, 3800.1, 7222},
		"few very long ones":              {[...]float64{72, 73, 73, 74, 75, 77, 79, 80, 133}, 116.08, 10_000},
		"all but a few have one token":    {[...]float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 2.6029, 400},
		"a mean near the upper ends":      {[...]float64{10, 10, 10, 10, 10, 1000, 1000, 1000, 1000}, 440, 3000},
		"a tail rather than a great bend": {[...]float64{100, 100, 100, 100, 100, 110, 110, 110, 1000}, 150, 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuantiles(c.at, c.mean)
			assert.InEpsilon(t, c.mean, meanOf(q), 0.001)
			assert.LessOrEqual(t, q.end, c.longest)
			for i, level := range levels {
				assert.InDelta(t, c.at[i], q.quantile(level), 1e-9, "the %v quantile is the given one", level)
			}
		})
	}
}

func TestQuantilesComeAsNearToTheMeanAsTheyReach(t *testing.T) {
	at := [...]float64{10, 20, 30, 40, 50, 60, 70, 80, 90}
	low := newQuantiles(at, 0)
	assert.InDelta(t, 45.1, meanOf(low), 0.01, "at the lower ends: a mean below what the quantiles leave possible")
	assert.InDelta(t, 90, low.end, 0)
	high := newQuantiles(at, 1e6)
	assert.InDelta(t, longestTail, high.end, 0)
	assert.Greater(t, meanOf(high), 600.0)
}

// Whatever quantiles and mean: the inverse does not fall and meets the quantiles,
// lengths are at least 1 and at most the end.
func TestQuantilesAreMonotone(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		var at [len(levels)]float64
		for i := range at {
			at[i] = math.Floor(math.Exp(random.Float64() * 9))
		}
		slices.Sort(at[:])
		q := newQuantiles(at, random.Float64()*at[7])
		last := 0.0
		for i := range 2000 {
			x := q.quantile(float64(i) / 2000)
			if x < last-1e-9 || x > q.end {
				require.Fail(t, "the inverse falls or passes the end", "%v after %v, at most %v", x, last, q.end)
			}
			last = x
		}
		require.GreaterOrEqual(t, q.draw(random), 1)
	}
	assert.Equal(t, 1, newQuantiles([len(levels)]float64{}, 0).draw(random), "no length is zero")
}

func TestGammaAndWeibullMoments(t *testing.T) {
	const n = 400_000
	for _, k := range []float64{0.05, 0.3, 1, 2.5, 40} {
		random := rand.New(rand.NewPCG(2, uint64(k*100)))
		var sum, squares float64
		for range n {
			x := gamma(random, k)
			sum, squares = sum+x, squares+x*x
		}
		mean := sum / n
		assert.InEpsilon(t, k, mean, 4/math.Sqrt(n*k), "gamma %v: mean, within four standard errors", k)
		// The kurtosis of a gamma distribution is 3 + 6/k.
		assert.InEpsilon(t, k, squares/n-mean*mean, 5*math.Sqrt((2+6/k)/n), "gamma %v: variance", k)
	}
	for _, k := range []float64{0.4, 1, 2} {
		random := rand.New(rand.NewPCG(3, uint64(k*100)))
		sum := 0.0
		for range n {
			sum += weibull(random, k)
		}
		want := math.Gamma(1 + 1/k)
		deviation := math.Sqrt(math.Gamma(1+2/k) - want*want)
		assert.InDelta(t, want, sum/n, 4*deviation/math.Sqrt(n), "Weibull %v: mean", k)
	}
	assert.False(t, math.IsInf(weibull(rand.New(rand.NewPCG(1, 1)), 1e-9)*1e9, 0), "no shape leaves the numbers")
}

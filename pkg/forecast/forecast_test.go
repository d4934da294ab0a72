package forecast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// countedEvery is how far apart the counts of these tests are.
const countedEvery = 15 * time.Second

var (
	epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	conv  = capacity.TokenShape{Input: 1155, Output: 211}
)

// risk is the usual quantile.
const risk = 0.9

// poisson is a draw by counting arrivals one by one.
func poisson(random *rand.Rand, mean float64) float64 {
	n := 0
	for at := random.ExpFloat64(); at < mean; at += random.ExpFloat64() {
		n++
	}
	return float64(n)
}

// believed is the belief after n counts of a rate that changes with time, of requests that
// come so many at a time.
func believed(random *rand.Rand, n int, copies float64, rate func(time.Duration) float64) Belief {
	var f Belief
	for i := range n {
		at := time.Duration(i+1) * countedEvery
		count := copies * poisson(random, rate(at-countedEvery/2)*countedEvery.Seconds()/copies)
		f = f.Observe(epoch.Add(at), Count{Rate: capacity.Rate(count / countedEvery.Seconds()), Span: countedEvery, Shape: conv}, nil)
	}
	return f
}

func steadily(rate float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return rate }
}

// A steady load is found, and little is added for what is not known of it.
func TestForecastOfASteadyLoadSettles(t *testing.T) {
	for _, rate := range []float64{5, 50, 500} {
		f := believed(rand.New(rand.NewPCG(1, 2)), 80, 1, steadily(rate))
		assert.InEpsilon(t, rate, f.mean(), 0.1, "%v requests/s", rate)
		assert.Less(t, f.Quantile(0.85, time.Minute, nil), 1.2*rate, "%v requests/s", rate)
		assert.Greater(t, f.Quantile(0.85, time.Minute, nil), f.Quantile(0.5, time.Minute, nil))
		assert.InEpsilon(t, f.mean(), f.Quantile(0.5, time.Minute, nil), 0.05)
	}
}

// A step is believed from the first count that lies wholly behind it.
func TestForecastFollowsAStep(t *testing.T) {
	for _, factor := range []float64{0.2, 2, 4, 20} {
		f := believed(rand.New(rand.NewPCG(1, 3)), 22, 1, func(at time.Duration) float64 {
			if at < 20*countedEvery {
				return 20
			}
			return 20 * factor
		})
		assert.InEpsilon(t, 20*factor, f.mean(), 0.2, "times %v", factor)
	}
}

// A ramp is carried on. The slow reference is the ramp itself.
func TestForecastCarriesARampOn(t *testing.T) {
	ramp := func(at time.Duration) float64 { return max(5, 5+0.5*(at-10*countedEvery).Seconds()) }
	f := believed(rand.New(rand.NewPCG(1, 4)), 18, 1, ramp)
	now := 18 * countedEvery
	assert.Greater(t, f.Quantile(0.85, 30*time.Second, nil), ramp(now+8*time.Second))
	assert.Less(t, f.Quantile(0.85, 30*time.Second, nil), 2*ramp(now+30*time.Second))
}

// Bursts of requests that come together are no reason to expect more: what they say of
// the index of dispersion keeps the belief calm.
func TestForecastOfBursts(t *testing.T) {
	f := believed(rand.New(rand.NewPCG(1, 5)), 240, 20, steadily(40))
	assert.InDelta(t, 20, f.index(), 12)
	assert.Less(t, f.Quantile(0.85, time.Minute, nil), 1.6*40)
}

// Nothing arrives after it, and there is no less than that.
func TestForecastOfALoadThatEnds(t *testing.T) {
	for seed := range uint64(8) {
		f := believed(rand.New(rand.NewPCG(seed, 13)), 122, 1, func(at time.Duration) float64 {
			return 50 * max(0, min(1, (121*countedEvery-at).Seconds()))
		})
		assert.GreaterOrEqual(t, f.mean(), 0.0)
		assert.Less(t, f.mean(), 5.0)
	}
}

// The quantile is what it says: of loads that wander, as many as it says stay below it.
func TestForecastCoversWhatComes(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 6))
	for _, drift := range []float64{0.002, 0.01} {
		t.Run(fmt.Sprintf("drift %v", drift), func(t *testing.T) {
			below, all := 0, 0
			for range 60 {
				rates := []float64{100}
				for range 64 {
					rates = append(rates, max(1, rates[len(rates)-1]*(1+drift*math.Sqrt(countedEvery.Seconds())*random.NormFloat64())))
				}
				f := believed(random, 60, 1, func(at time.Duration) float64 { return rates[int(at/countedEvery)] })
				all++
				if rates[64] <= f.Quantile(0.85, 4*countedEvery, nil) {
					below++
				}
			}
			assert.InDelta(t, 0.85, float64(below)/float64(all), 0.12)
		})
	}
}

// The slow reference draws from the mixture.
func TestQuantileIsThatOfTheMixture(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 7))
	f := believed(random, 30, 1, func(at time.Duration) float64 { return 20 + at.Seconds()/20 })
	const n = 200_000
	draws := make([]float64, n)
	for i := range draws {
		pick, k := random.Float64(), 0
		for pick -= f.Modes[0].Probability; pick > 0 && k < len(f.Modes)-1; pick -= f.Modes[k].Probability {
			k++
		}
		m := f.Modes[k].after(k, f.Modes[k].Level, 60, course{})
		draws[i] = max(0, m.Level+math.Sqrt(m.Variance)*random.NormFloat64())
	}
	slices.Sort(draws)
	for _, p := range []float64{0.5, 0.75, 0.9, 0.99} {
		assert.InEpsilon(t, draws[int(p*n)], f.Quantile(p, time.Minute, nil), 0.03, "quantile %v", p)
	}
}

// Where some of the replicas say nothing, what the others count only raises the belief.
func TestALowerBoundOnlyRaises(t *testing.T) {
	f := believed(rand.New(rand.NewPCG(1, 8)), 40, 1, steadily(50))
	at := epoch.Add(41 * countedEvery)
	assert.Equal(t, f, f.Observe(at, Count{Rate: 20, Span: countedEvery, Shape: conv, LowerBound: true}, nil))
	more := f.Observe(at, Count{Rate: 150, Span: countedEvery, Shape: conv, LowerBound: true}, nil)
	assert.Greater(t, more.mean(), f.mean())
	lower := f.Observe(at, Count{Rate: 20, Span: countedEvery, Shape: conv}, nil)
	assert.Less(t, lower.mean(), f.mean())
}

// Longer requests are more of the shape that is reckoned in, whatever it is.
func TestWorthOfRequests(t *testing.T) {
	long := capacity.TokenShape{Input: 2 * conv.Input, Output: 2 * conv.Output}
	var f Belief
	f = f.Observe(epoch, Count{Rate: 10, Span: countedEvery, Shape: conv}, nil)
	assert.InDelta(t, 2, f.Worth(long), 1e-9)
	assert.InDelta(t, 1, f.Worth(capacity.TokenShape{}), 1e-9, "what is not known is worth as much")
	for i := range 8 {
		f = f.Observe(epoch.Add(time.Duration(i+1)*countedEvery), Count{Rate: 10, Span: countedEvery, Shape: long}, nil)
	}
	assert.InEpsilon(t, 20, f.mean(), 0.1)
}

// What cannot be counted changes nothing.
func TestForecastIgnoresWhatIsNoCount(t *testing.T) {
	f := believed(rand.New(rand.NewPCG(1, 9)), 10, 1, steadily(10))
	at := epoch.Add(11 * countedEvery)
	for _, seen := range []Count{{Rate: 10}, {Rate: capacity.Rate(math.NaN()), Span: countedEvery}, {Rate: capacity.Rate(math.Inf(1)), Span: countedEvery}} {
		require.Equal(t, f, f.Observe(at, seen, nil))
	}
	for _, m := range f.Observe(at, Count{Rate: 0, Span: countedEvery, Shape: conv}, nil).Modes {
		assert.False(t, math.IsNaN(m.Level+m.Variance+m.Probability))
	}
}

// A load that begins after an hour without one is taken for what it would be at the start:
// nothing ever arrived, so that nothing is known of how it moves.
func TestForecastOfALoadThatBeginsLate(t *testing.T) {
	begins := func(quiet int) float64 {
		f := believed(rand.New(rand.NewPCG(1, 8)), quiet+2, 1, func(at time.Duration) float64 {
			return max(0, 2*(at-time.Duration(quiet)*countedEvery).Seconds())
		})
		return f.Quantile(0.85, 30*time.Second, nil) / f.mean()
	}
	assert.InEpsilon(t, begins(0), begins(360), 0.25)
}

// A load that begins climbs on as it did since nothing arrived, wherever the beginning lies
// within the counts; one that is there at the first count stays.
func TestForecastOfALoadThatBegins(t *testing.T) {
	type count struct {
		at   int
		rate capacity.Rate
	}
	for name, c := range map[string]struct {
		counts      []count
		least, most float64
	}{
		"it is there at the first count":          {[]count{{10, 12}}, 12, 12},
		"it began since the count before":         {[]count{{10, 0}, {20, 12}}, 40, 50},
		"it began long ago, for all that is seen": {[]count{{10, 0}, {80, 12}}, 14, 18},
		"a first count saw its last moments":      {[]count{{10, 0}, {15, 0.4}, {20, 12}}, 18, 60},
		"a little came before it":                 {[]count{{10, 0.4}, {20, 12}}, 40, 60},
		"it does not go on":                       {[]count{{10, 0}, {20, 12}, {25, 12}}, 12, 16},
		"it goes on":                              {[]count{{10, 0}, {20, 12}, {25, 20}}, 45, 90},
		"nothing arrives":                         {[]count{{10, 0}, {20, 0}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var b Belief
			for _, c := range c.counts {
				b = b.Observe(epoch.Add(time.Duration(c.at)*time.Second), Count{Rate: c.rate, Span: 5 * time.Second, Shape: conv}, nil)
			}
			expected := b.Quantile(risk, 28*time.Second, nil)
			assert.GreaterOrEqual(t, expected, c.least)
			assert.LessOrEqual(t, expected, c.most)
		})
	}
}

// Counts that overlap say nothing of how the arrivals scatter, and yet how the load moves: where
// replicas are scraped in turns, the next round sees part of the last one's time again.
func TestForecastOfOverlappingCounts(t *testing.T) {
	var b Belief
	for i := range 12 {
		b = b.Observe(epoch.Add(time.Duration(i)*10*time.Second), Count{Rate: capacity.Rate(20 + 5*i), Span: 15 * time.Second, Shape: conv}, nil)
	}
	assert.Zero(t, b.Weight)
	assert.InEpsilon(t, 75, b.mean(), 0.1)
	assert.Greater(t, b.Quantile(risk, time.Minute, nil), 85.0)
}

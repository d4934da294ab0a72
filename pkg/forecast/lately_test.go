package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// bursting is a load of 100 requests/s for a minute out of four, and of 10 between them.
func bursting(at time.Duration) float64 {
	if at%(4*time.Minute) < time.Minute {
		return 100
	}
	return 10
}

// Between bursts the next one is expected; a load that fell once is not expected to return.
func TestForecastOfALoadThatReturns(t *testing.T) {
	quiet := int(31 * time.Minute / countedEvery)
	bursts := believed(rand.New(rand.NewPCG(1, 10)), quiet, 1, bursting)
	assert.InEpsilon(t, 10, bursts.mean(), 0.3)
	assert.Greater(t, bursts.Quantile(risk, time.Minute, nil), 40.0)
	fell := believed(rand.New(rand.NewPCG(1, 10)), quiet, 1, func(at time.Duration) float64 {
		if at < 25*time.Minute {
			return 100
		}
		return 10
	})
	assert.InEpsilon(t, 10, fell.mean(), 0.3)
	assert.Less(t, fell.Quantile(risk, time.Minute, nil), 20.0)
}

// That a load was lower lately is no reason to expect less of it.
func TestWhereALoadWasNeverLowersTheForecast(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 11))
	for range 200 {
		levels := make([]float64, 60)
		for i := range levels {
			levels[i] = 1 + 100*random.Float64()*random.Float64()
		}
		f := believed(random, len(levels), 1, func(at time.Duration) float64 { return levels[int(at/countedEvery)/4*4] })
		without := f
		without.Lately = Lately{Seconds: f.Lately.Seconds}
		for _, ahead := range []time.Duration{10 * time.Second, time.Minute, 10 * time.Minute} {
			assert.GreaterOrEqual(t, f.Quantile(risk, ahead, nil), without.Quantile(risk, ahead, nil))
		}
	}
}

// The slow reference keeps every count with its weight.
func TestLatelyIsAMeanThatForgets(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 12))
	var l Lately
	var spans, rates, jumps []float64
	for range 50 {
		span := time.Duration(1+random.IntN(60)) * time.Second
		rate, jumped := 50*random.Float64(), random.Float64()
		l = l.after(span, rate, jumped)
		for i := range spans {
			kept := math.Exp2(-span.Seconds() / latelyHalfLife.Seconds())
			spans[i], jumps[i] = spans[i]*kept, jumps[i]*kept
		}
		spans, rates, jumps = append(spans, span.Seconds()), append(rates, rate), append(jumps, jumped)
	}
	all, mean, variance, often := 0.0, 0.0, 0.0, 0.0
	for i, span := range spans {
		all, mean, often = all+span, mean+span*rates[i], often+jumps[i]
	}
	mean /= all
	for i, span := range spans {
		variance += span * (rates[i] - mean) * (rates[i] - mean) / all
	}
	assert.InEpsilon(t, all, l.Seconds, 1e-9)
	assert.InEpsilon(t, mean, l.Mean, 1e-9)
	assert.InEpsilon(t, variance, l.Variance, 1e-9)
	assert.InEpsilon(t, often, l.Jumps, 1e-9)
}

// Two jumps in twenty minutes, after twenty without any are assumed: one in twenty, so that
// it returns within two minutes once in ten times.
func TestHowLikelyALoadReturns(t *testing.T) {
	l := Lately{Seconds: 1200, Jumps: 2}
	assert.InEpsilon(t, 1-math.Exp(-0.1), l.Returns(2*time.Minute), 1e-9)
	assert.Zero(t, Lately{Seconds: 1200}.Returns(time.Hour), "a load that never jumped does not return")
	assert.Zero(t, Lately{}.Returns(time.Hour), "nor does one of which nothing was seen")
}

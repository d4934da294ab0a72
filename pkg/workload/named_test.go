package workload_test

import (
	"errors"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestNames(t *testing.T) {
	assert.Equal(t, []string{"code", "chat", "diurnal", "step", "ramp", "burst", "on-off"}, workload.Names())
	for _, e := range workload.Examples() {
		assert.NotEmpty(t, e.Description, e.Name)
		assert.NotContains(t, e.Description, "\n", e.Name)
	}
	_, _, err := workload.Named("Code", 1)
	assert.EqualError(t, err, `there is no synthetic load "Code"; expected one of code, chat, diurnal, step, ramp, burst, on-off`)
}

// measured is what a test wants to know of a whole named load.
type measured struct {
	n      float64
	hours  []float64
	length time.Duration
	gaps   float64
	// means of the tokens, and how many of them are below the lengths asked for.
	input, output           float64
	belowInput, belowOutput float64
}

func measure(t *testing.T, name string, p99Input, p99Output int) measured {
	t.Helper()
	s, length, err := workload.Named(name, 1)
	require.NoError(t, err)
	m := measured{length: length, hours: make([]float64, (length+time.Hour-1)/time.Hour)}
	var sum, squares float64
	last := time.Duration(0)
	for {
		r, err := s.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			require.NoError(t, err)
		}
		m.n++
		m.hours[r.Arrival/time.Hour]++
		gap := (r.Arrival - last).Seconds()
		last = r.Arrival
		sum, squares = sum+gap, squares+gap*gap
		m.input, m.output = m.input+float64(r.Input), m.output+float64(r.Output)
		if r.Input < p99Input {
			m.belowInput++
		}
		if r.Output < p99Output {
			m.belowOutput++
		}
	}
	m.gaps = math.Sqrt(squares/m.n-sum*sum/m.n/m.n) / (sum / m.n)
	m.input, m.output, m.belowInput, m.belowOutput = m.input/m.n, m.output/m.n, m.belowInput/m.n, m.belowOutput/m.n
	return m
}

// Each number is the published one that the load is made from.
func TestNamedLoadsHaveTheirPublishedFigures(t *testing.T) {
	for name, c := range map[string]struct {
		length                time.Duration
		rate                  float64
		inputMean             float64
		inputP99              int
		outputMean            float64
		outputP99             int
		peakToTrough          float64
		tolerance, ofTheRatio float64
	}{
		// tolerance is of the rate and the means: five standard errors, of which those of
		// the longest tails are the largest; ofTheRatio of the busiest to the quietest hour.
		"code":    {24 * time.Hour, 27.8, 2511, 7685, 23, 271, 10, 0.012, 0.04},
		"chat":    {24 * time.Hour, 45.1, 1632, 6683, 106, 694, 2, 0.005, 0.02},
		"diurnal": {24 * time.Hour, 20, 1632, 6683, 106, 694, 6.2, 0.006, 0.03},
		"step":    {time.Hour, 20, 1155, 4142, 211, 601, 0, 0.02, 0},
		"ramp":    {time.Hour, 95.0 / 3, 1155, 4142, 211, 601, 0, 0.02, 0},
		"on-off":  {2 * time.Hour, 10, 1155, 4142, 211, 601, 0, 0.02, 0},
		// Its 9,252 requests come in bursts: one standard deviation of their number is
		// 13.2/sqrt(9252), a seventh.
		"burst": {time.Hour, 2.57, 2048, 7436, 28, 252, 0, 0.3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := measure(t, name, c.inputP99, c.outputP99)
			assert.Equal(t, c.length, m.length)
			assert.InEpsilon(t, c.rate, m.n/m.length.Seconds(), c.tolerance)
			assert.InEpsilon(t, c.inputMean, m.input, c.tolerance)
			assert.InEpsilon(t, c.outputMean, m.output, c.tolerance)
			few := 5*math.Sqrt(0.99*0.01/m.n) + 0.0005 // of whole numbers at the percentile
			assert.InDelta(t, 0.99, m.belowInput, few)
			assert.InDelta(t, 0.99, m.belowOutput, few)
			switch {
			case c.peakToTrough > 0:
				assert.InEpsilon(t, c.peakToTrough, slices.Max(m.hours)/slices.Min(m.hours), c.ofTheRatio)
				assert.InDelta(t, slices.Min(m.hours), m.hours[3], 0, "quietest between three and four")
			case name == "burst":
				// The kurtosis of gamma gaps is 3 + 6c^2; five standard errors.
				assert.InEpsilon(t, 13.2, m.gaps, 5*math.Sqrt((2+6*13.2*13.2)/(4*m.n)))
			}
		})
	}
}

// A week of it, with weekends 68 % below, has an hourly coefficient of variation of
// 0.848 in the published analysis.
func TestNamedCodeVariesAsMuchAsPublished(t *testing.T) {
	rate := workload.Examples()[0].Load.Rate
	var sum, squares float64
	for i := 1; i < len(rate); i++ {
		r := (rate[i].Rate + rate[i-1].Rate) / 2
		sum += (5 + 2*0.32) * r
		squares += (5 + 2*0.32*0.32) * r * r
	}
	n := 7 * float64(len(rate)-1)
	mean := sum / n
	assert.InEpsilon(t, 0.848, math.Sqrt(squares/n-mean*mean)/mean, 0.01)
}

func TestNamedLoadsFollowTheirSeed(t *testing.T) {
	for _, name := range workload.Names() {
		of := func(seed uint64) []workload.Request {
			s, _, err := workload.Named(name, seed)
			require.NoError(t, err)
			all, err := readAll(workload.Limit(s, time.Minute))
			require.NoError(t, err)
			return all
		}
		once, again := of(1), of(1)
		assert.Equal(t, once, again, name)
		assert.NotEqual(t, once, of(2), name)
	}
}

func TestLengthsOf(t *testing.T) {
	for _, c := range []struct{ mean, p99 float64 }{{1632, 6683}, {106, 694}, {23, 271}} {
		l := workload.LengthsOf(c.mean, c.p99, 1000)
		assert.InDelta(t, c.mean, l.Mean, 0)
		s := math.Sqrt(math.Log1p(l.Variation * l.Variation))
		assert.InEpsilon(t, c.p99, c.mean*math.Exp(2.3263478740408408*s-s*s/2), 1e-9)
	}
	assert.InDelta(t, 0, workload.LengthsOf(100, 100, 1000).Variation, 1e-9, "no length but the mean")
	assert.InDelta(t, 0, workload.LengthsOf(100, 50, 1000).Variation, 1e-9, "a percentile below the mean")
	assert.InEpsilon(t, math.Sqrt(math.Expm1(2.3263478740408408*2.3263478740408408)), workload.LengthsOf(1, 1000, 1000).Variation, 1e-9,
		"a percentile beyond what a log-normal distribution has")
}

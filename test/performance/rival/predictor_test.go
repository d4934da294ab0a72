package rival

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The examples are those of ai-dynamo/dynamo, planner/tests/unit/test_load_predictors.py.
func TestPublishedConstantPredictor(t *testing.T) {
	p := &constantPredictor{}
	assert.Zero(t, p.next())
	for _, v := range []float64{10, 20, 30} {
		p.add(v)
	}
	assert.InDelta(t, 30, p.next(), 0)
	p.add(0)
	assert.Zero(t, p.next(), "a zero after others counts")
}

func kalman(least int) *kalmanPredictor {
	return &kalmanPredictor{level: kalmanLevel, trend: kalmanTrend, noise: kalmanNoise, least: least}
}

func TestPublishedKalmanPredictor(t *testing.T) {
	p := kalman(3)
	assert.Zero(t, p.next(), "before the first value")
	p.add(0)
	p.add(0)
	assert.Zero(t, p.count, "zeros before the first value are left out")
	p.add(10)
	assert.InDelta(t, 10, p.next(), 0, "the last value, until there are enough")
	p.add(20)
	assert.InDelta(t, 20, p.next(), 0)
	p.add(30)
	first := p.next()
	assert.Greater(t, first, 35.0, "the trend is seen")
	assert.InDelta(t, first, p.next(), 0, "asked twice it says the same")
}

// The values are those of the filter with whole matrices, reckoned elsewhere.
func TestKalmanForecasts(t *testing.T) {
	for _, c := range []struct{ values, want []float64 }{
		{[]float64{100, 100, 100, 100}, []float64{100, 100, 100, 100}},
		{[]float64{10, 20, 30, 40, 50, 60}, []float64{10, 24.922923918448532, 39.70801208684619, 49.89766510856932, 59.9478225545025, 69.96846936351255}},
		{
			// It is never negative, however steep the decline.
			[]float64{10, 15, 20, 15, 10, 5, 2, 1, 0},
			[]float64{10, 17.461461959224266, 24.854006043423094, 16.711414683275205, 9.980727020001147, 3.8923719165847652, 0, 0, 0},
		},
	} {
		asked, skipped := kalman(1), kalman(1)
		for i, v := range c.values {
			asked.add(v)
			skipped.add(v)
			assert.InDelta(t, c.want[i], asked.next(), 1e-9, i)
		}
		assert.InDelta(t, c.want[len(c.want)-1], skipped.next(), 1e-9, "whether it is asked in between changes nothing")
	}
}

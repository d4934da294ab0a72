package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Two points of equal weight: 10 in service for 2 s each, and 30 for 4 s. Their means are 20
// and 3, the variance is 100 and the covariance (10*2+30*4)/2 - 20*3 = 10.
func TestCurveByHand(t *testing.T) {
	nothing := capacity.TokenShape{}
	c := Curve{}.Observe(epoch, 10, 5, nothing).Observe(epoch, 30, 7.5, nothing)
	strength := (slopePriorSpread * 20) * (slopePriorSpread * 20)
	// Half of the three seconds at 20 grow with the batch; and of those at a larger one three
	// quarters: at 40, w1 = 3*w0/40 and w0 + 20*w1 = 3, so that w1 = 0.09.
	for n, grows := range map[float64]float64{1: 1.5 / 20, 20: 1.5 / 20, 40: 0.09} {
		slope := (10 + strength*grows) / (100 + strength)
		assert.InEpsilon(t, n/(3+slope*(n-20)), float64(c.Rate(n, nothing, Profile{})), 1e-9, "%v in service", n)
	}
	// Without the shape of the load the profile says nothing.
	assert.InDelta(t, float64(c.Rate(40, nothing, Profile{})), float64(c.Rate(40, nothing, llama8B)), 0)
}

// The same with a profile, whose residence time bends between 20 and 40 in service as its
// rates say.
func TestCurveWithAProfileByHand(t *testing.T) {
	shape := capacity.TokenShape{Input: 100, Output: 1}
	c := Curve{}.Observe(epoch, 10, 5, shape).Observe(epoch, 30, 7.5, shape)
	here, there := float64(llama8B.Steady(20, shape).Rate), float64(llama8B.Steady(40, shape).Rate)
	bends := 3 * ((40/there)/(20/here) - 1) / 20
	strength := (slopePriorSpread * 20) * (slopePriorSpread * 20)
	slope := (10 + strength*bends) / (100 + strength)
	assert.InEpsilon(t, 40/(3+slope*20), float64(c.Rate(40, shape, llama8B)), 1e-9)
	// At the mean nothing bends.
	assert.InEpsilon(t, 20.0/3, float64(c.Rate(20, shape, llama8B)), 1e-9)
}

// A residence time never grows faster than in proportion, nor falls.
func TestTheSlopeOfACurveIsBounded(t *testing.T) {
	nothing := capacity.TokenShape{}
	steep := Curve{}.Observe(epoch, 10, 10, nothing).Observe(epoch, 30, 30.0/9, nothing)
	assert.InEpsilon(t, 4, float64(steep.Rate(7, nothing, Profile{})), 1e-9)
	falling := Curve{}.Observe(epoch, 10, 1, nothing).Observe(epoch, 30, 15, nothing)
	assert.InEpsilon(t, 50.0/6, float64(falling.Rate(50, nothing, Profile{})), 1e-9)
	assert.Zero(t, Curve{}.Rate(5, nothing, Profile{}))
	assert.Zero(t, steep.Rate(-1, nothing, Profile{}))
}

// The ends of what is a point: half a request in service, and something completed.
func TestPointsThatACurveTakes(t *testing.T) {
	nothing := capacity.TokenShape{}
	assert.True(t, Curve{}.Observe(epoch, 0.5, 1, nothing).Known())
	assert.False(t, Curve{}.Observe(epoch, 0.49, 1, nothing).Known())
	assert.False(t, Curve{}.Observe(epoch, 5, 0, nothing).Known())
	assert.True(t, Curve{}.Observe(epoch, 5, 1, capacity.TokenShape{Output: 1}).PerToken)
	assert.False(t, Curve{}.Observe(epoch, 5, 1, nothing).PerToken, "no length is known")
}

// A rate without end would follow from a residence time of nothing.
func TestACurveWithoutResidenceTimeHasNoRate(t *testing.T) {
	assert.Zero(t, Curve{Weight: 1, N: 5}.Rate(5, conv, Profile{}))
}

// A tenth of a request in service for a second each is what the line says: nothing changes. For four
// seconds each it is of other requests, and the line begins anew. More in service are for Observe, and
// of what nobody knows yet nothing is corrected.
func TestCurveOfOtherRequestsBeginsAnew(t *testing.T) {
	nothing := capacity.TokenShape{}
	c := Curve{}.Observe(epoch, 10, 5, nothing)
	usual := c.Rate(0.1, nothing, Profile{})
	assert.Equal(t, c, c.ObserveIdle(epoch, 0.1, usual/1.4, nothing, 1.5))
	assert.Equal(t, c, c.ObserveIdle(epoch, 0.1, usual*1.4, nothing, 1.5))
	for _, served := range []capacity.Rate{usual / 4, usual * 4} {
		anew := c.ObserveIdle(epoch, 0.1, served, nothing, 1.5)
		assert.InEpsilon(t, float64(served), float64(anew.Rate(0.1, nothing, Profile{})), 1e-9)
		assert.InDelta(t, 1, anew.Weight, 0)
	}
	assert.Equal(t, c, c.ObserveIdle(epoch, 0.5, usual/4, nothing, 1.5))
	assert.Equal(t, c, c.ObserveIdle(epoch, 0.1, 0, nothing, 1.5))
	assert.Equal(t, Curve{}, Curve{}.ObserveIdle(epoch, 0.1, usual, nothing, 1.5))
}

package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What is many at a time scatters so much more than what comes one by one; what only
// changes does not.
func TestDispersionOfALoad(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	// A count of independent arrivals with this mean, to a very good approximation.
	draw := func(mean float64) float64 { return math.Round(mean + math.Sqrt(mean)*random.NormFloat64()) }
	of := func(mean func(i int) float64, together float64) float64 {
		sum := 0.0
		const trials = 400
		for range trials {
			counts := make([]float64, 60)
			for i := range counts {
				counts[i] = together * draw(mean(i)/together)
			}
			sum += dispersion(counts, 7*time.Minute)
		}
		return sum / trials
	}
	level := func(int) float64 { return 2000 }
	assert.InDelta(t, 1.15, of(level, 1), 0.15, "at least 1 is said, so the mean is a little more")
	assert.InEpsilon(t, 20, of(level, 20), 0.2)
	step := func(i int) float64 {
		if i < 30 {
			return 400
		}
		return 4000
	}
	assert.InDelta(t, 1.15, of(step, 1), 0.2, "a step")
	ramp := func(i int) float64 { return 400 + 3600*min(1, max(0, float64(i-26)/4)) }
	assert.InDelta(t, 1.4, of(ramp, 1), 0.3, "a ramp of a minute, nine times the load")
	assert.Zero(t, dispersion([]float64{5, 7, 0, 9}, 0), "too few to say")
	assert.Zero(t, dispersion(nil, time.Hour))
}

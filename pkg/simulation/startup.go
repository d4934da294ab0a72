package simulation

import (
	"math"
	"math/rand/v2"
	"time"
)

// draw is the start-up time of the replica with that number among those of its
// variant. It depends on nothing else that happens in the world, so that two policies
// that ask for as many replicas have the same luck.
//
// For a mean m and a coefficient of variation c it is m exp(s z - s^2 / 2) with
// s^2 = ln(1 + c^2) and z drawn from the standard normal distribution. It is rounded to
// whole milliseconds, because the last bits of exp are not the same on all machines.
func (s Startup) draw(seed uint64, v VariantIndex, number int) time.Duration {
	if s.Variation == 0 {
		return s.Mean
	}
	stream := uint64(v.Model)<<48 | uint64(v.Variant)<<32 | uint64(number)
	z := rand.New(rand.NewPCG(seed, stream)).NormFloat64()
	variance := math.Log1p(s.Variation * s.Variation)
	factor := math.Exp(float64(math.Sqrt(variance)*z) - variance/2)
	drawn := float64(s.Mean) * factor
	if drawn >= float64(never) {
		return never
	}
	return time.Duration(drawn).Round(time.Millisecond)
}

package workload

import (
	"math"
	"math/rand/v2"
)

// gamma draws from the gamma distribution with that shape, above 0, and a scale
// of 1, as Marsaglia and Tsang do ("A simple method for generating gamma
// variables", 2000): exact for shapes of at least 1/3. A smaller one draws with a
// shape larger by one and multiplies by U^(1/shape).
func gamma(random *rand.Rand, shape float64) float64 {
	if shape < 1 {
		// An exponential draw is -ln U.
		return gamma(random, shape+1) * math.Exp(-random.ExpFloat64()/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := random.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v *= v * v
		u := random.Float64()
		if u < 1-0.0331*x*x*x*x || math.Log(u) < x*x/2+d*(1-v+math.Log(v)) {
			return d * v
		}
	}
}

// weibull draws from the Weibull distribution with that shape and a scale of 1.
// Very small shapes have draws beyond all numbers; they are cut where sums of
// many of them are still numbers.
func weibull(random *rand.Rand, shape float64) float64 {
	const most = 1e290
	return min(math.Pow(random.ExpFloat64(), 1/shape), most)
}

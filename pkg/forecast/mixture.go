package forecast

import "math"

// normal is a normal distribution with a weight in a mixture.
type normal struct{ weight, mean, deviation float64 }

func normalOf(weight, mean, variance float64) normal {
	return normal{weight, mean, max(math.Sqrt(max(0, variance)), 1e-12)}
}

// below is the share of it that is below a rate.
func (n *normal) below(rate float64) float64 {
	return math.Erfc(-(rate-n.mean)/n.deviation/math.Sqrt2) / 2
}

// density is that at a rate.
func (n *normal) density(rate float64) float64 {
	away := (rate - n.mean) / n.deviation
	return math.Exp(-away*away/2) / (n.deviation * math.Sqrt(2*math.Pi))
}

// precision is that of a number which is looked for, as a share of it.
const precision = 1e-5

// quantile is what a mixture, whose weights sum to 1, does not exceed with the probability
// p; at least 0.
func quantile(mixture []normal, p float64) float64 {
	low, high, likeliest := math.Inf(1), 0.0, mixture[0]
	for _, n := range mixture {
		if n.weight == 0 {
			continue
		}
		low, high = min(low, n.mean-4*n.deviation), max(high, n.mean+4*n.deviation)
		if n.weight > likeliest.weight {
			likeliest = n
		}
	}
	low = max(low, 0)
	// Newton's method from the likeliest part, and halving where it would leave the range.
	for rate := min(max(low, likeliest.mean+likeliest.deviation), high); high-low > precision*high; {
		below, density := 0.0, 0.0
		for i := range mixture {
			if n := &mixture[i]; n.weight > 0 {
				below += n.weight * n.below(rate)
				density += n.weight * n.density(rate)
			}
		}
		if below < p {
			low = rate
		} else {
			high = rate
		}
		next := rate + (p-below)/density
		if math.Abs(next-rate) <= precision*high {
			return max(next, 0)
		}
		if rate = next; !(low < rate && rate < high) {
			rate = (low + high) / 2
		}
	}
	return high
}

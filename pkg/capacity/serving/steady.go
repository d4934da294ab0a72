package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// At is the steady state of one replica with n requests in service.
type At struct {
	// Rate is the rate that keeps n requests in service.
	Rate capacity.Rate
	// ITL is the mean time per output token.
	ITL capacity.Milliseconds
	// TTFT is the mean time from the start of service to the first token.
	TTFT capacity.Milliseconds
}

// Steady is the steady state with n requests of the given shape in service. In the
// form Linear, with d(n) = Base + PerRequest*n + PerResidentToken*n*(in + out/2), the
// iteration is stretched by the prefill work that arrives during it,
// T = d / (1 - PerPrefillToken*in*rate), and by Little's law n = rate*out*T, so
//
//	rate = n / (out*d + n*PerPrefillToken*in).
//
// The other forms follow from their decode time in the same way. It is exact for
// means in steady state and says nothing of transients or waiting.
func (p Profile) Steady(n float64, shape capacity.TokenShape) At {
	if n <= 0 || !shape.Known() || !p.Known() {
		return At{}
	}
	rate := capacity.Rate(1000 * n / p.residence(n, shape))
	return At{
		Rate: rate,
		ITL:  capacity.Milliseconds(p.decode(n, shape)),
		TTFT: capacity.Milliseconds(p.first(n, shape, rate)),
	}
}

// Under is the inverse of Steady: the number in service at which the replica
// completes rate requests of the given shape per second, and the latencies there.
// A rate above what the replica can do keeps it at its concurrency; At.Rate is then
// less than asked for.
func (p Profile) Under(rate capacity.Rate, shape capacity.TokenShape) (n float64, at At) {
	if rate <= 0 || !shape.Known() || !p.Known() {
		return 0, At{}
	}
	high := p.mostInService(shape)
	if at := p.Steady(high, shape); at.Rate <= rate {
		return high, at
	}
	// The rate grows with n; near 0 it is n over the residence time of one.
	low := 0.0
	for range 60 {
		mid := (low + high) / 2
		if 1000*mid < float64(rate)*p.residence(mid, shape) {
			low = mid
		} else {
			high = mid
		}
	}
	return high, p.Steady(high, shape)
}

// mostInService is the concurrency, or a number that no server reaches.
func (p Profile) mostInService(shape capacity.TokenShape) float64 {
	return math.Min(p.Concurrency(shape), 1<<16)
}

// MaxRate is the largest steady rate of one replica at which the mean ITL and the
// mean TTFT without waiting keep the SLO, with at most the given fraction of its
// concurrency in use. It is 0 when the profile or the shape is unknown, or when
// even a single request misses the SLO.
func (p Profile) MaxRate(shape capacity.TokenShape, slo capacity.SLO, fraction float64) capacity.Rate {
	limit := p.mostInService(shape) * fraction
	// A first token that comes cold is slower at a low rate, which must not decide.
	p.First.Cold = 0
	keeps := func(n float64) bool {
		at := p.Steady(n, shape)
		return (slo.ITL <= 0 || at.ITL <= slo.ITL) && (slo.TTFT <= 0 || at.TTFT <= slo.TTFT)
	}
	// Rate and ITL both grow with n, so the largest n that keeps the SLO is found
	// by bisection.
	low, high := 0.0, limit
	if keeps(high) {
		return p.Steady(high, shape).Rate
	}
	if !keeps(1) {
		return 0
	}
	for range 60 {
		mid := (low + high) / 2
		if keeps(mid) {
			low = mid
		} else {
			high = mid
		}
	}
	return p.Steady(low, shape).Rate
}

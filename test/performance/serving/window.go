package serving

import (
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

const (
	// fluidSteps is how finely the number in service is followed; squares, because
	// the curve bends most where little is in service.
	fluidSteps = 32
	// offeredSteps halves the interval that the offered rate lies in.
	offeredSteps = 12
)

// within is Profile.Under for a load that was put on an empty replica for a window and then
// measured by what completed in it, as load generators do. Near saturation the
// number in service is still growing when such a run ends, and what is in service
// then was offered but is not counted. It follows the fluid
//
//	dn/dt = offered - n/residence(n),  n(0) = 0,  completed = offered - n(window)/window
//
// and returns the mean number in service as the generated tokens saw it. A window of
// 0 means the steady state.
func within(p serving.Profile, completed capacity.Rate, shape capacity.TokenShape, window time.Duration) (n float64, at serving.At) {
	if window <= 0 || completed <= 0 || !shape.Known() || !p.Known() {
		return p.Under(completed, shape)
	}
	limit := min(p.Concurrency(shape), 4*float64(completed)*window.Seconds())
	fluid := fluidOf(p, limit, shape)
	perMs, length := float64(completed)/1000, float64(window.Milliseconds())
	low, high := perMs, perMs+limit/length
	for range offeredSteps {
		mid := (low + high) / 2
		if _, end := fluid.run(mid, length); mid*length-end < perMs*length {
			low = mid
		} else {
			high = mid
		}
	}
	n, _ = fluid.run(high, length)
	return n, p.Steady(n, shape)
}

// fluid is the completion rate per millisecond over the number in service, as a
// chain of straight pieces.
type fluid struct {
	n, rate [fluidSteps + 1]float64
	// shortest is the residence time of a request alone: nothing completes before.
	shortest float64
}

func fluidOf(p serving.Profile, limit float64, shape capacity.TokenShape) *fluid {
	const alone = 1e-9
	f := fluid{shortest: 1000 * alone / float64(p.Steady(alone, shape).Rate)}
	for i := 1; i <= fluidSteps; i++ {
		x := float64(i) / fluidSteps
		f.n[i] = limit * x * x
		f.rate[i] = float64(p.Steady(f.n[i], shape).Rate) / 1000
	}
	return &f
}

// run follows the number in service under offered requests per millisecond for
// length milliseconds. It returns the mean number weighted by completions, and the
// number at the end; what does not fit into service waits and is counted in the end.
func (f *fluid) run(offered, length float64) (mean, end float64) {
	left, served, weighted := length, 0.0, 0.0
	account := func(during, n, rate float64) {
		served += rate * during
		weighted += rate * during * n
		left -= during
	}
	for i := range fluidSteps {
		n0, n1, r0, r1 := f.n[i], f.n[i+1], f.rate[i], f.rate[i+1]
		if ramp := min(f.shortest, length) - (length - left); ramp > 0 {
			during := min((n1-n0)/offered, ramp)
			reach := n0 + offered*during
			account(during, (n0+reach)/2, (r0+f.between(i, reach))/2)
			if reach >= n1 {
				continue
			}
			n0, r0 = reach, f.between(i, reach)
		}
		net0, net1 := offered-r0, offered-r1
		slope := (r1 - r0) / (n1 - n0)
		until := math.Inf(1)
		switch {
		case net1 > 0 && math.Abs(net0-net1) > 1e-9*net0:
			until = (n1 - n0) * math.Log(net0/net1) / (net0 - net1)
		case net1 > 0:
			until = (n1 - n0) / net0
		}
		if until < left {
			account(until, (n0+n1)/2, (r0+r1)/2)
			continue
		}
		// The end of the window, or the equilibrium, lies within this piece.
		reach := n0 + net0*left
		if slope > 0 {
			reach = n0 + net0/slope*-math.Expm1(-slope*left)
			approach := min(left, 3/slope)
			account(approach, (n0+reach)/2, (r0+f.between(i, reach))/2)
		}
		account(left, reach, f.between(i, reach))
		return weighted / served, reach
	}
	last := f.rate[fluidSteps]
	waiting := (offered - last) * left
	account(left, f.n[fluidSteps], last)
	return weighted / served, f.n[fluidSteps] + waiting
}

// between is the completion rate at n within piece i.
func (f *fluid) between(i int, n float64) float64 {
	share := (n - f.n[i]) / (f.n[i+1] - f.n[i])
	return f.rate[i] + share*(f.rate[i+1]-f.rate[i])
}

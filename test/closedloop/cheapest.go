package closedloop

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// mix is a number of replicas of each variant, what they cost per hour, and what those
// that are not there yet cost until they serve, spread over the horizon.
type mix struct {
	counts      []int
	cost, start float64
}

// cheapest looks through all mixes that serve the load at the given rates and can be
// reached from what there is: within the bounds, by changes that behavior allows, with
// room for the new replicas beside the old ones, as documented: a cheaper variant comes
// back when room appears, and no node is asked for to save. It reports whether there is one.
func (w *world) cheapest(m *modelState, rates []float64) (mix, bool) {
	s := &search{world: w, model: m, rates: rates, counts: make([]int, len(rates))}
	s.best = math.Inf(1)
	s.look(0, m.final(), 0, 0)
	return s.found, s.found.counts != nil
}

type search struct {
	world  *world
	model  *modelState
	rates  []float64
	counts []int
	best   float64
	found  mix
}

// look tries every number of the variant i, when so much load is left and those before
// it cost so much.
func (s *search) look(i int, left, cost, start float64) {
	if cost+start >= s.best {
		return
	}
	if i == len(s.counts) {
		s.take(left, cost, start)
		return
	}
	v := s.model.variants[i]
	low, high := s.limits(v, s.rates[i])
	last := i == len(s.counts)-1
	if last && left > 0 {
		if s.rates[i] == 0 {
			return
		}
		low = max(low, int(math.Ceil(left/s.rates[i]-1e-9)))
	}
	for n := low; n <= high; n++ {
		s.counts[i] = n
		more := float64(max(0, n-v.placed()))
		price := float64(v.Cost)
		s.look(i+1, left-float64(n)*s.rates[i], cost+float64(n)*price, start+more*price*v.Startup.Seconds()/s.world.policy.Horizon.Seconds())
		if last || left <= float64(n)*s.rates[i] {
			return
		}
	}
}

// limits is the least and the most of a variant that can be reached: what is there where
// behavior allows no change, or none that is small.
func (s *search) limits(v *variantState, rate float64) (low, high int) {
	placed := v.placed()
	low, high = v.policy.Min, placed
	if v.policy.Down.Select == decision.SelectDisabled || v.policy.Down.Tolerance > 0 {
		low = max(low, placed)
	}
	// Of a variant that nobody described and that does not serve now, nothing is known for
	// sure.
	known := v.truth.told || placed > 0
	if rate > 0 && known && v.policy.Up.Select != decision.SelectDisabled && v.policy.Up.Tolerance == 0 {
		high = max(placed, int(math.Ceil(s.model.final()/rate)))
	}
	if v.policy.Max >= 0 {
		high = min(high, v.policy.Max)
	}
	return low, max(low, high)
}

// take keeps a mix that serves everything, has a replica at all and finds room.
func (s *search) take(left, cost, start float64) {
	total := 0
	more := map[*variantState]int{}
	for i, v := range s.model.variants {
		total += s.counts[i]
		if added := s.counts[i] - v.placed(); added > 0 {
			more[v] = added
		}
	}
	if left > 1e-9 || total == 0 {
		return
	}
	if !s.world.fits(more) {
		return
	}
	s.best = cost + start
	s.found = mix{append([]int(nil), s.counts...), cost, start}
}

package replay

import (
	"math"
	"slices"
)

// performPeak plays static fleets of the cheapest variants until it has the smallest one
// that keeps the SLO for the promised share of this trace's requests. Nobody could have
// known it before: it is a reference and no policy. All models have the same number at
// first; then each in turn gives back what the fleet does without. Where no fleet that
// fits keeps the SLO, the largest one is the answer.
func (p *play) performPeak() performed {
	s := fleetSearch{play: p, tell: p.tell}
	most := p.mostReplicas()
	low, high := 0, 1
	for high < most && !s.keeps(p.alike(high)) {
		low, high = high, min(2*high, most)
	}
	high = s.least(low, high, p.alike)
	fleet := p.alike(high)
	if len(fleet) > 1 && s.keeps(fleet) {
		for m := range fleet {
			fleet[m] = s.least(0, fleet[m], func(n int) []int {
				fewer := slices.Clone(fleet)
				fewer[m] = n
				return fewer
			})
		}
	}
	return s.try(fleet)
}

// fleetSearch plays fleets, each once.
type fleetSearch struct {
	*play
	tell   func(float64) bool
	played []fleetPlay
}

type fleetPlay struct {
	replicas []int
	performed
}

// try plays a fleet with so many replicas of each model.
func (s *fleetSearch) try(replicas []int) performed {
	for _, f := range s.played {
		if slices.Equal(f.replicas, replicas) {
			return f.performed
		}
	}
	s.play.tell = halfOfTheRest(s.tell, len(s.played))
	s.played = append(s.played, fleetPlay{slices.Clone(replicas), s.withStatic(replicas)})
	return s.played[len(s.played)-1].performed
}

// keeps reports whether a fleet keeps the SLO, or there is no use in going on.
func (s *fleetSearch) keeps(replicas []int) bool {
	n := s.try(replicas)
	return n.err != nil || n.result.Attainment >= s.scenario.Policy.Share
}

// least is the smallest number above low whose fleet keeps the SLO, or high.
func (s *fleetSearch) least(low, high int, fleet func(n int) []int) int {
	for high-low > 1 {
		if mid := (low + high) / 2; s.keeps(fleet(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// alike is the same number for every model.
func (p *play) alike(n int) []int { return slices.Repeat([]int{n}, len(p.choice)) }

// halfOfTheRest tells how far a search is that nobody knows the length of: each play
// counts for half of what the plays before it left.
func halfOfTheRest(tell func(float64) bool, before int) func(float64) bool {
	if tell == nil {
		return nil
	}
	return func(part float64) bool {
		left := math.Pow(0.5, float64(before))
		return tell(1 - left + left/2*part)
	}
}

// mostReplicas is a number of replicas that is enough for any minute, or all that fit.
func (p *play) mostReplicas() int {
	most := 1
	for m, v := range p.choice {
		slots, err := p.scenario.Cluster.Slots(p.scenario.Models[m].Variants[v].Request)
		if err == nil {
			most = max(most, slots)
		}
	}
	return most
}

// withStatic plays a fleet of so many replicas of the cheapest variant of each model,
// which is there from the start.
func (p *play) withStatic(replicas []int) performed {
	f := newFleet(p.scenario, p.choice, replicas).found(p.scenario.Policy.Share)
	return p.with(f, f.replicas)
}

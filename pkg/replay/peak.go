package replay

import "math"

// performPeak plays static fleets of the cheapest variants, each with the same number for
// every model, until it has the smallest one that keeps the SLO for the promised share of this trace's requests. Nobody could have
// known it before: it is a reference and no policy. Where no fleet that fits keeps it,
// the largest one is the answer.
func (p *play) performPeak() performed {
	kept := func(n performed) bool { return n.err != nil || n.result.Attainment >= p.scenario.Policy.Share }
	most := p.mostReplicas()
	low, high := 0, 1
	played := map[int]performed{}
	tell := p.tell
	try := func(n int) performed {
		if _, ok := played[n]; !ok {
			p.tell = halfOfTheRest(tell, len(played))
			played[n] = p.withStatic(n)
		}
		return played[n]
	}
	for high < most && !kept(try(high)) {
		low, high = high, min(2*high, most)
	}
	for high-low > 1 {
		if mid := (low + high) / 2; kept(try(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	return try(high)
}

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

// withStatic plays a fleet of n replicas of the cheapest variant of each model, which is
// there from the start.
func (p *play) withStatic(n int) performed {
	f := newFleet(p.scenario, p.choice, n).found(p.scenario.Policy.Share)
	return p.with(f, f.replicas)
}

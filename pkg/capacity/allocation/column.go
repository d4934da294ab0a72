package allocation

import (
	"math"
	"slices"
)

// finder looks for the choices of a group that are the best at given prices of the
// rows, by branch and bound over the numbers of its parts.
type finder struct {
	group *group
	// order are the parts by priced cost per rate; cost, unit and reach, how much is
	// worth serving with it, are in that order.
	order             []int
	cost, unit, reach []float64
	// low and high bound the numbers of the parts.
	low, high, counts []int
	keep, budget      int
	below             float64
	found             []found
}

type found struct {
	value  float64
	counts []int
}

// stepsPerPart bounds the search of one question; real ones need a few.
const stepsPerPart = 60

func newFinder(g *group) *finder {
	n := len(g.parts)
	f := &finder{group: g, order: make([]int, n), cost: make([]float64, n), unit: make([]float64, n), reach: make([]float64, n),
		low: make([]int, n), high: make([]int, n), counts: make([]int, n)}
	for i := range f.order {
		f.order[i], f.high[i] = i, g.parts[i].limit
	}
	return f
}

// price sets what a cost counts and what the rows cost. The parts are nearly in order
// from the last time.
func (f *finder) price(weight float64, prices []float64) {
	g := f.group
	priced := func(i int) float64 {
		p := &g.parts[i]
		cost := weight * (p.cost + float64(p.change)*g.perChange())
		for _, u := range p.uses {
			cost += math.Max(0, prices[u.Row]) * u.Amount
		}
		return cost
	}
	for at, i := range f.order {
		f.cost[at] = priced(i)
		f.unit[at] = f.cost[at] / g.parts[i].serves
		for j := at; j > 0 && f.unit[j] < f.unit[j-1]; j-- {
			f.order[j], f.order[j-1] = f.order[j-1], f.order[j]
			f.cost[j], f.cost[j-1] = f.cost[j-1], f.cost[j]
			f.unit[j], f.unit[j-1] = f.unit[j-1], f.unit[j]
		}
	}
	for at := range f.order {
		f.reach[at] = g.wanted(f.unit[at])
	}
}

// run finds the best choices, as many as keep, that are worth less than below.
func (f *finder) run(keep int, below float64) []found {
	f.keep, f.budget, f.below = keep, stepsPerPart*keep*(1+len(f.order)), below
	f.found = f.found[:0]
	f.branch(0, 0, 0)
	return f.found
}

func (f *finder) threshold() float64 {
	if len(f.found) < f.keep {
		return f.below
	}
	return f.found[len(f.found)-1].value
}

// bound is the least value that a choice can come to when the parts from at on are
// still open and may be bought in fractions.
func (f *finder) bound(at int, rate, spent float64) float64 {
	g := f.group
	for ; at < len(f.order) && rate < f.reach[at]; at++ {
		p := &g.parts[f.order[at]]
		more := math.Min(f.reach[at]-rate, p.serves*float64(f.high[f.order[at]]))
		rate, spent = rate+more, spent+more*f.unit[at]
	}
	return spent + g.penalty(rate)
}

// branch tries numbers of the part at, from what fractions would take outwards.
func (f *finder) branch(at int, rate, spent float64) {
	if f.budget--; f.budget < 0 {
		return
	}
	g := f.group
	if at == len(f.order) {
		f.put(spent + g.penalty(rate))
		return
	}
	i := f.order[at]
	p := &g.parts[i]
	most := min(max(f.enough(p, g.top-rate), f.low[i]), f.high[i])
	start := min(max(f.enough(p, f.reach[at]-rate), f.low[i]), most)
	for n := start; n >= f.low[i] && f.try(at, n, rate, spent); n-- {
	}
	for n := start + 1; n <= most && f.try(at, n, rate, spent); n++ {
	}
	f.counts[i] = 0
}

// enough is how many replicas of a part serve the rate, within its limit.
func (f *finder) enough(p *part, rate float64) int {
	return min(p.limit, int(math.Min(math.Max(0, math.Ceil((rate-f.group.slack)/p.serves)), mostReplicas)))
}

// try goes on with n replicas of the part at; it is false when that is hopeless.
func (f *finder) try(at, n int, rate, spent float64) bool {
	i := f.order[at]
	rate, spent = rate+float64(n)*f.group.parts[i].serves, spent+float64(n)*f.cost[at]
	if f.bound(at+1, rate, spent) >= f.threshold() {
		return false
	}
	f.counts[i] = n
	f.branch(at+1, rate, spent)
	return f.budget >= 0
}

func (f *finder) put(value float64) {
	if math.IsInf(value, 1) || value >= f.threshold() {
		return
	}
	at, _ := slices.BinarySearchFunc(f.found, value, func(a found, v float64) int {
		if a.value <= v {
			return -1
		}
		return 1
	})
	f.found = slices.Insert(f.found, at, found{value, slices.Clone(f.counts)})
	if len(f.found) > f.keep {
		f.found = f.found[:f.keep]
	}
}

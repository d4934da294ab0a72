package allocation

import (
	"cmp"
	"math"
	"slices"
)

// finder looks for the choices of a group that are the best at given prices of the
// rows. It decides one part after the other, the dearest per rate first, and keeps of
// the partial choices those that could still be good enough, with fractions of the
// parts that are open, and that no other one serves better for less.
type finder struct {
	group *group
	// order are the parts by priced cost per rate; cost, unit, reach, how much is
	// worth serving with it, and before, what the cheaper ones could serve, are in that
	// order.
	order                     []int
	cost, unit, reach, before []float64
	// low and high bound the numbers of the parts.
	low, high []int
	keep      int
	below     float64
	layers    [][]partial
	found     []found
	// work counts the parts that were looked at.
	work int
}

// partial is a choice for some of the parts; count is that of the last one decided,
// and parent the partial without it.
type partial struct {
	rate, spent, bound float64
	parent, count      int
}

type found struct {
	value  float64
	counts []int
}

// mostPartials bounds the search; real ones keep some ten.
const mostPartials = 60

func newFinder(g *group) *finder {
	n := len(g.parts)
	f := &finder{group: g, order: make([]int, n), cost: make([]float64, n), unit: make([]float64, n), reach: make([]float64, n), before: make([]float64, n+1),
		low: make([]int, n), high: make([]int, n), layers: make([][]partial, n)}
	for i := range f.order {
		f.order[i], f.high[i] = i, g.parts[i].limit
	}
	return f
}

// price sets what a cost counts and what the rows cost. The parts are nearly in order
// from the last time.
func (f *finder) price(weight float64, prices []float64) {
	g := f.group
	for at, i := range f.order {
		p := &g.parts[i]
		cost := weight * (p.cost + float64(p.change)*g.perChange())
		for _, u := range p.uses {
			cost += math.Max(0, prices[u.Row]) * u.Amount
		}
		f.cost[at], f.unit[at] = cost, cost/p.serves
		for j := at; j > 0 && f.unit[j] < f.unit[j-1]; j-- {
			f.order[j], f.order[j-1] = f.order[j-1], f.order[j]
			f.cost[j], f.cost[j-1] = f.cost[j-1], f.cost[j]
			f.unit[j], f.unit[j-1] = f.unit[j-1], f.unit[j]
		}
	}
	for at, i := range f.order {
		f.reach[at] = g.wanted(f.unit[at])
		f.before[at+1] = f.before[at] + float64(f.high[i]-f.low[i])*g.parts[i].serves
	}
}

// run finds good choices, the best one among them, as many as keep, that are worth
// less than below.
func (f *finder) run(keep int, below float64) []found {
	f.keep, f.below, f.found = keep, below, f.found[:0]
	first := partial{parent: -1}
	for at, i := range f.order {
		first.rate += float64(f.low[i]) * f.group.parts[i].serves
		first.spent += float64(f.low[i]) * f.cost[at]
	}
	n := len(f.order)
	if first.bound = f.bound(n, first.rate, first.spent); n == 0 || first.bound >= below {
		return nil
	}
	f.layers[0] = append(f.layers[0][:0], first)
	f.complete(0, 0)
	for layer := 1; layer < n && len(f.layers[layer-1]) > 0; layer++ {
		f.expand(layer)
		for s := range f.layers[layer] {
			f.complete(layer, s)
		}
	}
	return f.found
}

func (f *finder) threshold() float64 {
	if len(f.found) < f.keep {
		return f.below
	}
	return f.found[len(f.found)-1].value
}

// goal is below what a partial choice must be to be of use: there is one best choice
// to find.
func (f *finder) goal() float64 {
	if len(f.found) > 0 {
		return f.found[0].value
	}
	return f.below
}

// bound is the least value that a choice can come to when the first parts of the order
// are still open and may be bought in fractions.
func (f *finder) bound(open int, rate, spent float64) float64 {
	f.work += 6 + open
	for at := 0; at < open && rate < f.reach[at]; at++ {
		more := math.Min(f.reach[at]-rate, f.before[at+1]-f.before[at])
		rate, spent = rate+more, spent+more*f.unit[at]
	}
	return spent + f.group.penalty(rate)
}

// expand decides the next part for each partial choice, from what fractions would take
// of it outwards.
func (f *finder) expand(layer int) {
	at := len(f.order) - layer
	i := f.order[at]
	serves, limit := f.group.parts[i].serves, f.high[i]-f.low[i]
	next := f.layers[layer][:0]
	for parent, s := range f.layers[layer-1] {
		try := func(n int) bool {
			p := partial{rate: s.rate + float64(n)*serves, spent: s.spent + float64(n)*f.cost[at], parent: parent, count: n}
			if p.bound = f.bound(at, p.rate, p.spent); p.bound >= f.goal() {
				return false
			}
			next = append(next, p)
			return true
		}
		start := min(max(0, int(math.Min((f.reach[at]-s.rate-f.before[at])/serves, mostReplicas))), limit)
		for n := start; n >= 0 && try(n); n-- {
		}
		for n := start + 1; n <= limit && try(n); n++ {
		}
	}
	f.layers[layer] = undominated(next)
}

// undominated drops the partial choices beside which another one serves as much for no
// more, and the least promising ones where there are too many.
func undominated(list []partial) []partial {
	slices.SortFunc(list, func(a, b partial) int {
		return cmp.Or(cmp.Compare(b.rate, a.rate), cmp.Compare(a.spent, b.spent), cmp.Compare(a.parent, b.parent), cmp.Compare(a.count, b.count))
	})
	kept, least := list[:0], math.Inf(1)
	for _, p := range list {
		if p.spent < least {
			kept, least = append(kept, p), p.spent
		}
	}
	if len(kept) > mostPartials {
		slices.SortStableFunc(kept, func(a, b partial) int { return cmp.Compare(a.bound, b.bound) })
		kept = kept[:mostPartials]
	}
	return kept
}

// complete fills a partial choice with the open parts, the cheapest first. With one
// open part that is the best that there is.
func (f *finder) complete(layer, s int) {
	g, p := f.group, f.layers[layer][s]
	open := len(f.order) - layer
	f.work += 10 * open
	rate, spent := p.rate, p.spent
	for at := range open {
		i := f.order[at]
		serves := g.parts[i].serves
		n := f.fill(at, rate)
		rate, spent = rate+float64(n)*serves, spent+float64(n)*f.cost[at]
		if n < f.high[i]-f.low[i] {
			f.put(spent+f.cost[at]+g.penalty(rate+serves), layer, s, at)
		}
	}
	f.put(spent+g.penalty(rate), layer, s, -1)
}

// fill is how many replicas of a part fit below what is worth serving with it.
func (f *finder) fill(at int, rate float64) int {
	i := f.order[at]
	n := math.Floor((f.reach[at] - rate) / f.group.parts[i].serves * (1 + fine))
	return min(max(0, int(math.Min(n, mostReplicas))), f.high[i]-f.low[i])
}

// put notes a complete choice: a partial one and its completion, which ends with one
// replica more of the part last, or with none more of any.
func (f *finder) put(value float64, layer, s, last int) {
	if math.IsInf(value, 1) || value >= f.threshold() {
		return
	}
	counts := slices.Clone(f.low)
	rate := f.layers[layer][s].rate
	for at := range len(f.order) - layer {
		n := f.fill(at, rate)
		rate += float64(n) * f.group.parts[f.order[at]].serves
		counts[f.order[at]] += n
		if at == last {
			counts[f.order[at]]++
			break
		}
	}
	for l := layer; l > 0; l-- {
		p := f.layers[l][s]
		counts[f.order[len(f.order)-l]] += p.count
		s = p.parent
	}
	if slices.ContainsFunc(f.found, func(a found) bool { return slices.Equal(a.counts, counts) }) {
		return
	}
	at, _ := slices.BinarySearchFunc(f.found, value, func(a found, v float64) int {
		if a.value <= v {
			return -1
		}
		return 1
	})
	f.found = slices.Insert(f.found, at, found{value, counts})
	if len(f.found) > f.keep {
		f.found = f.found[:f.keep]
	}
}

package allocation

import (
	"math"
	"slices"
)

// Sizes of a search for columns: how many of the best ones are kept, how many numbers
// of each of how many parts are forced, and how many choices per part are looked at.
const (
	bestColumns   = 24
	forcedParts   = 4
	forcedCounts  = 5
	columnBudget  = 120
	forcedBudget  = 8
	fewestColumns = 6
	levelColumns  = 2
	levelBudget   = 12
	besideColumns = 6
)

// finder looks for the choices of a group that are the best at given prices of the
// limits.
type finder struct {
	group  *group
	prices []float64
	weight float64
	// order are the parts by priced cost per rate; cost, unit and reach are in it.
	order             []int
	cost, unit, reach []float64
	low, high         []int
	counts            []int
	keep, budget      int
	found             []found
}

type found struct {
	value  float64
	counts []int
}

func newFinder(g *group, prices []float64, weight float64) *finder {
	n := len(g.parts)
	f := &finder{group: g, prices: prices, weight: weight, cost: make([]float64, n), unit: make([]float64, n), reach: make([]float64, n),
		low: make([]int, n), high: make([]int, n), counts: make([]int, n)}
	r := newRelaxation(g, weight)
	r.sort(prices)
	f.order = r.order
	for at, i := range f.order {
		f.cost[at], f.unit[at] = g.priced(i, prices, weight), r.unit[i]
	}
	f.price()
	return f
}

// price finds how much is worth serving with each part.
func (f *finder) price() {
	for at := range f.order {
		f.reach[at] = f.group.wanted(f.unit[at])
	}
}

// all returns the choices that a group should be offered: the best at these prices,
// the best with forced numbers of the likely parts, so that a limit can be eased in
// small steps, and the one that it has.
func (f *finder) all(scale float64, room []float64) []*column {
	g := f.group
	seen := map[string]bool{}
	var list []*column
	put := func(counts []int) {
		key := make([]byte, 0, 4*len(counts))
		for _, n := range counts {
			key = append(key, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
		}
		if !seen[string(key)] {
			seen[string(key)] = true
			choice := g.column(slices.Clone(counts), f.weight)
			list = append(list, &choice)
		}
	}
	put(g.chosen.counts)
	if g.target < 0 {
		put(make([]int, len(g.parts)))
	}
	f.free()
	f.run(max(int(bestColumns*scale), fewestColumns), int(columnBudget*scale))
	for _, c := range f.found {
		put(c.counts)
	}
	f.levels(put)
	f.beside(room, put)
	forced := max(int(forcedCounts*scale), 2)
	for at := range f.order[:min(len(f.order), forcedParts)] {
		f.free()
		f.each(at, forced, func(n int) {
			f.low[at], f.high[at] = n, n
			f.run(1, forcedBudget)
			for _, c := range f.found {
				put(c.counts)
			}
		})
	}
	return list
}

// levels offers the best choices that serve a number of bands, for when others leave
// no room for more.
func (f *finder) levels(put func([]int)) {
	g := f.group
	if g.target >= 0 {
		return
	}
	var list [][]int
	for k := 1; k <= bands; k++ {
		g.target = g.rest * float64(k) / bands
		f.price()
		f.run(levelColumns, levelBudget)
		for _, c := range f.found {
			list = append(list, c.counts)
		}
	}
	g.target = -1
	f.price()
	for _, counts := range list {
		put(counts)
	}
}

// beside offers the best choices within the room that the others leave now.
func (f *finder) beside(room []float64, put func([]int)) {
	for at, i := range f.order {
		for _, u := range f.group.parts[i].uses {
			f.high[at] = min(f.high[at], int(math.Max(0, room[u.Row])/u.Amount*(1+fine)))
		}
	}
	f.run(besideColumns, levelBudget)
	for _, c := range f.found {
		put(c.counts)
	}
}

// free bounds the parts by nothing but themselves.
func (f *finder) free() {
	for at, i := range f.order {
		f.low[at], f.high[at] = 0, f.group.parts[i].limit
	}
}

// each calls do with numbers of a part from none to as many as could be of use, and
// with those beside the present one.
func (f *finder) each(at, steps int, do func(int)) {
	i := f.order[at]
	p := f.group.parts[i]
	most := min(p.limit, int(math.Min(math.Ceil(f.group.rest/p.serves), mostReplicas)))
	now := f.group.chosen.counts[i]
	last := -1
	for step := 0; step <= steps; step++ {
		if n := most * step / steps; n != last {
			do(n)
			last = n
		}
	}
	for n := max(0, now-1); n <= min(most, now+1); n++ {
		do(n)
	}
}

// run finds the best choices within low and high.
func (f *finder) run(keep, budget int) {
	f.keep, f.budget = keep, budget*(1+len(f.order))
	f.found = f.found[:0]
	f.branch(0, 0, 0)
}

func (f *finder) threshold() float64 {
	if len(f.found) < f.keep {
		return math.Inf(1)
	}
	return f.found[len(f.found)-1].value
}

// bound is the least value that a choice can come to when the parts from at on are
// still open and may be bought in fractions.
func (f *finder) bound(at int, rate, spent float64) float64 {
	if at == len(f.order) {
		return spent + f.group.penalty(rate)
	}
	reach := f.reach[at]
	if rate >= reach {
		if f.group.target >= 0 {
			return spent
		}
		return spent + f.group.unserved(rate)
	}
	spent += f.unit[at] * (reach - rate)
	if f.group.target < 0 {
		spent += f.group.unserved(reach)
	}
	return spent
}

// branch tries numbers of the part at, from what fractions would take outwards.
func (f *finder) branch(at int, rate, spent float64) {
	if f.budget--; f.budget < 0 {
		return
	}
	if at == len(f.order) {
		f.put(spent + f.group.penalty(rate))
		return
	}
	i := f.order[at]
	p := &f.group.parts[i]
	end := f.group.rest
	if f.group.target >= 0 {
		end = f.group.target
	}
	most := min(f.high[at], max(f.low[at], int(math.Min(math.Max(0, math.Ceil((end-rate-f.group.slack)/p.serves)), mostReplicas))))
	start := min(max(f.low[at], int(math.Ceil((f.reach[at]-rate-f.group.slack)/p.serves))), most)
	try := func(n int) bool {
		nextRate, nextSpent := rate+float64(n)*p.serves, spent+float64(n)*f.cost[at]
		if f.bound(at+1, nextRate, nextSpent) >= f.threshold() {
			return false
		}
		f.counts[i] = n
		f.branch(at+1, nextRate, nextSpent)
		return f.budget >= 0
	}
	try(start)
	for n := start - 1; n >= f.low[at] && try(n); n-- {
	}
	for n := start + 1; n <= most && try(n); n++ {
	}
	f.counts[i] = 0
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

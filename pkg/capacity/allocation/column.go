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
	// pieces are the parts by priced cost per rate, and open those of them about which
	// there is something to decide; spare is room for fewer of them.
	pieces, open, spare []piece
	// low and high bound the numbers of the parts.
	low, high []int
	// least is what no choice is worth less than, as far as is known from the last
	// search, which was for factor.
	least, factor float64
	keep          int
	below         float64
	// little is the gain that is not worth looking for.
	little float64
	layers [][]partial
	// ends are where the runs end that are merged, and merged is room for what they are merged to.
	ends   []int
	merged []partial
	found  []found
	// work counts the parts that were looked at.
	work int
}

// piece is a part at the present prices: what one replica costs, the cost per rate,
// how much is worth serving at that, and how many may be added to the lower bound.
type piece struct {
	part                      int
	serves, cost, unit, reach float64
	limit                     int
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
const mostPartials = 24

func newFinder(g *group) *finder {
	n := len(g.parts)
	f := &finder{group: g, pieces: make([]piece, n), low: make([]int, n), high: make([]int, n), layers: make([][]partial, n+1)}
	f.reset()
	return f
}

// reset forgets prices, bounds and work.
func (f *finder) reset() {
	clear(f.low)
	f.factor, f.least, f.work = 0, math.Inf(-1), 0
	for i, p := range f.group.parts {
		f.pieces[i], f.high[i] = piece{part: i, serves: p.serves}, p.limit
	}
}

// within bounds the parts by the room that is left.
func (f *finder) within(left []float64) {
	for p, part := range f.group.parts {
		f.high[p] = part.limit
		for _, u := range part.uses {
			f.high[p] = min(f.high[p], int(max(0, left[u.Row])/u.Amount*(1+fine)))
		}
	}
}

// price sets what a cost counts and what the rows cost. The parts are nearly in order
// from the last time.
func (f *finder) price(weight float64, prices []float64) {
	g := f.group
	if g.factor != f.factor {
		f.factor, f.least = g.factor, math.Inf(-1)
	}
	for at := range f.pieces {
		now := &f.pieces[at]
		p := &g.parts[now.part]
		cost := weight * (p.cost + float64(p.change)*g.perChange())
		for _, u := range p.uses {
			cost += max(0, prices[u.Row]) * u.Amount
		}
		f.least -= max(0, now.cost-cost) * float64(f.high[now.part])
		now.cost = cost
	}
	f.work += 2 * len(f.pieces)
}

// sort orders the parts by their cost per rate.
func (f *finder) sort() {
	for at := range f.pieces {
		p := &f.pieces[at]
		p.unit, p.limit = p.cost/p.serves, f.high[p.part]-f.low[p.part]
		for j := at; j > 0 && f.pieces[j].unit < f.pieces[j-1].unit; j-- {
			f.pieces[j], f.pieces[j-1] = f.pieces[j-1], f.pieces[j]
		}
	}
	for at := range f.pieces {
		f.pieces[at].reach = f.group.wanted(f.pieces[at].unit)
	}
	f.work += 4 * len(f.pieces)
}

// run finds good choices, the best one among them, as many as keep, that are worth
// less than below.
func (f *finder) run(keep int, below float64) []found {
	f.keep, f.below, f.found = keep, below, f.found[:0]
	if f.useless(f.least) {
		return nil
	}
	f.sort()
	f.search()
	f.least = f.goal()
	return f.found
}

func (f *finder) search() {
	var first partial
	f.open = f.open[:0]
	for _, p := range f.pieces {
		first.rate += float64(f.low[p.part]) * p.serves
		first.spent += float64(f.low[p.part]) * p.cost
		if p.limit > 0 {
			f.open = append(f.open, p)
		}
	}
	if first.bound = f.bound(len(f.open), first.rate, first.spent); f.useless(first.bound) {
		return
	}
	f.layers[0] = append(f.layers[0][:0], first)
	f.complete(0, 0)
	f.close(first)
	for layer := 1; layer < len(f.open); layer++ {
		f.expand(layer)
		for s := range f.layers[layer] {
			f.complete(layer, s)
		}
	}
}

// close leaves the parts out of which not one replica can be of use.
func (f *finder) close(first partial) {
	kept := f.spare[:0]
	for at := range f.open {
		if p := &f.open[at]; !f.useless(f.bound(len(f.open), first.rate+p.serves, first.spent+p.cost)) {
			kept = append(kept, *p)
		}
	}
	if f.spare = kept; len(kept) == len(f.open) {
		return
	}
	f.open, f.spare = kept, f.open
	// The choices that were found are complete ones, whatever is open.
	f.complete(0, 0)
}

// several finds the choices that are worth the least, as many as keep, with at most
// gap more than the least, also such beside which another one is better at these
// prices: which of them fit is another question. It stops where they take more than
// most work.
func (f *finder) several(keep int, gap float64, most int) []found {
	f.sort()
	f.keep, f.found, f.open = keep, f.found[:0], append(f.open[:0], f.pieces...)
	f.below = f.bound(len(f.open), 0, 0) + gap
	f.visit(len(f.open), 0, 0, make([]int, len(f.pieces)), most)
	return f.found
}

// visit decides the open parts, from what fractions would take of each outwards.
func (f *finder) visit(open int, rate, spent float64, counts []int, most int) {
	if open == 0 {
		f.keepIfLean(spent+f.group.penalty(rate), rate, counts)
		return
	}
	p := &f.open[open-1]
	try := func(n int) bool {
		r, s := rate+float64(n)*p.serves, spent+float64(n)*p.cost
		if f.work > most || f.late(f.bound(open-1, r, s)) {
			return false
		}
		counts[p.part] = n
		f.visit(open-1, r, s, counts, most)
		counts[p.part] = 0
		return true
	}
	start := f.start(open-1, p, rate)
	for n := start; n >= 0 && try(n); n-- {
	}
	for n := start + 1; n <= p.limit && try(n); n++ {
	}
}

// keepIfLean keeps a choice that is good enough, unless it serves no more than it
// would with a replica less.
func (f *finder) keepIfLean(value, rate float64, counts []int) {
	if f.late(value) {
		return
	}
	g := f.group
	for p, n := range counts {
		if n > 0 && g.penalty(rate-g.parts[p].serves) <= g.penalty(rate) {
			return
		}
	}
	f.work += 20
	f.insert(value, slices.Clone(counts))
}

// late reports whether a choice of that value does not come among those to keep.
func (f *finder) late(value float64) bool {
	threshold := f.below
	if len(f.found) == f.keep {
		threshold = f.found[f.keep-1].value
	}
	return value >= threshold
}

// useless reports whether a partial choice of that bound leads to nothing worth
// looking for.
func (f *finder) useless(bound float64) bool { return bound >= f.goal() }

// goal is below what a partial choice must be to be of use: there is one best choice
// to find.
func (f *finder) goal() float64 {
	if len(f.found) > 0 {
		return f.found[0].value - f.little
	}
	return f.below
}

// bound is the least value that a choice can come to when the first parts of the order
// are still open and may be bought in fractions.
func (f *finder) bound(open int, rate, spent float64) float64 {
	looked := 6
	for at := range f.open[:open] {
		p := &f.open[at]
		if rate >= p.reach {
			break
		}
		looked++
		more := min(p.reach-rate, p.serves*float64(p.limit))
		rate, spent = rate+more, spent+more*p.unit
	}
	f.work += looked
	return spent + f.group.penalty(rate)
}

// expand decides the next part for each partial choice, from what fractions would take
// of it outwards.
func (f *finder) expand(layer int) {
	at := len(f.open) - layer
	last := f.open[at]
	next := f.layers[layer][:0]
	f.ends = f.ends[:0]
	for parent, s := range f.layers[layer-1] {
		try := func(n int) bool {
			p := partial{rate: s.rate + float64(n)*last.serves, spent: s.spent + float64(n)*last.cost, parent: parent, count: n}
			if p.bound = f.bound(at, p.rate, p.spent); f.useless(p.bound) {
				return false
			}
			next = append(next, p)
			return true
		}
		start := f.start(at, &last, s.rate)
		first := len(next)
		for n := start; n >= 0 && try(n); n-- {
		}
		// In the order of the rate, which is what they are merged by.
		slices.Reverse(next[first:])
		for n := start + 1; n <= last.limit && try(n); n++ {
		}
		slices.Reverse(next[first:])
		if len(next) > first {
			f.ends = append(f.ends, len(next))
		}
	}
	f.work += 8 * len(next)
	f.layers[layer] = undominated(f.merge(next), f.little/8)
}

// merge puts the runs of partial choices, each of which is in order of its rate, into one, without those
// beside which another one serves as much for no more. Most are dropped early, so that this
// is faster than sorting all.
func (f *finder) merge(list []partial) []partial {
	from := list
	for len(f.ends) > 1 {
		to, ends, begin := f.merged[:0], f.ends[:0], 0
		for i := 0; i < len(f.ends); i += 2 {
			middle, end := f.ends[i], f.ends[min(i+1, len(f.ends)-1)]
			to = appendMerged(to, from[begin:middle], from[middle:end])
			ends, begin = append(ends, len(to)), end
		}
		f.ends = ends
		// What was merged from has room for the next.
		from, f.merged = to, from
	}
	return from
}

// appendMerged appends two runs as one.
func appendMerged(to, a, b []partial) []partial {
	least := math.Inf(1)
	for len(a) > 0 || len(b) > 0 {
		var next *partial
		if len(b) == 0 || len(a) > 0 && comparePartials(&a[0], &b[0]) <= 0 {
			next, a = &a[0], a[1:]
		} else {
			next, b = &b[0], b[1:]
		}
		if next.spent < least {
			to, least = append(to, *next), next.spent
		}
	}
	return to
}

// comparePartials is the order of the rate, and of equal ones of what is spent. No two are the same
// partial choice.
func comparePartials(a, b *partial) int {
	switch {
	case a.rate > b.rate:
		return -1
	case a.rate < b.rate:
		return 1
	}
	return cmp.Or(cmp.Compare(a.spent, b.spent), cmp.Compare(a.parent, b.parent), cmp.Compare(b.count, a.count))
}

// start is how many of a part, the next after the open ones, fractions would take.
func (f *finder) start(open int, p *piece, rate float64) int {
	for at := range f.open[:open] {
		rate += f.open[at].serves * float64(f.open[at].limit)
	}
	return min(max(0, int(min((p.reach-rate)/p.serves, mostReplicas))), p.limit)
}

// undominated drops of partial choices in order of their rate those beside which another one serves
// as much for little more, and the least promising ones where there are too many.
func undominated(list []partial, little float64) []partial {
	kept, least := list[:0], math.Inf(1)
	for _, p := range list {
		if p.spent < least-little {
			kept, least = append(kept, p), p.spent
		}
	}
	if len(kept) > mostPartials {
		slices.SortFunc(kept, func(a, b partial) int {
			return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(b.rate, a.rate))
		})
		kept = kept[:mostPartials]
	}
	return kept
}

// complete fills a partial choice with the open parts, the cheapest first. With one
// open part that is the best that there is.
func (f *finder) complete(layer, s int) {
	p := f.layers[layer][s]
	open := len(f.open) - layer
	rate, spent := p.rate, p.spent
	for at := range open {
		next := &f.open[at]
		n := next.fill(rate)
		rate, spent = rate+float64(n)*next.serves, spent+float64(n)*next.cost
		f.work += 6
		if n < next.limit {
			f.put(spent+next.cost+f.group.penalty(rate+next.serves), layer, s, at)
		}
		if rate >= next.reach {
			break
		}
	}
	f.put(spent+f.group.penalty(rate), layer, s, -1)
}

// fill is how many replicas fit below what is worth serving.
func (p *piece) fill(rate float64) int {
	n := math.Floor((p.reach - rate) / p.serves * (1 + fine))
	return min(max(0, int(min(n, mostReplicas))), p.limit)
}

// put notes a complete choice: a partial one and its completion, which ends with one
// replica more of the part last, or with none more of any.
func (f *finder) put(value float64, layer, s, last int) {
	if f.late(value) {
		return
	}
	counts := slices.Clone(f.low)
	rate := f.layers[layer][s].rate
	for at := range f.open[:len(f.open)-layer] {
		p := &f.open[at]
		n := p.fill(rate)
		rate += float64(n) * p.serves
		counts[p.part] += n
		if at == last {
			counts[p.part]++
			break
		}
	}
	for l := layer; l > 0; l-- {
		p := f.layers[l][s]
		counts[f.open[len(f.open)-l].part] += p.count
		s = p.parent
	}
	if slices.ContainsFunc(f.found, func(a found) bool { return slices.Equal(a.counts, counts) }) {
		return
	}
	f.insert(value, counts)
}

// insert keeps a choice in its place in the order of value.
func (f *finder) insert(value float64, counts []int) {
	at, _ := slices.BinarySearchFunc(f.found, value, func(a found, v float64) int {
		if a.value <= v {
			return -1
		}
		return 1
	})
	f.found = slices.Insert(f.found, at, found{value, counts})
	f.found = f.found[:min(len(f.found), f.keep)]
}

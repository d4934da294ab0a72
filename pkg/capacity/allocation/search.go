package allocation

import (
	"cmp"
	"math"
	"slices"
)

// stateBudget bounds the work of one search. It is some milliseconds; real rates and
// costs need a few hundred states. Only many variants with the very same cost per
// rate and rates without a common measure can reach it.
const stateBudget = 40_000

// state is a choice for some of the items, as what it changes against the break
// solution: all items before the break item in full, none after it.
type state struct {
	served, cost float64
	changes      int
	// parent and count lead back to the choice: count replicas more, or fewer, of
	// the item that was decided last.
	parent, count int
}

// search finds the cheapest cover. It decides one item after the other, those whose
// cost per rate is farthest from that of the break item first, and keeps of the
// choices made so far only those that
//   - could still beat the best known one: serving what is left at the break item's
//     cost per rate is a lower bound, and
//   - are not served better and cheaper by another one.
//
// The break item itself covers what is left.
func (c *cover) search(most int) (made int, complete bool) {
	left, last := c.rest, &c.items[c.at]
	for i := range c.items[:c.at] {
		left -= c.items[i].serves * float64(c.items[i].limit)
		c.replicas[c.items[i].option] += c.items[i].limit
	}
	if !slices.ContainsFunc(c.items, func(it item) bool { return it.option != last.option }) {
		// Whatever is changed then costs no less and is a change more.
		if n := c.enough(*last, left); n <= last.limit {
			c.replicas[last.option] += n
		}
		return 0, true
	}
	s := newKnapsack(c, most)
	complete = s.run()
	c.replicas[c.items[c.at].option] += s.best.last
	for at, layer := s.best.state, s.best.layer; layer > 0; layer-- {
		st := s.layers[layer][at]
		if d := &s.deviations[layer-1]; d.full {
			c.replicas[d.option] -= st.count
		} else {
			c.replicas[d.option] += st.count
		}
		at = st.parent
	}
	return s.made, complete
}

// deviation is an item other than the break item.
type deviation struct {
	item
	// full is true for an item that the break solution buys in full.
	full bool
	// more is what one of it changes: a replica more, or one fewer of what is full.
	more state
}

type knapsack struct {
	last       item
	rest       float64
	slack      float64
	tolerance  float64
	deviations []deviation
	layers     [][]state
	// ahead[k] is what the deviations from k on could do.
	ahead []ahead
	// made is how many choices were looked at, of most.
	made, most int
	best       solution
}

// ahead is what deviations that are still to be decided could do: the least that this can
// add to the number of changes, what those that exist could serve, and the most that one
// replica of them or of the break item serves.
type ahead struct {
	lessChanges   int
	kept, largest float64
}

// solution is the best complete choice so far.
type solution struct {
	cost    float64
	changes int
	spare   float64
	last    int
	layer   int
	state   int
}

func newKnapsack(c *cover, most int) *knapsack {
	k := &knapsack{most: most, last: c.items[c.at], rest: c.rest, slack: c.slack, deviations: make([]deviation, 0, len(c.items)-1)}
	var first state
	full := true
	for i, it := range c.items {
		if i == c.at {
			full = false
			continue
		}
		d := deviation{item: it, full: full, more: state{served: it.serves, cost: it.cost, changes: it.change}}
		d.beyond = it.serves * math.Abs(it.unit-k.last.unit)
		if d.full {
			first.served += it.serves * float64(it.limit)
			first.cost += it.cost * float64(it.limit)
			first.changes += it.change * it.limit
			d.more = state{served: -it.serves, cost: -it.cost, changes: -it.change}
		}
		k.deviations = append(k.deviations, d)
	}
	k.tolerance = fine * (c.base + first.cost + k.last.unit*max(0, k.rest-first.served))
	slices.SortStableFunc(k.deviations, func(a, b deviation) int { return cmp.Compare(b.beyond/b.serves, a.beyond/a.serves) })
	k.bounds()
	k.layers = append(make([][]state, 0, len(c.items)), []state{first})
	return k
}

func (k *knapsack) bounds() {
	n := len(k.deviations)
	k.ahead = make([]ahead, n+1)
	k.ahead[n].largest = k.last.serves
	if k.last.change == oneFewer {
		k.ahead[n].lessChanges, k.ahead[n].kept = -k.last.limit, k.last.serves*float64(k.last.limit)
	}
	for i := n - 1; i >= 0; i-- {
		d, a := &k.deviations[i], k.ahead[i+1]
		switch {
		case d.more.changes == oneFewer:
			a.lessChanges -= d.limit
			if !d.full {
				a.kept += d.serves * float64(d.limit)
			}
		case !d.full:
			a.largest = max(a.largest, d.serves)
		}
		k.ahead[i] = a
	}
}

// run goes through the deviations; it is false when the budget did not suffice.
func (k *knapsack) run() bool {
	k.offer(0, 0)
	k.probe()
	for layer := range k.deviations {
		next, within := k.expand(layer)
		k.layers = append(k.layers, next)
		for i := range next {
			k.offer(layer+1, i)
		}
		if !within {
			return false
		}
		if len(next) == 0 {
			return true
		}
	}
	return true
}

// probe tries each deviation alone, for a good bound from the start. It only lowers
// what later choices must beat; the choice itself is found again.
func (k *knapsack) probe() {
	first := k.layers[0][0]
	for _, d := range k.deviations {
		for n := 1; n <= min(d.limit, 16); n++ {
			if bound := first.with(d, n); k.hopeless(bound, len(k.deviations)) {
				break
			} else if cost, _, _, _, ok := k.finish(bound); ok {
				// Somewhat more than found, so that finding it again is no tie.
				k.bound(cost + 2*k.tolerance)
			}
		}
	}
}

// bound notes that a cover of this cost exists.
func (k *knapsack) bound(cost float64) {
	if cost < k.best.cost {
		k.best.cost, k.best.changes, k.best.spare = cost, math.MaxInt32, 0
	}
}

func (s state) with(d deviation, n int) state {
	return state{
		served: s.served + float64(n)*d.more.served, cost: s.cost + float64(n)*d.more.cost, changes: s.changes + d.more.changes*n, count: n,
	}
}

// expand decides the deviation after layer.
func (k *knapsack) expand(layer int) (next []state, within bool) {
	d := k.deviations[layer]
	next, within = make([]state, 0, 2*len(k.layers[layer])+2), true
	for at, s := range k.layers[layer] {
		for n := 0; n <= d.limit; n++ {
			t := s.with(d, n)
			t.parent = at
			if k.made++; k.made > k.most {
				return prune(next, k.tolerance), false
			}
			if k.hopeless(t, layer+1) {
				if k.monotone(t, d, layer+1) || k.against(k.atLeast(t)) > 0 {
					break
				}
				continue
			}
			next = append(next, t)
			if !d.full && t.served >= k.rest+k.overshoot(layer+1) {
				break
			}
		}
	}
	return prune(next, k.tolerance), within
}

// overshoot is what the deviations from layer on could give back.
func (k *knapsack) overshoot(layer int) float64 {
	back := 0.0
	for _, d := range k.deviations[layer:] {
		if d.full {
			back += d.serves * float64(d.limit)
		}
	}
	return back
}

// monotone is true when more of the same deviation cannot mean fewer changes again:
// each one more is a change itself, or needs at least one other in its place.
func (k *knapsack) monotone(s state, d deviation, layer int) bool {
	return d.more.changes == oneMore || d.full && d.serves >= k.ahead[layer].largest && k.missing(s, layer) > 0
}

// missing is what only replicas that are started could serve of what is left.
func (k *knapsack) missing(s state, layer int) float64 {
	return max(0, k.rest-s.served-k.slack-k.ahead[layer].kept)
}

// against compares a cost with that of the best choice: it is 1 for more, -1 for less
// and 0 for the same but for rounding.
func (k *knapsack) against(cost float64) int {
	switch {
	case cost > k.best.cost+k.tolerance:
		return 1
	case cost < k.best.cost-k.tolerance:
		return -1
	}
	return 0
}

// atLeast is the Lagrangian bound with the break item's cost per rate as the price.
func (k *knapsack) atLeast(s state) float64 { return s.cost + k.last.unit*(k.rest-s.served) }

// hopeless reports whether no completion of the choice can beat the best one.
func (k *knapsack) hopeless(s state, layer int) bool {
	least := k.atLeast(s)
	if k.rest > s.served {
		least -= k.last.unit * k.slack
	}
	switch k.against(least) {
	case 1:
		return true
	case -1:
		return false
	}
	fewest := int(min(math.Ceil(k.missing(s, layer)/k.ahead[layer].largest), mostReplicas))
	changes := s.changes + k.ahead[layer].lessChanges + fewest
	if changes != k.best.changes || k.last.unit == 0 {
		return changes > k.best.changes
	}
	spare := (k.best.cost + k.tolerance - least) / k.last.unit
	return spare <= k.best.spare
}

// finish covers what is left with the break item.
func (k *knapsack) finish(s state) (cost float64, changes int, spare float64, n int, ok bool) {
	need := max(0, math.Ceil((k.rest-s.served-k.slack)/k.last.serves))
	if need > float64(k.last.limit) {
		return 0, 0, 0, 0, false
	}
	n = int(need)
	served := s.served + k.last.serves*float64(n)
	return s.cost + k.last.cost*float64(n), s.changes + k.last.change*n, served - k.rest, n, true
}

// offer completes a choice and keeps it if it is the best one.
func (k *knapsack) offer(layer, at int) {
	cost, changes, spare, n, ok := k.finish(k.layers[layer][at])
	if !ok {
		return
	}
	order := cmp.Or(k.against(cost), cmp.Compare(changes, k.best.changes), cmp.Compare(k.best.spare+k.slack, spare))
	if order < 0 || layer == 0 {
		k.best = solution{cost: cost, changes: changes, spare: spare, last: n, layer: layer, state: at}
	}
}

// prune drops the states beside which another one serves as much for less, or for as
// much with fewer changes.
func prune(states []state, tolerance float64) []state {
	slices.SortFunc(states, func(a, b state) int {
		if a.served != b.served {
			return cmp.Compare(b.served, a.served)
		}
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.changes, b.changes), cmp.Compare(a.parent, b.parent), cmp.Compare(a.count, b.count))
	})
	kept := states[:0]
	cheapest, changes := math.Inf(1), 0
	for _, s := range states {
		if s.cost > cheapest+tolerance || s.cost >= cheapest && s.changes >= changes {
			continue
		}
		cheapest, changes = min(cheapest, s.cost), s.changes
		kept = append(kept, s)
	}
	return kept
}

package allocation

import (
	"math"
	"slices"
)

// question is one of the things to decide in a cluster: the least unserved demand of a
// priority, or the least cost, with what was decided before held.
//
// The master program over the offers that are known gives prices of the rows; at these
// prices each group may know a better offer, and so on until nobody does (Dantzig and
// Wolfe 1960; Gilmore and Gomory 1961). Its value is then a bound that no choice of
// whole replicas beats. Few groups are left with a mix of offers: a dive gives one
// group after the other the offer with the largest share and asks the others again.
type question struct {
	groups  []*group
	finders []*finder
	master  *master
	weight  float64
	bound   float64
	// best is the best pick so far, and value its value.
	best          []int
	value         float64
	tolerance     float64
	budget, nodes int
}

const (
	// passes bounds the sweeps of one solution of the master, and rounds how often all
	// groups are asked for better offers.
	passes = 40
	rounds = 25
	// offersPerRound is how many offers a group adds when it is asked.
	offersPerRound = 2
	// near is the gap, as a share, at which the search is content.
	near = 1e-4
)

// ask finds the best choice of the groups in the present question, starting from the
// one that they have, which keeps the limits.
func (c *cluster) ask(groups []*group, weight float64) {
	limits := make([]float64, c.rows)
	for r := range limits {
		limits[r] = 1
	}
	q := &question{weight: weight}
	if weight < 1 {
		q.tolerance = 2 * costHint
	}
	for i, g := range groups {
		g.hold = -1
		if g.factor = 0; g.asked {
			g.factor = 1
		}
		if g.held > 0 && !g.asked {
			if i == 0 || groups[i-1].priority != g.priority || groups[i-1].hold < 0 {
				limits = append(limits, 1)
			}
			g.hold = len(limits) - 1
		}
		if len(g.parts) > 0 {
			q.groups = append(q.groups, g)
			q.finders = append(q.finders, newFinder(g))
		}
	}
	if len(q.groups) == 0 {
		return
	}
	var pools [][]offer
	for _, g := range q.groups {
		pools = append(pools, q.pool(g))
	}
	q.master = newMaster(pools, limits)
	best := q.search(slices.Clone(q.master.key))
	for i, g := range q.groups {
		g.chosen = *q.master.pools[i][best[i]].from
		g.remember(q.master.pools[i])
	}
}

// pool are the offers that a group starts with, the chosen one first.
func (q *question) pool(g *group) []offer {
	list := []offer{q.offer(g, &g.chosen)}
	put := func(a *column) {
		if a.served >= g.least-g.slack && !slices.ContainsFunc(list, func(o offer) bool { return slices.Equal(o.from.counts, a.counts) }) {
			list = append(list, q.offer(g, a))
		}
	}
	none := g.column(make([]int, len(g.parts)))
	put(&none)
	if g.idealFits {
		put(&g.ideal)
	}
	for _, a := range g.known {
		put(a)
	}
	return list
}

// offer is what a choice means in the present question.
func (q *question) offer(g *group, a *column) offer {
	o := offer{from: a, uses: a.uses, value: q.weight / g.costUnit * (a.cost + float64(a.changes)*g.perChange())}
	unserved := 0.0
	if g.asked || g.hold >= 0 {
		unserved = g.unserved(a.served)
	}
	if g.asked {
		o.value += unserved
	}
	if g.hold >= 0 && unserved > 0 {
		o.uses = append(slices.Clip(o.uses), Use{Row: g.hold, Amount: unserved / g.held})
	}
	return o
}

// search returns the best pick of the pools, to which it adds.
func (q *question) search(pick []int) []int {
	m := q.master
	const budget = 20_000_000
	q.best, q.value = pick, q.sum(pick)
	q.relax(rounds)
	q.bound = m.bound()
	println("LEVEL groups", len(q.groups), "rows", len(m.limits), "start", int(q.value*1e6), "bound", int(q.bound*1e6))
	q.offerPick(m.rounded())
	println("  rounded", int(q.value*1e6), q.spent())
	if q.weight < 1 && !q.groups[0].asked {
		q.budget = q.spent() + budget/4
		q.explore(q.fixed(func(i int) bool { return !q.groups[i].asked }))
		println("  others fixed", int(q.value*1e6), q.nodes, q.spent())
	}
	q.budget = budget
	q.explore(whole())
	println("  branched", int(q.value*1e6), q.nodes, q.spent())
	return q.best
}

// content reports whether a value is as good as can be.
func (q *question) content() bool { return q.hopeless(q.bound) }

// hopeless reports whether what a bound allows is not worth looking for.
func (q *question) hopeless(bound float64) bool {
	return bound >= q.value-near*math.Abs(q.value)-q.tolerance
}

func (q *question) sum(pick []int) float64 {
	sum := 0.0
	for i, j := range pick {
		sum += q.master.pools[i][j].value
	}
	return sum
}

// generate asks each group for better offers at the prices and reports whether there
// are any.
func (q *question) generate(keep int) (changed bool) {
	m := q.master
	for i := range q.groups {
		at, gain := m.best(i)
		below := m.priced(i, m.key[i]) - gain - tiny
		if q.extend(i, keep, below) {
			at = len(m.pools[i]) - 1
			changed = true
		}
		if at, gain = m.best(i); gain > tiny {
			m.enter(i, at)
		}
	}
	return changed
}

// extend adds the offers of a group that are worth less than below.
func (q *question) extend(i, keep int, below float64) bool {
	g, f, m := q.groups[i], q.finders[i], q.master
	defer func() { m.work += f.work; f.work = 0 }()
	if g.hold >= 0 {
		g.factor = math.Max(0, m.prices[g.hold]) / g.held
	}
	f.price(q.weight/g.costUnit, m.prices)
	found := f.run(keep, below)
	for _, a := range found {
		choice := g.column(a.counts)
		m.pools[i] = append(m.pools[i], q.offer(g, &choice))
	}
	return len(found) > 0
}

// relax solves the master with all the offers that there could be.
func (q *question) relax(rounds int) {
	q.master.solve(passes)
	for range rounds {
		if !q.generate(offersPerRound) {
			return
		}
		q.master.solve(passes)
	}
}

// offerPick makes a pick keep the limits, improves it, and keeps it if it is the best.
func (q *question) offerPick(pick []int) {
	c := newChoice(q.master, pick, q.bound, math.Inf(1))
	if !c.repair() {
		return
	}
	c.improve()
	if c.value < q.value {
		q.best, q.value = c.picked(), c.value
	}
}

func (q *question) spent() int { return q.master.work }

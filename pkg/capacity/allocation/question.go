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
}

const (
	// passes bounds the sweeps of one solution of the master, and rounds how often all
	// groups are asked for better offers.
	passes = 40
	rounds = 25
	// offersPerRound is how many offers a group adds when it is asked.
	offersPerRound = 2
	// diveRounds is how often groups are asked within a dive step, and diveSteps how
	// many steps a dive has for each row.
	diveRounds = 1
	diveSteps  = 4
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
	m.solve(passes)
	for range rounds {
		if !q.generate(offersPerRound) {
			break
		}
		m.solve(passes)
	}
	q.bound = m.bound()
	value := q.value(pick)
	better := func(trial []int, ok bool) {
		if v := q.value(trial); ok && v < value {
			pick, value = trial, v
		}
	}
	better(q.polish(m.rounded(), value))
	if q.content(value) {
		return pick
	}
	prices := slices.Clone(m.prices)
	better(q.dive())
	copy(m.prices, prices)
	m.free()
	better(q.polish(pick, value))
	return pick
}

// content reports whether a value is as good as can be.
func (q *question) content(value float64) bool {
	return value-q.bound <= near*math.Abs(value)+tiny
}

func (q *question) value(pick []int) float64 {
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
		if m.fixed[i] >= 0 {
			continue
		}
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

// polish makes a pick keep the limits and improves it.
func (q *question) polish(pick []int, value float64) ([]int, bool) {
	c := newChoice(q.master, pick, q.bound, value)
	if !c.repair() {
		return pick, false
	}
	c.improve()
	return c.picked(), true
}

// dive fixes the offer with the largest share of a group that has a mix, until all
// have whole replicas.
func (q *question) dive() ([]int, bool) {
	m := q.master
	steps := diveSteps * len(m.limits)
	for range steps {
		_, group, at := m.mixed()
		if group < 0 {
			break
		}
		m.fixed[group] = at
		m.solve(passes)
		if m.stuck(group) {
			// It does not fit: the group has to do without that offer.
			m.fixed[group] = -1
			m.pools[group][at].barred = true
			m.solve(passes)
			continue
		}
		for range diveRounds {
			if !q.generate(1) {
				break
			}
			m.solve(passes)
		}
	}
	return q.polish(m.rounded(), math.Inf(1))
}

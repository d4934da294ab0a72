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
// whole replicas beats. Few groups are left with a mix of offers, see branch.
type question struct {
	groups []*group
	// finders look for offers in the branch.
	finders []*finder
	master  *master
	weight  float64
	bound   float64
	// best is the best pick so far, and value its value.
	best      []int
	value     float64
	tolerance float64
	// most is the work that may be spent, and budget that up to the next step.
	most, budget int
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
// one that they have, which keeps the limits. Groups of one priority may serve less for
// others of theirs that serve more.
func (c *cluster) ask(groups []*group, weight float64, budget int) {
	q := &question{weight: weight, most: budget}
	limits := q.take(groups, c.rows)
	if len(q.groups) == 0 {
		return
	}
	var pools [][]offer
	for _, g := range q.groups {
		pools = append(pools, q.pool(g))
	}
	q.master = newMaster(pools, limits, budget)
	best := q.search(slices.Clone(q.master.key))
	for i, g := range q.groups {
		g.chosen = *q.master.pools[i][best[i]].from
		g.remember(q.master.pools[i])
	}
	c.budget -= q.spent()
}

// take sets what is asked of the groups and returns the limits of the rows: those of
// the cluster, and one for what each priority may leave unserved.
func (q *question) take(groups []*group, rows int) (limits []float64) {
	for range rows {
		limits = append(limits, 1)
	}
	if q.weight < 1 {
		q.tolerance = 2 * costHint
	}
	last := math.MinInt
	for i, g := range groups {
		g.hold, g.factor = none, 0
		switch {
		case g.asked:
			g.factor, g.least = 1, 0
		case g.held > 0:
			if i == 0 || last != g.priority {
				limits, last = append(limits, 1), g.priority
			}
			g.hold, g.least = len(limits)-1, min(g.rateAt(g.held), g.chosen.served)
		default:
			g.least = min(g.top, g.chosen.served)
		}
		if len(g.parts) > 0 {
			q.groups = append(q.groups, g)
			if g.finder == nil {
				g.finder, g.apart = newFinder(g), newFinder(g)
			}
			g.finder.reset()
			q.finders = append(q.finders, g.finder)
		}
	}
	return limits
}

// pool are the offers that a group starts with, the chosen one first.
func (q *question) pool(g *group) []offer {
	list := []offer{q.offer(g, &g.chosen)}
	put := func(a *column) {
		if g.suffices(a.served) && !slices.ContainsFunc(list, func(o offer) bool { return slices.Equal(o.from.counts, a.counts) }) {
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
	if g.asked {
		o.value += g.unserved(a.served)
	} else if g.hold != none {
		if unserved := g.unserved(a.served); unserved > 0 {
			o.uses = append(slices.Clip(o.uses), Use{Row: g.hold, Amount: unserved / g.held})
		}
	}
	return o
}

// search returns the best pick of the pools, to which it adds. It looks first where the
// groups that are not asked keep what they have, then where those do with which the
// linear program agrees, then around the best pick; what is left of the budget goes to
// looking everywhere, which alone can end with a proof.
func (q *question) search(pick []int) []int {
	m := q.master
	q.best, q.value = pick, q.sum(pick)
	q.relax(rounds)
	q.bound = m.bound()
	prices := slices.Clone(m.prices)
	sure := slices.Clone(m.key)
	m.each(func(i, _ int, _ float64) { sure[i] = -1 })
	q.offerPick(slices.Clone(pick))
	q.offerPick(m.rounded())
	q.offerPick(q.wholes(q.mixes(), func(mean float64) float64 { return math.Floor(mean + 1e-6) }))
	if q.weight < 1 && !q.groups[0].asked {
		q.spend(20)
		q.explore(q.fixed(func(i int) bool { return !q.groups[i].asked }))
	}
	if !q.content() {
		explore, walk := q.shares()
		q.spend(explore)
		q.explore(q.fixed(func(i int) bool { return q.best[i] == sure[i] }))
		q.spend(walk)
		q.walk(prices)
	}
	q.budget = q.most
	q.explore(whole())
	return q.best
}

// little is the gain of one group that is not worth looking for.
func (q *question) little() float64 {
	return max(tiny, (near*min(math.Abs(q.value), math.Abs(q.master.value()))+q.tolerance)/float64(2*len(q.groups)))
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
	little := q.little()
	for i := range q.groups {
		at, gain := m.best(i)
		if first := len(m.pools[i]); q.extend(i, keep, m.priced(i, m.key[i])-gain-little, little) {
			at, gain, changed = first, gain+little, true
		}
		if gains(gain) && !m.spent() {
			m.enter(i, at)
		}
	}
	return changed
}

// extend adds the offers of a group that are worth less than below.
func (q *question) extend(i, keep int, below, little float64) bool {
	g, f, m := q.groups[i], q.finders[i], q.master
	g.countUnserved(m.prices)
	f.price(q.weight/g.costUnit, m.prices)
	f.little = little
	found := f.run(keep, below)
	m.work, f.work = m.work+f.work, 0
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
		if q.spent() >= q.most || !q.generate(offersPerRound) {
			return
		}
		q.master.solve(passes)
	}
}

// offerPick makes a pick keep the limits, improves it, and keeps it if it is the best.
func (q *question) offerPick(pick []int) {
	c := newChoice(q.master, pick)
	if !c.repair() {
		return
	}
	c.improve()
	if q.fill(pick, q.master.prices) || q.fill(pick, make([]float64, len(q.master.limits))) {
		c.settle()
		c.improve()
	}
	if c.value < q.value {
		q.best, q.value = pick, c.value
	}
}

// aside is a finder of a group for a search that has nothing to do with the branch.
func (q *question) aside(group int) *finder {
	f := q.groups[group].apart
	f.reset()
	return f
}

// fill lets one group after the other take its best choice at some prices within the
// room that is left, and changes the pick.
func (q *question) fill(pick []int, prices []float64) (changed bool) {
	m := q.master
	left := slices.Clone(m.limits)
	for i, at := range pick {
		add(left, m.pools[i][at].uses, -1)
	}
	for i, g := range q.groups {
		now := &m.pools[i][pick[i]]
		g.countUnserved(prices)
		f := q.aside(i)
		add(left, now.uses, 1)
		f.within(left)
		f.price(q.weight/g.costUnit, prices)
		priced := now.value
		for _, u := range now.uses {
			priced += prices[u.Row] * u.Amount
		}
		for _, a := range f.run(1, priced-tiny) {
			choice := g.column(a.counts)
			if o := q.offer(g, &choice); !slices.ContainsFunc(o.uses, func(u Use) bool { return over(u.Amount, left[u.Row]) }) {
				pick[i] = len(m.pools[i])
				m.pools[i] = append(m.pools[i], o)
				changed = true
			}
		}
		add(left, m.pools[i][pick[i]].uses, -1)
		m.work += f.work
	}
	return changed
}

// shares are what looking where the linear program agrees and the walk may spend, in
// hundredths of the budget. Demand is a matter of what fits; for cost the linear program
// is rarely far off, and looking everywhere soon ends.
func (q *question) shares() (explore, walk int) {
	if q.weight < 1 {
		return 45, 50
	}
	return 25, 0
}

// spend sets the budget of the next step to some hundredths of the whole.
func (q *question) spend(hundredths int) { q.budget = min(q.most, q.spent()+q.most*hundredths/100) }

func (q *question) spent() int { return q.master.work }

// hasBudget reports whether something is left of the budget of the present step.
func (q *question) hasBudget() bool { return q.spent() < q.budget }

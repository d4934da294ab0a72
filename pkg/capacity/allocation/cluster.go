package allocation

import (
	"cmp"
	"slices"
)

// cluster are groups that compete for the same rows, directly or through others. Two
// clusters have nothing to do with each other.
type cluster struct {
	// groups are in order of priority.
	groups []*group
	// rows is the number of limits that they compete for.
	rows int
	// costUnit is what all demand is worth: costs are counted in it. It is 0 only where
	// nothing is asked.
	costUnit float64
	// budget is the work that is left for its questions, in elements looked at, some
	// nanoseconds each.
	budget int
}

// The budget of all clusters together is some 40 ms for up to fewVariants, and grows to
// some half a second: large clusters are worth more than their part.
const (
	leastBudget      = 6_500_000
	mostBudget       = 50_000_000
	fewVariants      = 200
	budgetPerVariant = 150_000
)

func budgetFor(variants int) int {
	return min(leastBudget+budgetPerVariant*max(0, variants-fewVariants), mostBudget)
}

// clusters splits the groups by the rows that they compete for. Rows that hold all that
// could be bought are left out, the others are scaled so that each limit is 1.
func clusters(groups []*group, limits []float64) []*cluster {
	binds := binding(groups, limits)
	firsts := connect(groups, binds)
	byRow := map[int]*cluster{}
	var all []*cluster
	variants := 0
	for i, g := range groups {
		variants += len(g.variants)
		c := byRow[firsts[i]]
		if c == nil || firsts[i] < 0 {
			c = &cluster{}
			byRow[firsts[i]] = c
			all = append(all, c)
		}
		c.groups = append(c.groups, g)
	}
	for _, c := range all {
		c.number(limits, binds)
		own := 0
		for _, g := range c.groups {
			own += len(g.variants)
		}
		c.budget = int(float64(budgetFor(variants)) * float64(own) / float64(variants))
	}
	return all
}

// binding are the rows that do not hold all that could be bought.
func binding(groups []*group, limits []float64) []bool {
	most := make([]float64, len(limits))
	for _, g := range groups {
		for _, p := range g.parts {
			add(most, p.uses, float64(p.limit))
		}
	}
	binds := make([]bool, len(limits))
	for r := range limits {
		binds[r] = over(most[r], limits[r])
	}
	return binds
}

// connect returns for each group a row that stands for all those that it is connected
// with through others, or -1.
func connect(groups []*group, binds []bool) []int {
	owner := make([]int, len(binds))
	for r := range owner {
		owner[r] = r
	}
	find := func(r int) int {
		for owner[r] != r {
			owner[r] = owner[owner[r]]
			r = owner[r]
		}
		return r
	}
	firsts := make([]int, len(groups))
	for i, g := range groups {
		firsts[i] = -1
		for _, p := range g.parts {
			for _, u := range p.uses {
				switch {
				case !binds[u.Row]:
				case firsts[i] < 0:
					firsts[i] = u.Row
				default:
					owner[find(u.Row)] = find(firsts[i])
				}
			}
		}
	}
	for i, r := range firsts {
		if r >= 0 {
			firsts[i] = find(r)
		}
	}
	return firsts
}

// number gives the rows of the cluster their own numbers, in their order, and scale.
func (c *cluster) number(limits []float64, binds []bool) {
	var rows []int
	index := map[int]int{}
	for _, g := range c.groups {
		for _, p := range g.parts {
			for _, u := range p.uses {
				if _, known := index[u.Row]; binds[u.Row] && !known {
					index[u.Row], rows = 0, append(rows, u.Row)
				}
			}
		}
	}
	slices.Sort(rows)
	for i, r := range rows {
		index[r] = i
	}
	c.rows = len(rows)
	for _, g := range c.groups {
		c.costUnit = min(c.costUnit+g.worth*g.rest, largest)
		for i, p := range g.parts {
			var uses []Use
			for _, u := range p.uses {
				if binds[u.Row] {
					uses = use(uses, index[u.Row], u.Amount/limits[u.Row])
				}
			}
			g.parts[i].uses = uses
		}
	}
	for _, g := range c.groups {
		g.costUnit = c.costUnit
		g.ideal = g.column(g.ideal.counts)
		g.chosen = g.column(make([]int, len(g.parts)))
	}
}

// solve decides what the groups get: how much is served of one priority after the
// other, and then at what cost.
func (c *cluster) solve() {
	questions := 1
	for i, g := range c.groups {
		if i == 0 || g.priority != c.groups[i-1].priority {
			questions++
		}
	}
	for at := 0; at < len(c.groups); questions-- {
		next := at
		for next < len(c.groups) && c.groups[next].priority == c.groups[at].priority {
			next++
		}
		c.serve(at, next, questions)
		at = next
	}
	if c.rows > 0 {
		c.ask(c.groups, 1, c.budget)
	}
}

// serve decides how much the groups from..to, which are of one priority, are served.
// Of more important ones, before them, no more stays unserved in sum than before; less
// important ones have to wait. Of the budget that is left it may spend more than its
// part of the questions: cost, the last one, is the easiest and counts the least.
func (c *cluster) serve(from, to, questions int) {
	block := c.groups[from:to]
	if c.fitsIdeals(from, to) {
		for _, g := range block {
			g.chosen = g.ideal
		}
		return
	}
	unit := 0.0
	for _, g := range block {
		unit += g.rest * g.worth
	}
	for _, g := range block {
		g.setPrices(cmp.Or(unit, 1))
		g.asked = true
	}
	c.ask(c.groups[:to], costHint, 5*c.budget/(questions+4))
	held := 0.0
	for _, g := range block {
		g.asked = false
		held += g.unserved(g.chosen.served)
	}
	if !matters(held) {
		held = 0
	}
	for _, g := range block {
		g.held = held
	}
}

// fitsIdeals reports whether the groups from..to can have their cheapest vectors beside
// what the groups before them have.
func (c *cluster) fitsIdeals(from, to int) bool {
	used := make([]float64, c.rows)
	for i, g := range c.groups[:to] {
		switch {
		case i < from:
			add(used, g.chosen.uses, 1)
		case !g.idealFits:
			return false
		default:
			add(used, g.ideal.uses, 1)
		}
	}
	return !slices.ContainsFunc(used, func(u float64) bool { return over(u, 1) })
}

// costHint is the weight of costs while demand is what matters: it decides only
// between choices that serve the same.
const costHint = 1e-6

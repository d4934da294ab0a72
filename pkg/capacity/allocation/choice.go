package allocation

import (
	"cmp"
	"math"
	"slices"
)

// choice picks one column of each group so that together they keep the limits at the
// least value: a knapsack of several dimensions with classes.
type choice struct {
	groups  []*group
	limits  []float64
	prices  []float64
	columns [][]column
	// reduced is by how much a column is worse than the best of its group at the
	// prices: value plus prices times uses, less the least of the group.
	reduced [][]float64
	// bound is the Lagrangian bound over the columns.
	bound float64

	pick  []int
	used  []float64
	value float64
}

func newChoice(groups []*group, limits, prices []float64, weight float64) *choice {
	c := &choice{groups: groups, limits: limits, pick: make([]int, len(groups)), used: make([]float64, len(limits))}
	scale := math.Min(1, 150/float64(len(groups)))
	for _, g := range groups {
		list := newFinder(g, prices, weight).all(scale)
		c.columns = append(c.columns, list)
		c.value += list[0].value
		add(c.used, list[0].uses, 1)
	}
	c.reprice(prices)
	return c
}

// reprice improves the prices for whole replicas and sorts the columns by them.
func (c *choice) reprice(prices []float64) {
	total := 0
	for _, list := range c.columns {
		total += len(list)
	}
	steps := min(max(1_500_000/(total*(1+len(c.limits))), 10), 100)
	c.prices = ascend(prices, c.limits, c.value, steps, c.lagrangian)
	c.bound = c.lagrangian(c.prices, make([]float64, len(c.limits)))
	c.reduced = make([][]float64, len(c.columns))
	for i, list := range c.columns {
		picked := list[c.pick[i]]
		slices.SortStableFunc(list, func(a, b column) int { return cmp.Compare(c.priced(a), c.priced(b)) })
		c.pick[i] = slices.IndexFunc(list, func(a column) bool { return slices.Equal(a.counts, picked.counts) })
		for _, a := range list {
			c.reduced[i] = append(c.reduced[i], c.priced(a)-c.priced(list[0]))
		}
	}
}

func (c *choice) priced(a column) float64 {
	sum := a.value
	for i, u := range a.uses {
		if u != 0 {
			sum += c.prices[i] * u
		}
	}
	return sum
}

func (c *choice) lagrangian(prices, excess []float64) float64 {
	sum := 0.0
	for i, limit := range c.limits {
		if !math.IsInf(limit, 1) {
			excess[i] -= limit
			sum -= prices[i] * limit
		}
	}
	for _, list := range c.columns {
		least, at := math.Inf(1), 0
		for j := range list {
			value := list[j].value
			for i, u := range list[j].uses {
				value += prices[i] * u
			}
			if value < least {
				least, at = value, j
			}
		}
		sum += least
		add(excess, list[at].uses, 1)
	}
	return sum
}

// solve improves what was chosen, and what the prices say, and keeps the better one.
func (c *choice) solve() {
	c.improve()
	pick, value := slices.Clone(c.pick), c.value
	c.set(make([]int, len(c.pick)))
	if !c.repair() {
		c.set(pick)
	} else if c.improve(); c.value > value {
		c.set(pick)
	}
}

func (c *choice) set(pick []int) {
	copy(c.pick, pick)
	clear(c.used)
	c.value = 0
	for i, j := range c.pick {
		c.value += c.columns[i][j].value
		add(c.used, c.columns[i][j].uses, 1)
	}
}

func (c *choice) change(group, to int) {
	from := &c.columns[group][c.pick[group]]
	c.value += c.columns[group][to].value - from.value
	add(c.used, from.uses, -1)
	add(c.used, c.columns[group][to].uses, 1)
	c.pick[group] = to
}

// excess is by how much the limits are exceeded, in parts of them, when the group
// changes to a column.
func (c *choice) excess(group, to int) float64 {
	sum := 0.0
	from, next := c.columns[group][c.pick[group]].uses, c.columns[group][to].uses
	for i, limit := range c.limits {
		if used := c.used[i] - from[i] + next[i]; over(used, limit) {
			sum += (used - limit) / math.Max(limit, 1)
		}
	}
	return sum
}

// repair changes groups until the limits hold, each time the one that eases the most
// for what it costs; it is false when none helps.
func (c *choice) repair() bool {
	for {
		now := c.excess(0, c.pick[0])
		if now == 0 {
			return true
		}
		group, to, best := -1, 0, math.Inf(1)
		for i, list := range c.columns {
			for j := range list {
				eased := now - c.excess(i, j)
				if eased <= fine {
					continue
				}
				if price := math.Max(0, c.reduced[i][j]-c.reduced[i][c.pick[i]]) / eased; price < best {
					group, to, best = i, j, price
				}
			}
		}
		if group < 0 {
			return false
		}
		c.change(group, to)
	}
}

// tolerance is the gain below which a change is none.
func (c *choice) tolerance() float64 { return 1e-12 * math.Max(math.Abs(c.value), 1e-9) }

// improve changes one or two groups at a time while that is better.
func (c *choice) improve() {
	for c.single() || c.double() {
	}
}

// single applies the best change of one group.
func (c *choice) single() bool {
	group, to, best := -1, 0, -c.tolerance()
	for i, list := range c.columns {
		value := list[c.pick[i]].value
		for j := range list {
			if gain := list[j].value - value; gain < best && c.excess(i, j) == 0 {
				group, to, best = i, j, gain
			}
		}
	}
	if group >= 0 {
		c.change(group, to)
	}
	return group >= 0
}

// double applies the best change that another group makes room for.
func (c *choice) double() bool {
	for i, list := range c.columns {
		from := c.pick[i]
		for j := range list {
			gain := list[from].value - list[j].value
			if gain <= c.tolerance() {
				continue
			}
			c.change(i, j)
			other, to := c.room(i, gain)
			if other >= 0 {
				c.change(other, to)
				return true
			}
			c.change(i, from)
		}
	}
	return false
}

// room finds the cheapest change of another group that makes the limits hold again,
// if it costs less than gain.
func (c *choice) room(not int, gain float64) (group, to int) {
	group = -1
	worst, most := -1, 0.0
	for i, limit := range c.limits {
		if over(c.used[i], limit) && c.used[i]-limit > most {
			worst, most = i, c.used[i]-limit
		}
	}
	if worst < 0 {
		return -1, 0
	}
	least := gain - c.tolerance()
	for i, list := range c.columns {
		if i == not {
			continue
		}
		from := &list[c.pick[i]]
		if from.uses[worst] == 0 {
			continue
		}
		for j := range list {
			if loss := list[j].value - from.value; loss < least && from.uses[worst]-list[j].uses[worst] >= most*(1-fine) && c.excess(i, j) == 0 {
				group, to, least = i, j, loss
			}
		}
	}
	return group, to
}

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
	columns [][]*column
	// reduced is by how much a column is worse than the best of its group at the
	// prices: value plus prices times uses, less the least of the group.
	reduced [][]float64
	// bound is the Lagrangian bound over the columns.
	bound float64

	pick  []int
	used  []float64
	value float64
	// worse is the sum of reduced over what is picked.
	worse float64
	// ceiling are the limits with what sums may be off, budget the pairs of columns
	// that may still be looked at.
	ceiling []float64
	budget  int
}

// pairBudget bounds the search of one question, per part, and mostPairs altogether.
const (
	pairBudget = 400
	mostPairs  = 1_000_000
)

func newChoice(groups []*group, limits, prices []float64, weight float64) *choice {
	c := &choice{groups: groups, limits: limits, pick: make([]int, len(groups)), used: make([]float64, len(limits))}
	scale := math.Min(1, 150/float64(len(groups)))
	room := slices.Clone(limits)
	for _, g := range groups {
		add(room, g.chosen.uses, -1)
	}
	for _, g := range groups {
		own := slices.Clone(room)
		add(own, g.chosen.uses, 1)
		list := newFinder(g, prices, weight).all(scale, own)
		c.columns = append(c.columns, list)
		c.value += list[0].value
		add(c.used, list[0].uses, 1)
	}
	for _, limit := range limits {
		c.ceiling = append(c.ceiling, limit+fine*math.Max(limit, 1))
	}
	for _, g := range groups {
		c.budget += pairBudget * len(g.parts)
	}
	c.budget = min(c.budget, mostPairs)
	c.reprice(prices)
	c.set(slices.Clone(c.pick))
	return c
}

// reprice improves the prices for whole replicas and sorts the columns by them.
func (c *choice) reprice(prices []float64) {
	total := 0
	for _, list := range c.columns {
		total += len(list)
	}
	steps := min(max(1_000_000/(total*(1+len(c.limits))), 10), 50)
	c.prices = ascend(prices, c.limits, c.value, steps, c.lagrangian)
	c.sort()
}

// reweigh has costs count by another weight from now on.
func (c *choice) reweigh(weight float64) {
	for i, list := range c.columns {
		for j := range list {
			list[j].value = c.groups[i].valued(list[j], weight)
		}
	}
	c.sort()
	c.set(slices.Clone(c.pick))
}

// sort orders the columns by their priced value and sets the bound.
func (c *choice) sort() {
	c.bound = c.lagrangian(c.prices, make([]float64, len(c.limits)))
	c.reduced = make([][]float64, len(c.columns))
	for i, list := range c.columns {
		picked := list[c.pick[i]]
		for _, a := range list {
			a.priced = c.priced(a)
		}
		slices.SortStableFunc(list, func(a, b *column) int { return cmp.Compare(a.priced, b.priced) })
		c.pick[i] = slices.Index(list, picked)
		for _, a := range list {
			c.reduced[i] = append(c.reduced[i], a.priced-list[0].priced)
		}
	}
}

func (c *choice) priced(a *column) float64 {
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
	c.value, c.worse = 0, 0
	for i, j := range c.pick {
		c.worse += c.reduced[i][j]
		c.value += c.columns[i][j].value
		add(c.used, c.columns[i][j].uses, 1)
	}
}

func (c *choice) change(group, to int) {
	from := c.columns[group][c.pick[group]]
	c.value += c.columns[group][to].value - from.value
	c.worse += c.reduced[group][to] - c.reduced[group][c.pick[group]]
	add(c.used, from.uses, -1)
	add(c.used, c.columns[group][to].uses, 1)
	c.pick[group] = to
}

// fits reports whether the limits hold when the group changes to a column.
func (c *choice) fits(group, to int) bool {
	from, next := c.columns[group][c.pick[group]].uses, c.columns[group][to].uses
	for i, most := range c.ceiling {
		if c.used[i]-from[i]+next[i] > most {
			return false
		}
	}
	return true
}

// excess is by how much the limits are exceeded, in parts of them, when the group
// changes to a column.
func (c *choice) excess(group, to int) float64 {
	sum := 0.0
	from, next := c.columns[group][c.pick[group]].uses, c.columns[group][to].uses
	for i, most := range c.ceiling {
		if used := c.used[i] - from[i] + next[i]; used > most {
			sum += (used - c.limits[i]) / math.Max(c.limits[i], 1)
		}
	}
	return sum
}

// repair changes groups until the limits hold, each time the one that eases the most
// for what it costs; it is false when none helps.
func (c *choice) repair() bool {
	if len(c.columns) > manyGroups {
		c.repairMany()
	}
	for {
		now := c.excess(0, c.pick[0])
		if now == 0 {
			return true
		}
		group, to, best := -1, 0, math.Inf(1)
		for i, list := range c.columns {
			for j := range list {
				price := math.Max(0, c.reduced[i][j]-c.reduced[i][c.pick[i]])
				if price >= best*now {
					// Sorted by that price, and no column eases more than all.
					break
				}
				eased := now - c.excess(i, j)
				if eased <= fine {
					continue
				}
				if price /= eased; price < best {
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

// manyGroups is from how many on one change at a time takes too long.
const manyGroups = 150

// repairMany goes through the changes that ease the limits, the cheapest first, each
// group once per pass, and makes those that still do.
func (c *choice) repairMany() {
	type move struct {
		group, to int
		price     float64
	}
	for changed, passes := true, 0; changed && passes < 50; passes++ {
		changed = false
		now := c.excess(0, c.pick[0])
		var moves []move
		for i, list := range c.columns {
			best := move{to: -1, price: math.Inf(1)}
			for j := range list {
				price := math.Max(0, c.reduced[i][j]-c.reduced[i][c.pick[i]])
				if eased := now - c.excess(i, j); eased > fine && price/eased < best.price {
					best = move{i, j, price / eased}
				}
			}
			if best.to >= 0 {
				moves = append(moves, best)
			}
		}
		slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.price, b.price) })
		for _, m := range moves {
			left := c.excess(m.group, c.pick[m.group])
			if left == 0 {
				return
			}
			if c.excess(m.group, m.to) < left-fine {
				c.change(m.group, m.to)
				changed = true
			}
		}
	}
}

// tolerance is the gain below which a change is none.
func (c *choice) tolerance() float64 { return 1e-12 * math.Max(math.Abs(c.value), 1e-9) }

// improve changes one or two groups at a time while that is better.
func (c *choice) improve() {
	for c.single() || c.double() || c.yield() {
	}
}

// yield has one group take a worse column, where others gain more by what it frees.
func (c *choice) yield() bool {
	before, picks := c.value, slices.Clone(c.pick)
	for i, list := range c.columns {
		from := c.pick[i]
		for j := range list {
			if c.worse-c.reduced[i][from]+c.reduced[i][j] > c.left() || c.budget <= 0 {
				break
			}
			if list[j].value <= list[from].value || !c.frees(list[from], list[j]) {
				continue
			}
			c.budget -= yieldPrice * len(c.columns)
			c.change(i, j)
			if c.single() && c.value < before-c.tolerance() {
				return true
			}
			c.set(picks)
		}
	}
	return false
}

// yieldPrice is the work of a try of yield per group, in pairs of columns.
const yieldPrice = 8

// frees reports whether a change eases a limit that is nearly reached.
func (c *choice) frees(from, to *column) bool {
	for i, u := range to.uses {
		if u < from.uses[i] && c.prices[i] > 0 {
			return true
		}
	}
	return false
}

// single changes one group after the other to its best column that fits.
func (c *choice) single() bool {
	changed := false
	for i, list := range c.columns {
		to, best := -1, list[c.pick[i]].value-c.tolerance()
		for j := range list {
			if list[j].value < best && c.fits(i, j) {
				to, best = j, list[j].value
			}
		}
		if to >= 0 {
			c.change(i, to)
			changed = true
		}
	}
	return changed
}

// left is how much worse columns may be in sum than the best of their groups: no
// choice of columns that exceeds it is better than the present one.
func (c *choice) left() float64 { return c.value - c.tolerance() - c.bound }

// double applies changes of one group that another one makes room for.
func (c *choice) double() bool {
	changed := false
	for i, list := range c.columns {
		for j := 0; j < len(list) && c.budget > 0; j++ {
			from := c.pick[i]
			gain := list[from].value - list[j].value
			if gain <= c.tolerance() {
				continue
			}
			left := c.left()
			c.change(i, j)
			other, to := c.room(i, gain, left)
			if other < 0 {
				c.change(i, from)
				continue
			}
			c.change(other, to)
			changed = true
		}
	}
	return changed
}

// room finds the cheapest change of another group that makes the limits hold again,
// if it costs less than gain.
func (c *choice) room(not int, gain, left float64) (group, to int) {
	group = -1
	worst, most := -1, 0.0
	for i, limit := range c.limits {
		if c.used[i] > c.ceiling[i] && c.used[i]-limit > most {
			worst, most = i, c.used[i]-limit
		}
	}
	if worst < 0 {
		return -1, 0
	}
	least := gain - c.tolerance()
	for i, list := range c.columns {
		from := list[c.pick[i]]
		if i == not || from.uses[worst] == 0 {
			continue
		}
		enough := from.uses[worst] - most*(1-fine)
		others := c.worse - c.reduced[i][c.pick[i]]
		for j := range list {
			if c.budget--; others+c.reduced[i][j] > left {
				break
			}
			if loss := list[j].value - from.value; loss < least && list[j].uses[worst] <= enough && c.fits(i, j) {
				group, to, least = i, j, loss
			}
		}
	}
	return group, to
}

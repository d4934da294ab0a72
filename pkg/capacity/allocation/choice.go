package allocation

import (
	"cmp"
	"math"
	"slices"
)

// choice picks one offer of each group so that together they keep the limits at a low
// value. It improves a pick by changes of one and of two groups.
type choice struct {
	limits []float64
	lists  [][]candidate
	bound  float64

	pick  []int
	used  []float64
	value float64
	// worse is the sum of reduced over what is picked.
	worse float64
	// budget are the pairs of offers that may still be looked at, and work the offers
	// that were.
	budget, work int
}

// candidate is an offer and by how much it is worse than the best one of its group at
// the prices of the rows.
type candidate struct {
	*offer
	at      int
	reduced float64
}

// pairBudget bounds the pairs that a search looks at.
const pairBudget = 60_000

// newChoice takes the offers that can be part of a choice better than value, and those
// that are picked.
func newChoice(m *master, pick []int, bound, value float64) *choice {
	c := &choice{limits: m.limits, lists: make([][]candidate, len(pick)), bound: bound, pick: make([]int, len(pick)),
		used: make([]float64, len(m.limits)), budget: pairBudget}
	for i, pool := range m.pools {
		c.work += 8 * len(pool)
		c.lists[i] = make([]candidate, 0, len(pool))
		least := m.priced(i, pick[i])
		for j := range pool {
			least = min(least, m.priced(i, j))
		}
		for j := range pool {
			if reduced := m.priced(i, j) - least; j == pick[i] || bound+reduced < value {
				c.lists[i] = append(c.lists[i], candidate{&pool[j], j, reduced})
			}
		}
		slices.SortStableFunc(c.lists[i], func(a, b candidate) int { return cmp.Compare(a.reduced, b.reduced) })
		c.pick[i] = slices.IndexFunc(c.lists[i], func(a candidate) bool { return a.at == pick[i] })
	}
	c.settle()
	return c
}

func (c *choice) settle() {
	clear(c.used)
	c.value, c.worse = 0, 0
	for i, j := range c.pick {
		c.value += c.lists[i][j].value
		c.worse += c.lists[i][j].reduced
		add(c.used, c.lists[i][j].uses, 1)
	}
}

// picked are the offers by their place in the pools.
func (c *choice) picked() []int {
	list := make([]int, len(c.pick))
	for i, j := range c.pick {
		list[i] = c.lists[i][j].at
	}
	return list
}

func (c *choice) change(group, to int) {
	from, next := &c.lists[group][c.pick[group]], &c.lists[group][to]
	c.value += next.value - from.value
	c.worse += next.reduced - from.reduced
	add(c.used, from.uses, -1)
	add(c.used, next.uses, 1)
	c.pick[group] = to
}

// excess is by how much the limits are exceeded.
func (c *choice) excess() float64 {
	sum := 0.0
	for r, u := range c.used {
		if over(u, c.limits[r]) {
			sum += u - c.limits[r]
		}
	}
	return sum
}

// fits reports whether the limits of what an offer uses hold when it is added.
func (c *choice) fits(a *candidate) bool {
	for _, u := range a.uses {
		if over(c.used[u.Row]+u.Amount, c.limits[u.Row]) {
			return false
		}
	}
	return true
}

// repair changes groups until the limits hold, each time the one that eases the most
// for what it costs; it is false when none helps.
func (c *choice) repair() bool {
	for now := c.excess(); now > 0; now = c.excess() {
		group, to, best := -1, 0, math.Inf(1)
		for i, list := range c.lists {
			from := c.pick[i]
			for j := range list {
				c.work++
				price := max(0, list[j].reduced-list[from].reduced)
				if j == from || price >= best*now {
					continue
				}
				c.change(i, j)
				if eased := now - c.excess(); eased > fine && price/eased < best {
					group, to, best = i, j, price/eased
				}
				c.change(i, from)
			}
		}
		if group < 0 {
			return false
		}
		c.change(group, to)
	}
	c.settle()
	return true
}

// tolerance is the gain below which a change is none.
func (c *choice) tolerance() float64 { return 1e-11 * max(math.Abs(c.value), 1e-3) }

// left is how much worse offers may be in sum than the best of their groups: no choice
// that exceeds it is better than the present one.
func (c *choice) left() float64 { return c.value - c.tolerance() - c.bound }

// improve changes one or two groups at a time while that is better.
func (c *choice) improve() {
	for c.single() || c.double() {
	}
	c.settle()
}

// single changes one group after the other to its best offer that fits.
func (c *choice) single() bool {
	changed := false
	for i, list := range c.lists {
		c.work += len(list)
		from := &list[c.pick[i]]
		to, best := -1, from.value-c.tolerance()
		add(c.used, from.uses, -1)
		for j := range list {
			if list[j].value < best && c.fits(&list[j]) {
				to, best = j, list[j].value
			}
		}
		add(c.used, from.uses, 1)
		if to >= 0 {
			c.change(i, to)
			changed = true
		}
	}
	return changed
}

// double applies changes of one group that another one makes room for.
func (c *choice) double() bool {
	changed := false
	for i, list := range c.lists {
		for j := 0; j < len(list) && c.budget > 0; j++ {
			from := c.pick[i]
			left := c.left()
			if c.worse-list[from].reduced+list[j].reduced > left {
				break
			}
			gain := list[from].value - list[j].value
			if j == from || gain <= c.tolerance() {
				continue
			}
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
	for r, u := range c.used {
		if over(u, c.limits[r]) && u-c.limits[r] > most {
			worst, most = r, u-c.limits[r]
		}
	}
	if worst < 0 {
		return -1, 0
	}
	least := gain - c.tolerance()
	for i, list := range c.lists {
		from := &list[c.pick[i]]
		if i == not || !slices.ContainsFunc(from.uses, func(u Use) bool { return u.Row == worst }) {
			continue
		}
		others := c.worse - from.reduced
		add(c.used, from.uses, -1)
		for j := range list {
			if c.budget--; others+list[j].reduced > left {
				break
			}
			if loss := list[j].value - from.value; loss < least && c.holds(&list[j]) {
				group, to, least = i, j, loss
			}
		}
		add(c.used, from.uses, 1)
	}
	return group, to
}

// holds reports whether all limits hold when an offer is added.
func (c *choice) holds(a *candidate) bool {
	if !c.fits(a) {
		return false
	}
	for r, u := range c.used {
		if over(u, c.limits[r]) && !slices.ContainsFunc(a.uses, func(u Use) bool { return u.Row == r }) {
			return false
		}
	}
	return true
}

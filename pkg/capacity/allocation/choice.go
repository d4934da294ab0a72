package allocation

import (
	"math"
	"slices"
)

// choice is one offer of each group, which is changed until all of them together keep
// the limits at a low value. The value is that of the time when it was last settled.
type choice struct {
	m     *master
	pick  []int
	used  []float64
	value float64
}

func newChoice(m *master, pick []int) *choice {
	c := &choice{m: m, pick: pick, used: make([]float64, len(m.limits))}
	c.settle()
	return c
}

// settle reckons anew what is picked.
func (c *choice) settle() {
	clear(c.used)
	c.value = 0
	for i, j := range c.pick {
		c.value += c.m.pools[i][j].value
		add(c.used, c.m.pools[i][j].uses, 1)
	}
}

func (c *choice) change(group, to int) {
	add(c.used, c.m.pools[group][c.pick[group]].uses, -1)
	add(c.used, c.m.pools[group][to].uses, 1)
	c.pick[group] = to
}

// excess is by how much the limits are exceeded.
func (c *choice) excess() float64 {
	sum := 0.0
	for r, u := range c.used {
		if over(u, c.m.limits[r]) {
			sum += u - c.m.limits[r]
		}
	}
	return sum
}

// eases is by how much less the limits would be exceeded with another offer of a group: only the
// rows that either offer uses change.
func (c *choice) eases(group, to int) (eased float64) {
	rows := [...][]Use{c.m.pools[group][c.pick[group]].uses, c.m.pools[group][to].uses}
	at := func(row int) float64 { return max(0, c.used[row]-c.m.limits[row]) }
	from := c.pick[group]
	each := func(sign float64) {
		for k, uses := range rows {
			for _, u := range uses {
				if k == 0 || !slices.ContainsFunc(rows[0], func(o Use) bool { return o.Row == u.Row }) {
					if over(c.used[u.Row], c.m.limits[u.Row]) {
						eased += sign * at(u.Row)
					}
				}
			}
		}
	}
	each(1)
	c.change(group, to)
	each(-1)
	c.change(group, from)
	return eased
}

// fits reports whether the limits of what an offer uses hold when it is added.
func (c *choice) fits(o *offer) bool {
	for _, u := range o.uses {
		if over(c.used[u.Row]+u.Amount, c.m.limits[u.Row]) {
			return false
		}
	}
	return true
}

// repair changes groups until the limits hold, each time the one that eases the most
// for what it costs at the prices; it is false when none helps.
func (c *choice) repair() bool {
	for now := c.excess(); now > 0; now = c.excess() {
		group, to, best := -1, 0, math.Inf(1)
		for i, pool := range c.m.pools {
			from := c.pick[i]
			has := c.m.priced(i, from)
			c.m.work += 4 * len(pool)
			for j := range pool {
				price := max(0, c.m.priced(i, j)-has)
				if eased := c.eases(i, j); eased > fine && price/eased < best {
					group, to, best = i, j, price/eased
				}
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

// improve changes one group after the other to its best offer that fits, while that is
// better.
func (c *choice) improve() {
	for c.sweep() {
	}
	c.settle()
}

func (c *choice) sweep() (changed bool) {
	for i, pool := range c.m.pools {
		c.m.work += 2 * len(pool)
		from := &pool[c.pick[i]]
		// A gain that rounding makes is none.
		to, best := -1, from.value-1e-11*max(math.Abs(c.value), 1e-3)
		add(c.used, from.uses, -1)
		for j := range pool {
			if pool[j].value < best && c.fits(&pool[j]) {
				to, best = j, pool[j].value
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

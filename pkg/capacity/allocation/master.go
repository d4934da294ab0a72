package allocation

import "math"

// master is the linear program that picks of each group a mix of its offers so that
// the rows are kept at the least value:
//
//	minimise    sum value*x
//	subject to  sum uses*x <= limits, sum of x over the offers of a group = 1, x >= 0
//
// It is solved by the primal simplex method with generalised upper bounds (Dantzig and
// Van Slyke 1967): each group has one key offer whose share is what the others leave,
// so the basis has one slot per row however many groups there are. It starts from
// whole replicas that keep the rows, and every step keeps them. A basic solution mixes
// offers in at most as many groups as there are rows; all others have whole replicas.
type master struct {
	limits []float64
	pools  [][]offer
	key    []int
	slots  []slot
	// inverse is that of the basis, by slot and row; amount the value of each slot.
	inverse [][]float64
	amount  []float64
	// prices are those of the rows, at least 0 at the end.
	prices []float64
	// high is the cost of an offer that its group may not take.
	high float64

	column, ratio []float64
	tally         []float64
	touched       []Use
	pivots        int
	// work counts elements that were looked at; beyond most the solution stops where
	// it is.
	work, most int
}

// offer is a column in the present question.
type offer struct {
	value float64
	uses  []Use
	// barred offers are taken only where there is no other way.
	barred bool
	from   *column
}

// none is the index of no slot, no group and no row.
const none = -1

// slot is a basic variable: an offer beside the key of its group, or, where group is
// negative, what is left of the row at.
type slot struct{ group, at int }

const (
	// tiny is the reduced value that is none.
	tiny = 1e-9
	// refresh is how many pivots an inverse is good for.
	refresh = 60
)

// gains reports whether a gain is worth a step.
func gains(gain float64) bool { return gain > tiny }

// matters reports whether a part of a whole, or an element to pivot on, is more than
// what rounding leaves of nothing.
func matters(part float64) bool { return part >= 1e-7 }

// newMaster starts from the first offer of each pool, which together keep the limits. Where most work
// does not suffice for one step of so many rows nothing is solved, and there are no prices.
func newMaster(pools [][]offer, limits []float64, most int) *master {
	m := &master{limits: limits, pools: pools, key: make([]int, len(pools)), slots: make([]slot, len(limits)),
		amount: make([]float64, len(limits)), prices: make([]float64, len(limits)), high: 1e4, most: most,
		column: make([]float64, len(limits)), ratio: make([]float64, len(limits)), tally: make([]float64, len(pools))}
	for i := range limits {
		m.slots[i] = slot{group: -1, at: i}
	}
	if len(limits)*len(limits) >= most {
		m.work = most
		return m
	}
	for i := range limits {
		row := make([]float64, len(limits))
		row[i] = 1
		m.inverse = append(m.inverse, row)
	}
	m.settle()
	return m
}

// spent reports whether nothing is left of the work.
func (m *master) spent() bool { return m.work >= m.most }

// cost is the value of an offer, high where the group may not take it.
func (m *master) cost(group, at int) float64 {
	o := &m.pools[group][at]
	if o.barred {
		return o.value + m.high
	}
	return o.value
}

// settle reckons the amounts from the keys and the inverse.
func (m *master) settle() {
	left := append([]float64(nil), m.limits...)
	for i, at := range m.key {
		add(left, m.pools[i][at].uses, -1)
	}
	for s, row := range m.inverse {
		sum := 0.0
		for r, l := range left {
			sum += row[r] * l
		}
		m.amount[s] = max(0, sum)
	}
}

// reprice finds the prices that make all basic variables worth nothing.
func (m *master) reprice() {
	clear(m.prices)
	for s, b := range m.slots {
		if b.group < 0 {
			continue
		}
		if more := m.cost(b.group, b.at) - m.cost(b.group, m.key[b.group]); more != 0 {
			for r, x := range m.inverse[s] {
				m.prices[r] -= more * x
			}
		}
	}
}

// solve improves until no offer of the pools does; passes bounds the work.
func (m *master) solve(passes int) {
	m.reprice()
	for range passes {
		if m.spent() || !m.pass() {
			return
		}
	}
}

// pass lets every row and every group once enter its best variable, as far as the work suffices.
func (m *master) pass() (changed bool) {
	for r := range m.limits {
		if !m.spent() && gains(-m.prices[r]) && m.enter(-1, r) {
			changed = true
		}
	}
	for i := range m.pools {
		if m.spent() {
			return changed
		}
		if at, gain := m.best(i); gains(gain) && m.enter(i, at) {
			changed = true
		}
	}
	return changed
}

// priced is an offer's value with the rows that it uses.
func (m *master) priced(group, at int) float64 {
	value := m.cost(group, at)
	for _, u := range m.pools[group][at].uses {
		value += m.prices[u.Row] * u.Amount
	}
	return value
}

// best is the offer of a group that is worth the most at the prices, and by how much
// it beats the key.
func (m *master) best(group int) (at int, gain float64) {
	now := m.key[group]
	key := m.priced(group, now)
	at, least := now, key
	pool := m.pools[group]
	for j := range pool {
		o := &pool[j]
		// Prices only add to the value.
		if j == now || o.barred || o.value >= least {
			continue
		}
		value := o.value
		for _, u := range o.uses {
			value += m.prices[u.Row] * u.Amount
		}
		if value < least {
			at, least = j, value
		}
	}
	m.work += 8 + len(pool)
	return at, key - least
}

// enter brings a variable into the basis; it is false when that cannot be done.
func (m *master) enter(group, at int) bool {
	if m.pivots >= refresh {
		m.refresh()
	}
	m.work += 2 * len(m.limits) * len(m.limits)
	m.direction(group, at)
	step, out, key := m.leaving(group)
	if math.IsInf(step, 1) {
		return false
	}
	for s, a := range m.ratio {
		m.amount[s] = max(0, m.amount[s]-step*a)
	}
	switch {
	case out < 0 && key < 0:
		// The group has no other basic offer: it changes as a whole.
		m.key[group] = at
		m.reprice()
		return true
	case out < 0:
		out = m.swapKey(key)
		m.direction(group, at)
		if !matters(math.Abs(m.ratio[out])) {
			m.settle()
			return false
		}
	}
	m.pivot(out)
	m.slots[out], m.amount[out] = slot{group, at}, step
	m.reprice()
	return true
}

// direction is what one unit of a variable takes of each slot.
func (m *master) direction(group, at int) {
	clear(m.column)
	if group < 0 {
		m.column[at] = 1
	} else {
		add(m.column, m.pools[group][at].uses, 1)
		add(m.column, m.pools[group][m.key[group]].uses, -1)
	}
	m.touched = m.touched[:0]
	for r, c := range m.column {
		if c != 0 {
			m.touched = append(m.touched, Use{Row: r, Amount: c})
		}
	}
	for s, row := range m.inverse {
		sum := 0.0
		for _, u := range m.touched {
			sum += row[u.Row] * u.Amount
		}
		m.ratio[s] = sum
	}
}

// leaving is how far the entering variable can grow, and what stops it: a slot, or the
// key of a group; neither when it takes the place of its own key.
func (m *master) leaving(group int) (step float64, out, key int) {
	first := stop{step: math.Inf(1), out: none, key: none}
	for s, a := range m.ratio {
		if matters(a) {
			first = first.or(stop{m.amount[s] / a, s, none, a})
		}
	}
	own := false
	for s, b := range m.slots {
		if b.group >= 0 {
			m.tally[b.group] -= m.ratio[s]
			own = own || b.group == group
		}
	}
	if own {
		m.tally[group]++
	}
	for _, b := range m.slots {
		if b.group < 0 {
			continue
		}
		if fall := m.tally[b.group]; matters(fall) {
			first = first.or(stop{m.share(b.group) / fall, none, b.group, fall})
		}
		m.tally[b.group] = 0
	}
	if group >= 0 && !own && first.step > 1-tiny {
		return 1, none, none
	}
	return max(0, first.step), first.out, first.key
}

// stop is where something ends the growth of the entering variable: a slot, or the key
// of a group, that falls by so much for each unit.
type stop struct {
	step     float64
	out, key int
	fall     float64
}

// or is the one of two stops that comes first; of two at the same place the one at which
// a pivot is the more exact.
func (s stop) or(other stop) stop {
	if other.step < s.step-tiny || other.step <= s.step+tiny && other.fall > s.fall {
		return other
	}
	return s
}

// share is that of the key in its group.
func (m *master) share(group int) float64 {
	share := 1.0
	for s, b := range m.slots {
		if b.group == group {
			share -= m.amount[s]
		}
	}
	return max(0, share)
}

// swapKey makes the largest basic offer of a group its key, and the old key basic.
func (m *master) swapKey(group int) int {
	share, to := m.share(group), -1
	for s, b := range m.slots {
		if b.group == group && (to < 0 || m.amount[s] > m.amount[to]) {
			to = s
		}
	}
	for s, b := range m.slots {
		if b.group == group && s != to {
			for r, x := range m.inverse[s] {
				m.inverse[to][r] += x
			}
		}
	}
	for r := range m.inverse[to] {
		m.inverse[to][r] = -m.inverse[to][r]
	}
	m.key[group], m.slots[to].at = m.slots[to].at, m.key[group]
	m.amount[to] = share
	return to
}

// pivot makes the entering variable, whose direction is known, the basic one of a slot.
func (m *master) pivot(out int) {
	m.pivots++
	row := m.inverse[out]
	for r := range row {
		row[r] /= m.ratio[out]
	}
	for s, other := range m.inverse {
		if a := m.ratio[s]; s != out && a != 0 {
			for r, x := range row {
				other[r] -= a * x
			}
		}
	}
}

// refresh inverts the basis anew, so that rounding errors do not add up.
func (m *master) refresh() {
	n := len(m.limits)
	m.pivots = 0
	basis := make([][]float64, n)
	for r := range basis {
		basis[r] = make([]float64, 2*n)
		basis[r][n+r] = 1
	}
	for s, b := range m.slots {
		if b.group < 0 {
			basis[b.at][s] = 1
			continue
		}
		for _, u := range m.pools[b.group][b.at].uses {
			basis[u.Row][s] += u.Amount
		}
		for _, u := range m.pools[b.group][m.key[b.group]].uses {
			basis[u.Row][s] -= u.Amount
		}
	}
	if !invert(basis, n) {
		return
	}
	for s := range m.inverse {
		copy(m.inverse[s], basis[s][n:])
	}
	m.settle()
}

// invert turns the left half of the matrix into the identity, and so the right half
// into its inverse; it is false when there is none.
func invert(matrix [][]float64, n int) bool {
	for c := range n {
		best := c
		for r := c + 1; r < n; r++ {
			if math.Abs(matrix[r][c]) > math.Abs(matrix[best][c]) {
				best = r
			}
		}
		if math.Abs(matrix[best][c]) < 1e-11 {
			return false
		}
		matrix[c], matrix[best] = matrix[best], matrix[c]
		scale := matrix[c][c]
		for k := range matrix[c] {
			matrix[c][k] /= scale
		}
		for r := range n {
			factor := matrix[r][c]
			if r == c || factor == 0 {
				continue
			}
			for k, x := range matrix[c] {
				if x != 0 {
					matrix[r][k] -= factor * x
				}
			}
		}
	}
	return true
}

// bound is the Lagrangian bound over the offers at the present prices.
func (m *master) bound() float64 {
	sum := 0.0
	for r, limit := range m.limits {
		sum -= max(0, m.prices[r]) * limit
	}
	for i := range m.pools {
		_, gain := m.best(i)
		sum += m.priced(i, m.key[i]) - gain
	}
	return sum
}

// value is that of the present mix.
func (m *master) value() float64 {
	sum := 0.0
	for i, at := range m.key {
		sum += m.cost(i, at)
	}
	for s, b := range m.slots {
		if b.group >= 0 {
			sum += m.amount[s] * (m.cost(b.group, b.at) - m.cost(b.group, m.key[b.group]))
		}
	}
	return sum
}

// each calls do with every offer that has a part, of groups with more than one basic
// offer, and its share.
func (m *master) each(do func(group, at int, share float64)) {
	for _, b := range m.slots {
		if b.group >= 0 {
			m.tally[b.group] = 1
		}
	}
	for s, b := range m.slots {
		if b.group >= 0 {
			do(b.group, b.at, m.amount[s])
			if m.tally[b.group] > 0 {
				m.tally[b.group] = 0
				do(b.group, m.key[b.group], m.share(b.group))
			}
		}
	}
}

// rounded is of each group the offer with the largest share.
func (m *master) rounded() []int {
	pick := append([]int(nil), m.key...)
	for _, b := range m.slots {
		if b.group >= 0 {
			m.tally[b.group] = m.share(b.group)
		}
	}
	for s, b := range m.slots {
		if b.group >= 0 && m.amount[s] > m.tally[b.group] {
			pick[b.group], m.tally[b.group] = b.at, m.amount[s]
		}
	}
	for _, b := range m.slots {
		if b.group >= 0 {
			m.tally[b.group] = 0
		}
	}
	return pick
}

// stuck reports whether a barred offer has a part.
func (m *master) stuck() bool {
	for i, at := range m.key {
		if m.pools[i][at].barred && matters(m.share(i)) {
			return true
		}
	}
	for s, b := range m.slots {
		if b.group >= 0 && m.pools[b.group][b.at].barred && matters(m.amount[s]) {
			return true
		}
	}
	return false
}

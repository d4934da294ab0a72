package allocation

import (
	"cmp"
	"math"
	"slices"
)

// market are buyers that compete for the same rows, directly or through others. Two
// markets have nothing to do with each other.
type market struct {
	// buyers are in order of priority.
	buyers []*buyer
	// left is the room of each row.
	left []float64
	// takers are by row the variants that may take room there.
	takers [][]taker
	// levels is the number of priorities, and level the one that is decided now. More
	// important ones may not lose by it; less important ones wait. After the last one comes
	// the cost.
	levels, level int
	// unit is what all demand is worth: costs are counted in it.
	unit  float64
	draws draws
	// made and met are what the present step has changed, and whom, each once.
	made []made
	step int
	met  []met
	lost []float64
}

// taker is a variant that takes an amount of a row with each replica that is started.
type taker struct {
	*holding
	level  int
	amount float64
}

// made is a variant whose number a step has changed, and the number before.
type made struct {
	*holding
	before int
}

// met is a buyer whom a step has changed, and what it was before.
type met struct {
	*buyer
	unserved, cost, above float64
}

// markets splits the buyers by the rows that they compete for. Rows that hold all that
// could be bought are nobody's concern.
func markets(buyers []*buyer, limits []float64) []*market {
	most := make([]float64, len(limits))
	for _, b := range buyers {
		for _, h := range b.order {
			take(most, h.uses, -float64(h.taking(h.high)-h.taking(h.low)))
		}
	}
	owner := make([]int, len(limits))
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
	firsts := make([]int, len(buyers))
	for i, b := range buyers {
		firsts[i] = -1
		for _, h := range b.order {
			h.uses = slices.DeleteFunc(h.uses, func(u Use) bool { return most[u.Row] <= limits[u.Row] })
			for _, u := range h.uses {
				if firsts[i] < 0 {
					firsts[i] = u.Row
				}
				owner[find(u.Row)] = find(firsts[i])
			}
		}
	}
	// No two markets have a row in common.
	left, takers := slices.Clone(limits), make([][]taker, len(limits))
	var all []*market
	byRow := map[int]*market{}
	for i, b := range buyers {
		row := -1
		if firsts[i] >= 0 {
			row = find(firsts[i])
		}
		m := byRow[row]
		if m == nil || row < 0 {
			m = &market{step: 1, left: left, takers: takers}
			byRow[row] = m
			all = append(all, m)
		}
		m.join(b)
	}
	return all
}

func (m *market) join(b *buyer) {
	if n := len(m.buyers); n == 0 || m.buyers[n-1].priority != b.priority {
		m.levels++
		m.lost = append(m.lost, 0)
	}
	b.level = m.levels - 1
	m.buyers = append(m.buyers, b)
	m.unit = min(m.unit+b.worth*b.rest, largest)
	for _, h := range b.order {
		for _, u := range h.uses {
			m.takers[u.Row] = append(m.takers[u.Row], taker{h, b.level, u.Amount})
		}
	}
}

// solve decides what the buyers get: how much is served of one priority after the other,
// and then at what cost.
func (m *market) solve() {
	m.unit = cmp.Or(m.unit, 1)
	for _, b := range m.buyers {
		b.ideal = b.cheapest()
		for _, h := range b.order {
			h.fuss = fine * m.unit
		}
	}
	if m.takeIdeals(m.buyers) {
		return
	}
	steps, known := stepsFor(len(m.buyers)), 0
	left := 3 * steps
	for block := range blocks(m.buyers) {
		known += len(block)
		m.serve(block)
		if m.unserved(block) > 0 {
			// The more buyers there are, the more of them may be in the way of another one.
			part := float64(known) / float64(len(m.buyers))
			spent := int(1.5 * part * part * float64(steps))
			m.improve(m.buyers[:known], spent, demandHeat*m.unserved(block))
			left -= spent
		}
		m.level++
	}
	m.improve(m.buyers, max(left, steps/2), costHeat)
}

// serve lets the buyers of one priority have what is left, for a start: what they would buy
// if they were alone, or the first bands of all before the second ones.
func (m *market) serve(block []*buyer) {
	unit := 0.0
	for _, b := range block {
		unit += b.rest * b.worth
	}
	for _, b := range block {
		b.setPrices(cmp.Or(unit, 1))
	}
	if m.takeIdeals(block) {
		return
	}
	for k := range bands {
		for _, b := range block {
			m.fill(b, b.rest*float64(k+1)/bands, 0, false)
		}
	}
	m.keep()
}

func (m *market) unserved(block []*buyer) float64 {
	sum := 0.0
	for _, b := range block {
		sum += b.unserved()
	}
	return sum
}

// takeIdeals gives each of the buyers what it would buy if it were alone, if that fits.
func (m *market) takeIdeals(buyers []*buyer) bool {
	for _, b := range buyers {
		for i, h := range b.variants {
			m.set(h, b.ideal[i])
		}
	}
	for _, c := range m.made {
		if slices.ContainsFunc(c.uses, func(u Use) bool { return m.left[u.Row] < 0 }) {
			m.undo()
			return false
		}
	}
	m.keep()
	return true
}

// set gives a buyer so many replicas of a variant.
func (m *market) set(h *holding, count int) {
	if count == h.count {
		return
	}
	b := h.buyer
	if b.step != m.step {
		b.step = m.step
		m.met = append(m.met, met{b, b.unserved(), b.cost, b.above})
	}
	m.made = append(m.made, made{h, h.count})
	m.put(h, count)
}

func (m *market) put(h *holding, count int) {
	h.buyer.above += h.serves * float64(count-h.count)
	h.buyer.cost += h.price(count) - h.price(h.count)
	if more := h.taking(count) - h.taking(h.count); more != 0 {
		take(m.left, h.uses, float64(more))
	}
	h.count = count
}

func (m *market) undo() {
	for _, c := range slices.Backward(m.made) {
		m.put(c.holding, c.before)
	}
	m.keep()
}

func (m *market) keep() {
	m.made, m.met = m.made[:0], m.met[:0]
	m.step++
}

// loss is by how much the step makes things worse: what the present level loses, or gains,
// and endless where more important ones lose or gain.
func (m *market) loss() float64 {
	clear(m.lost)
	cost := 0.0
	for _, w := range m.met {
		m.lost[w.level] += w.buyer.unserved() - w.unserved
		cost += (w.buyer.cost - w.cost) / m.unit
	}
	for _, lost := range m.lost[:m.level] {
		if math.Abs(lost) > fine {
			return math.Copysign(math.Inf(1), lost)
		}
	}
	if m.level == m.levels {
		return cost
	}
	return m.lost[m.level] + costHint*cost
}

// take takes the room of n replicas.
func take(left []float64, uses []Use, n float64) {
	for _, u := range uses {
		left[u.Row] -= n * u.Amount
	}
}

// roundoff is what may be used beyond a limit: sums of what is used are rounded.
func roundoff(limit float64) float64 { return fine * max(limit, 1) }

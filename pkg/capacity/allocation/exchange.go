package allocation

import (
	"math"
	"slices"
)

const (
	// demandHeat is how much of what is unserved a step may lose at first, and costHeat how
	// much of the cost.
	demandHeat, costHeat = 0.03, 0.0001
	// cold is what is left of the heat at the end of a round, and rounds is how often the
	// search is heated up.
	cold, rounds = 1e-3, 2
	// costHint is the weight of costs while demand is what matters: it decides only between
	// choices that serve the same.
	costHint = 1e-6
	// mostMet is how many buyers a step may change before more important ones are let down.
	mostMet = 8
	// mostAsked is how many holdings of a row a step asks for what it needs. In a large cluster
	// nearly all of them may have nothing to give.
	mostAsked = 200
)

// stepsFor is how many steps are worth while for so many buyers. A step takes about half a
// microsecond where they have some four variants each, and longer where they have more.
func stepsFor(buyers int) int {
	const each, most, many, eachMore = 2000, 24_000, 60, 35
	return min(each*buyers, most) + eachMore*max(0, buyers-many)
}

// improve goes from one choice of the buyers to another that is not much worse. How much
// worse falls to nothing within a round (simulated annealing), and the next round starts
// from where the last one ended. The best choice is what stays.
func (m *market) improve(buyers []*buyer, steps int, heat float64) {
	buyers = slices.DeleteFunc(slices.Clone(buyers), func(b *buyer) bool { return len(b.order) == 0 })
	if len(buyers) == 0 {
		return
	}
	now, best, saved := 0.0, 0.0, m.save(nil)
	each := max(1, steps/rounds)
	cooling, warmth := math.Pow(cold, 1/float64(each)), 0.0
	for i := range steps {
		if warmth *= cooling; i%each == 0 {
			warmth = heat
		}
		if !m.move(buyers) {
			m.undo()
			continue
		}
		loss := m.loss()
		if loss > 0 && loss > warmth*m.draws.excess() {
			m.undo()
			continue
		}
		m.keep()
		if now += loss; math.IsInf(loss, -1) {
			// More important ones gained by it.
			now, best = 0, 1
		}
		if now < best-fine*costHint {
			best, saved = now, m.save(saved)
		}
	}
	m.load(saved)
}

// move is one step: it changes a buyer, takes from others what that needs, and lets them
// look for something else. It is false when nothing comes of it.
func (m *market) move(buyers []*buyer) bool {
	b := buyers[m.draws.below(len(buyers))]
	h := b.order[m.draws.below(len(b.order))]
	// Half of the steps change the mix alone; the others may change how much is served.
	rate, same := b.rest, m.draws.below(2) == 0
	if same {
		rate = b.above
	}
	if m.draws.below(2) == 0 {
		if h.count == h.high {
			return false
		}
		m.set(h, h.count+min(m.some(h.enough(b.rest)), h.high-h.count))
		m.trim(b, rate, h)
	} else {
		if h.count == h.low {
			return false
		}
		m.set(h, h.count-m.some(h.count-h.low))
		m.fill(b, rate, m.draws.below(len(b.order)), same || b.level < m.level)
	}
	if !m.clear(b) {
		return false
	}
	for i := 1; i < len(m.met); i++ {
		if !m.compensate(m.met[i].buyer, m.met[i].above) {
			return false
		}
	}
	m.invite(h)
	return true
}

// some is a number from 1 to most, 1 in half of the cases.
func (m *market) some(most int) int {
	if most <= 1 || m.draws.below(2) == 0 {
		return 1
	}
	return 1 + m.draws.below(most)
}

// fill lets a buyer have replicas up to a rate, of one variant after the other from the
// first on: as many as there is room for, or, with force, whatever others have there.
func (m *market) fill(b *buyer, rate float64, first int, force bool) {
	for i := range b.order {
		missing := rate - b.above
		if missing <= b.slack {
			break
		}
		h := b.order[(first+i)%len(b.order)]
		n := min(h.enough(missing), h.high-h.count)
		if !force {
			n = min(n, h.fits(m.left)+max(0, h.now-h.count))
		}
		m.set(h, h.count+n)
	}
	m.trim(b, rate, nil)
}

// trim lets a buyer give back what it does not need for a rate, what costs the most first.
func (m *market) trim(b *buyer, rate float64, but *holding) {
	for _, h := range slices.Backward(b.order) {
		if spare := b.above - rate + b.slack; h != but && spare >= h.serves {
			m.set(h, max(h.low, h.count-whole(spare/h.serves)))
		}
	}
}

// clear takes from others what is missing where the buyer is, first from those whose
// priority is decided now; it is false when that does not suffice.
func (m *market) clear(b *buyer) bool {
	for _, h := range b.order {
		for _, u := range h.uses {
			if m.left[u.Row] < 0 && !m.clearRow(u.Row, b, m.level) && !m.clearRow(u.Row, b, 0) {
				return false
			}
		}
	}
	return true
}

// clearRow takes from all but one buyer, of a level or a less important one.
func (m *market) clearRow(row int, but *buyer, level int) bool {
	if level == m.levels {
		return false
	}
	there := m.takers[row]
	at := m.draws.below(len(there))
	for range min(len(there), mostAsked) {
		if at++; at >= len(there) {
			at = 0
		}
		t := &there[at]
		if t.level < level || t.count <= t.stays || t.buyer == but {
			continue
		}
		m.set(t.holding, max(t.stays, t.count-whole(math.Ceil(-m.left[row]/t.amount))))
		if m.left[row] >= 0 {
			return true
		}
	}
	return false
}

// compensate lets a buyer from whom something was taken have what there is room for. More
// important ones get as much as before in any case, and others have to make room; it is
// false when that cannot be.
func (m *market) compensate(b *buyer, before float64) bool {
	m.fill(b, b.rest, m.draws.below(len(b.order)), false)
	before = min(before, b.rest) - b.slack
	if b.level == m.level || b.above >= before {
		return true
	}
	if len(m.met) > mostMet {
		return false
	}
	m.fill(b, before, m.draws.below(len(b.order)), true)
	return b.above >= before && m.clear(b)
}

// invite lets somebody have what a buyer gave back.
func (m *market) invite(h *holding) {
	if len(h.uses) == 0 {
		return
	}
	there := m.takers[h.uses[m.draws.below(len(h.uses))].Row]
	o := there[m.draws.below(len(there))].buyer
	if p := there[m.draws.below(len(there))].buyer; p.level == m.level && (o.level != p.level || p.unserved() > o.unserved()) {
		o = p
	}
	if o.level <= m.level {
		m.fill(o, o.rest, m.draws.below(len(o.order)), false)
	}
}

// save notes what the buyers have.
func (m *market) save(to []int) []int {
	to = to[:0]
	for _, b := range m.buyers {
		for _, h := range b.order {
			to = append(to, h.count)
		}
	}
	return to
}

func (m *market) load(from []int) {
	at := 0
	for _, b := range m.buyers {
		for _, h := range b.order {
			m.put(h, from[at])
			at++
		}
	}
}

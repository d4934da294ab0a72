package allocation

import (
	"cmp"
	"slices"
)

// walk goes from one pick to another that is not much worse. A step gives one group
// another one of the choices that it knows, takes groups that are in the way out, and
// lets each of them take the first choice that then fits: ruin and recreate (Schrimpf
// et al. 2000). How much worse a step may be falls to nothing on the way (simulated
// annealing). It finds what branching does not in good time: exchanges across several
// groups and rows that lead through picks which are no better. A step takes about a
// microsecond, because what each group may take is known before.
type walk struct {
	*question
	draws draws
	// lists are the choices that each group knows, the best ones at the prices of the
	// linear program first.
	lists [][]known
	// now is what each group has, nothing while it is out, and left the room beside
	// all of them.
	now  []*known
	left []float64
	// least is the value of the best choice of each group.
	least []float64
	total float64
	// heat is how much worse a step may be in the mean.
	heat float64
	// out are the groups that the present step takes out, the one that it starts from
	// first, and old what they had.
	out []int
	old []*known
}

// known is an offer that a group knows.
type known struct {
	offer
	// priced is its value with what it uses.
	priced float64
}

const (
	// mostOut bounds how many groups a step changes.
	mostOut = 6
	// mostKnown is how many of its best choices a group knows beside those that the
	// linear program came upon.
	mostKnown = 30
	// warmth is the heat at the start, as a part of what there is to gain at most, and
	// cold the part of the way, the last one, without any.
	warmth, cold = 0.1, 0.1
	// listShare is the part of the walk that may go into making the lists.
	listShare = 0.5
	// settled is how near to the best of its choices a group has nothing more to look
	// for: costs count less while demand is what matters.
	settled = 1e-5
	// rounding is how much the sums of a step may be wrong.
	rounding = 1e-13
	// stepWork and takeWork are what a step and each group in it cost, in elements.
	stepWork, takeWork = 20, 10
)

// walk improves the best pick within the budget.
func (q *question) walk(prices []float64) {
	if q.content() || !q.hasBudget() {
		return
	}
	w := q.startWalk(prices)
	began := q.spent()
	best, value := slices.Clone(w.now), q.value
	for !q.content() && q.hasBudget() {
		ahead := float64(q.budget-q.spent()) / float64(q.budget-began)
		w.heat = warmth * (q.value - q.bound) * max(0, ahead-cold)
		if w.step(); w.total < q.value-rounding {
			q.value = w.total
			copy(best, w.now)
		}
	}
	if q.value == value {
		return
	}
	for i, k := range best {
		pool := q.master.pools[i]
		at := slices.IndexFunc(pool, func(o offer) bool { return slices.Equal(o.from.counts, k.from.counts) })
		if at < 0 {
			at = len(pool)
			q.master.pools[i] = append(pool, k.offer)
		}
		q.best[i] = at
	}
	q.value = q.sum(q.best)
}

func (q *question) startWalk(prices []float64) *walk {
	w := &walk{question: q, left: slices.Clone(q.master.limits), total: q.value}
	for r := range w.left {
		w.left[r] += roundoff(w.left[r])
	}
	most := int(listShare * float64(q.budget-q.spent()) / float64(len(q.groups)))
	for i := range q.groups {
		w.lists = append(w.lists, w.list(i, prices, most))
		from := q.master.pools[i][q.best[i]].from
		at := slices.IndexFunc(w.lists[i], func(k known) bool { return k.from == from })
		w.now = append(w.now, nil)
		w.least = append(w.least, slices.MinFunc(w.lists[i], func(a, b known) int { return cmp.Compare(a.value, b.value) }).value)
		w.put(i, &w.lists[i][at])
	}
	return w
}

// list are the choices of a group that are worth trying at the prices.
func (w *walk) list(i int, prices []float64, most int) []known {
	g, f := w.groups[i], w.aside(i)
	offers := slices.Clone(w.master.pools[i])
	g.countUnserved(prices)
	f.price(w.weight/g.costUnit, prices)
	for _, a := range f.several(mostKnown, w.value-w.bound, most) {
		if !slices.ContainsFunc(offers, func(o offer) bool { return slices.Equal(o.from.counts, a.counts) }) {
			choice := g.column(a.counts)
			offers = append(offers, w.offer(g, &choice))
		}
	}
	w.master.work += f.work + 10*len(offers)
	list := make([]known, 0, len(offers))
	for _, o := range offers {
		o.barred = false
		k := known{offer: o, priced: o.value}
		for _, u := range o.uses {
			k.priced += prices[u.Row] * u.Amount
		}
		list = append(list, k)
	}
	slices.SortStableFunc(list, func(a, b known) int { return cmp.Compare(a.priced, b.priced) })
	return list
}

// step goes to another pick, or stays.
func (w *walk) step() {
	w.master.work += stepWork
	i := w.draws.below(len(w.now))
	x := w.draws.part()
	to := &w.lists[i][int(x*x*float64(len(w.lists[i])))]
	if to == w.now[i] {
		return
	}
	w.out, w.old = w.out[:0], w.old[:0]
	w.takeOut(i)
	w.put(i, to)
	if w.makeRoom(to) && w.placeRest() {
		change := 0.0
		for k, i := range w.out {
			change += w.now[i].value - w.old[k].value
		}
		if change <= w.heat*w.draws.excess() {
			w.total += change
			return
		}
	}
	for k, i := range w.out {
		if w.now[i] != nil {
			add(w.left, w.now[i].uses, 1)
		}
		w.put(i, w.old[k])
	}
}

func (w *walk) takeOut(i int) {
	w.out, w.old = append(w.out, i), append(w.old, w.now[i])
	add(w.left, w.now[i].uses, 1)
	w.now[i] = nil
	w.master.work += takeWork
}

func (w *walk) put(i int, to *known) {
	w.now[i] = to
	add(w.left, to.uses, -1)
}

// makeRoom takes groups out until a choice fits.
func (w *walk) makeRoom(to *known) bool {
	for _, u := range to.uses {
		for w.left[u.Row] < 0 {
			i := w.holder(u.Row)
			if i < 0 || len(w.out) == mostOut {
				return false
			}
			w.takeOut(i)
		}
	}
	return true
}

// holder draws a group that has some of a row and may be taken out, or is -1.
func (w *walk) holder(row int) int {
	i := w.draws.below(len(w.now))
	for k := range w.now {
		if i++; i == len(w.now) {
			i = 0
		}
		if w.now[i] == nil || i == w.out[0] {
			continue
		}
		for _, u := range w.now[i].uses {
			if u.Row == row {
				w.master.work += k
				return i
			}
		}
	}
	return -1
}

// placeRest lets each group that was taken out take the first choice that fits, and
// then, when all have one, the best that does.
func (w *walk) placeRest() bool {
	for _, i := range w.out[1:] {
		list := w.lists[i]
		at := 0
		for at < len(list) && !w.fits(list[at].uses) {
			at++
		}
		if w.master.work += at; at == len(list) {
			return false
		}
		w.put(i, &list[at])
	}
	for _, i := range w.out[1:] {
		w.improve(i)
	}
	return true
}

// improve changes a group to the best choice that fits.
func (w *walk) improve(i int) {
	now := w.now[i]
	if now.value-w.least[i] < settled {
		return
	}
	add(w.left, now.uses, 1)
	list := w.lists[i]
	for at := range list {
		if k := &list[at]; k.value < now.value && w.fits(k.uses) {
			now = k
		}
	}
	w.put(i, now)
	w.master.work += len(list) / 4
}

func (w *walk) fits(uses []Use) bool {
	for _, u := range uses {
		if u.Amount > w.left[u.Row] {
			return false
		}
	}
	return true
}

package allocation

import (
	"math"
	"slices"
)

// walk goes from one pick to another that is not much worse. A step frees a few groups
// and lets each in turn take the best that then fits, at prices somewhat off those of
// the linear program: ruin and recreate (Schrimpf et al. 2000). How much worse a step
// may be falls to nothing on the way (simulated annealing). It finds what branching
// does not in good time: exchanges across several groups and rows that lead through
// picks which are no better.
type walk struct {
	*question
	draws draws
	// finders are its own: those of the question keep to a branch.
	finders []*finder
	// now is what each group has, least the value of its best known offer, and left
	// the room beside all of them.
	now   []offer
	least []float64
	left  []float64
	total float64
	// prices are those of the present step, none those of free rows, and heat how much
	// worse a step may be in the mean.
	prices, none []float64
	heat         float64
}

const (
	// fewestFree and mostFree bound how many groups a step frees.
	fewestFree, mostFree = 2, 5
	// warmth is the heat at the start, as a part of what there is to gain at most, and
	// cold the part of the way, the last one, without any.
	warmth, cold = 0.05, 0.1
	// settled is how near to its best offer a group has nothing more to look for.
	settled = 1e-5
	// stepWork is what a choice costs beside its search, in elements.
	stepWork = 100
)

// walk improves the best pick within the budget.
func (q *question) walk(prices []float64) {
	if q.content() || q.spent() >= q.budget {
		return
	}
	w := q.startWalk(prices)
	began := q.spent()
	best := slices.Clone(w.now)
	for !q.content() && q.spent() < q.budget {
		ahead := float64(q.budget-q.spent()) / float64(q.budget-began)
		w.heat = warmth * (q.value - q.bound) * math.Max(0, ahead-cold)
		for r, p := range prices {
			w.prices[r] = p * (0.5 + w.draws.part())
		}
		if w.step(); w.total < q.value-tiny*near {
			q.value = w.total
			copy(best, w.now)
		}
	}
	for i, o := range best {
		pool := q.master.pools[i]
		at := slices.IndexFunc(pool, func(p offer) bool { return slices.Equal(p.from.counts, o.from.counts) })
		if at < 0 {
			at = len(pool)
			q.master.pools[i] = append(pool, o)
		}
		q.best[i] = at
	}
	q.value = q.sum(q.best)
}

func (q *question) startWalk(prices []float64) *walk {
	w := &walk{question: q, left: slices.Clone(q.master.limits), total: q.value,
		prices: make([]float64, len(prices)), none: make([]float64, len(prices))}
	for i, g := range q.groups {
		w.finders = append(w.finders, newFinder(g))
		w.finders[i].quick = true
		pool := q.master.pools[i]
		now := pool[q.best[i]]
		now.barred = false
		least := now.value
		for j := range pool {
			least = math.Min(least, pool[j].value)
		}
		w.now, w.least = append(w.now, now), append(w.least, least)
		add(w.left, now.uses, -1)
		q.master.work += len(pool)
	}
	return w
}

// step goes to another pick, or stays.
func (w *walk) step() {
	free := w.free(fewestFree + w.draws.below(mostFree-fewestFree+1))
	old := make([]offer, len(free))
	before, after := 0.0, 0.0
	for k, i := range free {
		old[k] = w.now[i]
		before += old[k].value
		add(w.left, old[k].uses, 1)
	}
	served := 0
	for served < len(free) && w.take(free[served], w.prices) {
		served++
	}
	if served == len(free) {
		for _, i := range free {
			w.top(i)
			after += w.now[i].value
		}
		if after-before <= w.heat*w.draws.excess() {
			w.total += after - before
			return
		}
	}
	for k, i := range free {
		if k < served {
			add(w.left, w.now[i].uses, 1)
		}
		w.now[i] = old[k]
		add(w.left, old[k].uses, -1)
	}
}

// top lets a group change to what is best where the room costs nothing.
func (w *walk) top(i int) {
	if w.now[i].value-w.least[i] < settled {
		return
	}
	add(w.left, w.now[i].uses, 1)
	if !w.take(i, w.none) {
		add(w.left, w.now[i].uses, -1)
	}
}

// take gives a group its best choice at some prices within the room that is left.
func (w *walk) take(i int, prices []float64) bool {
	g, f := w.groups[i], w.finders[i]
	f.within(w.left)
	if g.hold >= 0 {
		g.factor = math.Max(0, prices[g.hold]) / g.held
	}
	f.price(w.weight/g.costUnit, prices)
	f.little, f.least = w.little(), math.Inf(-1)
	found := f.run(1, math.Inf(1))
	w.master.work += 2*f.work + stepWork
	f.work = 0
	if len(found) == 0 {
		return false
	}
	choice := g.column(found[0].counts)
	o := w.offer(g, &choice)
	if slices.ContainsFunc(o.uses, func(u Use) bool { return over(u.Amount, w.left[u.Row]) }) {
		return false
	}
	w.now[i] = o
	add(w.left, o.uses, -1)
	return true
}

// free draws groups: one that is likely far from its best offer, and others that hold
// what it, or one of them, could use; in any order.
func (w *walk) free(count int) []int {
	list := []int{w.worst()}
	for range 8 * count {
		if len(list) == count {
			break
		}
		g := w.groups[list[w.draws.below(len(list))]]
		if uses := g.parts[w.draws.below(len(g.parts))].uses; len(uses) > 0 {
			if i := w.holder(uses[w.draws.below(len(uses))].Row, list); i >= 0 {
				list = append(list, i)
			}
		}
	}
	w.draws.shuffle(list)
	w.master.work += 3 * len(w.now)
	return list
}

// worst draws a group, each as likely as it is far from its best offer.
func (w *walk) worst() int {
	sum := 0.0
	for i := range w.now {
		sum += w.now[i].value - w.least[i]
	}
	draw := w.draws.part() * sum
	for i := range w.now {
		if draw -= w.now[i].value - w.least[i]; draw < 0 {
			return i
		}
	}
	return w.draws.below(len(w.now))
}

// holder draws a group that is not in the list and has some of a row, or is -1.
func (w *walk) holder(row int, list []int) int {
	first := w.draws.below(len(w.now))
	for k := range w.now {
		i := (first + k) % len(w.now)
		if !slices.Contains(list, i) && slices.ContainsFunc(w.now[i].uses, func(u Use) bool { return u.Row == row }) {
			return i
		}
	}
	return -1
}

package allocation

import (
	"math"
	"slices"
)

// branchRounds is how often groups are asked for better offers within a branch.
const branchRounds = 3

// backtracks is how often a dive that ends nowhere goes on from its last branch.
const backtracks = 6

// branch is a part of all choices: those in which a number of replicas is within
// bounds, and the numbers of its parents within theirs.
type branch struct {
	parent      *branch
	group, part int
	low, high   int
	// bound is the value of the mix that it was split from.
	bound float64
}

// whole is the branch of all choices.
func whole() *branch { return &branch{group: -1, bound: math.Inf(-1)} }

// fixed is the branch in which some groups keep what they have.
func (q *question) fixed(keeps func(group int) bool) *branch {
	b := whole()
	for i, at := range q.best {
		if keeps(i) {
			for p, n := range q.master.pools[i][at].from.counts {
				b = &branch{parent: b, group: i, part: p, low: n, high: n, bound: b.bound}
			}
		}
	}
	return b
}

// explore looks for whole replicas within a branch: it takes the number of replicas
// that is the least whole in the mix, rounds it to the nearer side and solves again,
// and so on until all are whole. The other sides wait; the one with the best bound is
// next, or the last one where the dive came to nothing. What cannot beat the best pick
// is left.
func (q *question) explore(within *branch) {
	waiting := []*branch{within}
	for back := 0; q.hasBudget(); {
		at := q.next(&waiting, back)
		if at == nil {
			return
		}
		q.enter(at)
		if back++; back > backtracks || q.dive(at, &waiting) {
			back = 0
		}
	}
}

// dive goes from a branch to the nearer of its halves until all is whole, or nothing
// is left to find; it is false when that was for want of room.
func (q *question) dive(at *branch, waiting *[]*branch) (well bool) {
	for q.hasBudget() {
		q.relax(1)
		if q.master.stuck() || q.hopeless(q.master.value()) {
			q.relax(branchRounds)
		}
		near, far := q.split(at)
		if near == nil {
			return !q.master.stuck()
		}
		*waiting = append(*waiting, far)
		q.restrict(near)
		at = near
	}
	return true
}

// next takes the branch with the best bound, or, to go back, the last one.
func (q *question) next(waiting *[]*branch, back int) *branch {
	best := -1
	for i, b := range *waiting {
		if !q.hopeless(b.bound) && (best < 0 || back > 0 || b.bound <= (*waiting)[best].bound) {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	b := (*waiting)[best]
	*waiting = append((*waiting)[:best], (*waiting)[best+1:]...)
	return b
}

// split divides a branch in two, unless there is nothing to be found in it.
func (q *question) split(at *branch) (near, far *branch) {
	m := q.master
	value := m.value()
	if m.stuck() || q.hopeless(value) {
		return nil, nil
	}
	mixes := q.mixes()
	group, part, mean := broken(mixes)
	if group < 0 {
		q.offerPick(q.wholes(mixes, math.Round))
		return nil, nil
	}
	f := q.finders[group]
	down := int(math.Floor(mean))
	below := &branch{parent: at, group: group, part: part, low: f.low[part], high: down, bound: value}
	above := &branch{parent: at, group: group, part: part, low: down + 1, high: f.high[part], bound: value}
	if mean-float64(down) >= 0.5 {
		return above, below
	}
	return below, above
}

// mix are the mean numbers of replicas of a group.
type mix struct {
	group int
	means []float64
}

// mixes are those of the groups that have more than one offer.
func (q *question) mixes() []mix {
	var list []mix
	q.master.each(func(i, at int, share float64) {
		k := slices.IndexFunc(list, func(a mix) bool { return a.group == i })
		if k < 0 {
			k = len(list)
			list = append(list, mix{i, make([]float64, len(q.groups[i].parts))})
		}
		for p, n := range q.master.pools[i][at].from.counts {
			list[k].means[p] += share * float64(n)
		}
	})
	return list
}

// broken is the number of replicas that is the least whole.
func broken(mixes []mix) (group, part int, mean float64) {
	group = -1
	most := 1e-6
	for _, m := range mixes {
		for p, x := range m.means {
			if off := math.Abs(x - math.Round(x)); off > most+tiny {
				group, part, mean, most = m.group, p, x, off
			}
		}
	}
	return group, part, mean
}

// wholes is a pick with the mixes made whole by round.
func (q *question) wholes(mixes []mix, round func(float64) float64) []int {
	m := q.master
	pick := m.rounded()
	for _, x := range mixes {
		counts := make([]int, len(x.means))
		for p, mean := range x.means {
			counts[p] = int(round(mean))
		}
		at := slices.IndexFunc(m.pools[x.group], func(o offer) bool { return slices.Equal(o.from.counts, counts) })
		if at < 0 {
			g := q.groups[x.group]
			choice := g.column(counts)
			if !g.suffices(choice.served) {
				continue
			}
			at = len(m.pools[x.group])
			m.pools[x.group] = append(m.pools[x.group], q.offer(g, &choice))
		}
		pick[x.group] = at
	}
	return pick
}

// enter goes to another branch.
func (q *question) enter(to *branch) {
	for i, f := range q.finders {
		clear(f.low)
		f.least = math.Inf(-1)
		for p := range f.high {
			f.high[p] = q.groups[i].parts[p].limit
		}
		for j := range q.master.pools[i] {
			q.master.pools[i][j].barred = false
		}
		q.master.work += len(q.master.pools[i]) + 4*len(f.high)
	}
	for b := to; b != nil; b = b.parent {
		if b.group < 0 {
			continue
		}
		f := q.finders[b.group]
		f.low[b.part], f.high[b.part] = max(f.low[b.part], b.low), min(f.high[b.part], b.high)
	}
	touched := make([]bool, len(q.groups))
	for b := to; b != nil; b = b.parent {
		if b.group >= 0 && !touched[b.group] {
			touched[b.group] = true
			q.bar(b.group)
		}
	}
}

// restrict goes from a branch to one of its halves.
func (q *question) restrict(to *branch) {
	f := q.finders[to.group]
	f.low[to.part], f.high[to.part] = to.low, to.high
	q.bar(to.group)
}

// bar bars the offers of a group that are not within the branch.
func (q *question) bar(group int) {
	f, pool := q.finders[group], q.master.pools[group]
	q.master.work += 2 * len(pool)
	for j := range pool {
		pool[j].barred = false
		for p, n := range pool[j].from.counts {
			if n < f.low[p] || n > f.high[p] {
				pool[j].barred = true
				break
			}
		}
	}
}

package allocation

import "math"

// workBudget bounds the search of one question.
const workBudget = 400

// branchRounds is how often groups are asked for better offers within a branch.
const branchRounds = 4

// branch looks for whole replicas depth first: it takes the number of replicas that is
// the least whole in the mix, rounds it to the nearer side and solves again, then to
// the other one. What cannot beat the best pick is left.
func (q *question) branch() {
	m := q.master
	q.nodes++
	if q.work--; q.work < 0 {
		return
	}
	if q.nodes > 1 {
		q.relax(branchRounds)
	}
	if m.stuck() || q.hopeless(m.value()) {
		return
	}
	group, part, mean := q.broken()
	if group < 0 {
		q.offerPick(m.rounded())
		return
	}
	f := q.finders[group]
	low, high := f.low[part], f.high[part]
	down := int(math.Floor(mean))
	below := func() { q.restrict(group, part, low, down) }
	above := func() { q.restrict(group, part, down+1, high) }
	first, then := below, above
	if mean-float64(down) >= 0.5 {
		first, then = above, below
	}
	first()
	q.branch()
	then()
	q.branch()
	q.restrict(group, part, low, high)
}

// broken is the number of replicas that is the least whole.
func (q *question) broken() (group, part int, mean float64) {
	group = -1
	means := map[int][]float64{}
	var order []int
	q.master.each(func(i, at int, share float64) {
		if means[i] == nil {
			means[i] = make([]float64, len(q.groups[i].parts))
			order = append(order, i)
		}
		for p, n := range q.master.pools[i][at].from.counts {
			means[i][p] += share * float64(n)
		}
	})
	most := 1e-6
	for _, i := range order {
		for p, x := range means[i] {
			if off := math.Abs(x - math.Round(x)); off > most+tiny {
				group, part, mean, most = i, p, x, off
			}
		}
	}
	return group, part, mean
}

// restrict bounds the number of replicas of a part.
func (q *question) restrict(group, part, low, high int) {
	f := q.finders[group]
	f.low[part], f.high[part] = low, high
	pool := q.master.pools[group]
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

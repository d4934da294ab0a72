package allocation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// unservedQuestion asks for the least unserved demand of the largest cluster as if its
// models were of one priority; nobody has anything yet.
func unservedQuestion(models []Model, rows []float64) *question {
	s := newSharing(models, rows)
	s.grantMinima()
	s.tryCheapest()
	c := slices.MaxFunc(clusters(s.groups, s.limits), func(a, b *cluster) int { return len(a.groups) - len(b.groups) })
	for _, g := range c.groups {
		g.heaviest, g.asked = g.weight, true
		g.setPrices(1)
	}
	q := &question{weight: costHint, most: 1 << 20, budget: 1 << 20}
	limits := q.take(c.groups, c.rows)
	var pools [][]offer
	for _, g := range q.groups {
		pools = append(pools, q.pool(g))
	}
	q.master = newMaster(pools, limits, q.most)
	q.best = make([]int, len(q.groups))
	q.value = q.sum(q.best)
	return q
}

func (q *question) holdsLimits() bool {
	used := make([]float64, len(q.master.limits))
	for i, at := range q.best {
		add(used, q.master.pools[i][at].uses, 1)
	}
	return within(used, q.master.limits)
}

func TestDrawsAreEvenAndInRange(t *testing.T) {
	var d draws
	counts := make([]int, 7)
	excess := 0.0
	const n = 70_000
	for range n {
		counts[d.below(len(counts))]++
		x := d.excess()
		require.GreaterOrEqual(t, x, 0.0)
		excess += x
	}
	for i, c := range counts {
		assert.InDelta(t, n/len(counts), c, 500, "number %d", i)
	}
	assert.InDelta(t, 1, excess/n, 0.02)
}

// The last one fits only when the first moves to the row of the second, and that one
// to the third row: of the changes on the way none is better by itself.
func TestTheWalkExchangesAcrossSeveralModels(t *testing.T) {
	on := func(rows ...int) Model {
		m := Model{Need: 1}
		for _, r := range rows {
			m.Options = append(m.Options, Option{Cost: 1, Serves: 1, Most: -1, Uses: []Use{{r, 1}}})
		}
		return m
	}
	q := unservedQuestion([]Model{on(0, 1), on(1, 2), on(0)}, []float64{1, 1, 1})
	for i, g := range q.groups {
		if len(g.parts) == 2 {
			// The first of its two rows, which leaves none of row 0.
			choice := g.column([]int{1, 0})
			q.best[i] = len(q.master.pools[i])
			q.master.pools[i] = append(q.master.pools[i], q.offer(g, &choice))
		}
	}
	require.True(t, q.holdsLimits())
	q.value = q.sum(q.best)
	require.Greater(t, q.value, 1.0, "one of them has nothing")
	q.walk(make([]float64, len(q.master.limits)))
	assert.Less(t, q.value, 1e-3, "all are served")
	assert.True(t, q.holdsLimits())
}

func TestTheWalkKeepsLimitsAndIsTheSameEachTime(t *testing.T) {
	random := rand.New(rand.NewPCG(41, 42))
	for range 20 {
		models, rows := crowd(random, 40, 0.6)
		prices := make([]float64, 64)
		for r := range prices {
			prices[r] = random.Float64()
		}
		var values []float64
		for range 2 {
			q := unservedQuestion(models, rows)
			before := q.value
			q.walk(prices[:len(q.master.limits)])
			require.True(t, q.holdsLimits())
			require.Less(t, q.value, before, "from nothing there is a better pick")
			require.InDelta(t, q.sum(q.best), q.value, 1e-12*math.Abs(q.value))
			require.Less(t, q.spent(), q.budget+q.budget/100)
			values = append(values, q.value)
		}
		require.Equal(t, values[0], values[1])
	}
}

func TestTheWalkStaysWithoutBudget(t *testing.T) {
	models, rows := crowd(rand.New(rand.NewPCG(43, 44)), 40, 0.6)
	q := unservedQuestion(models, rows)
	best, value := slices.Clone(q.best), q.value
	q.budget = q.spent()
	q.walk(make([]float64, len(q.master.limits)))
	assert.Equal(t, best, q.best)
	assert.Equal(t, value, q.value)
}

// The lists of choices leave something of what is left, however many groups there are and
// whatever was spent before.
func TestTheListsLeaveTheWalkSomeOfItsBudget(t *testing.T) {
	models, rows := crowd(rand.New(rand.NewPCG(43, 44)), 40, 0.6)
	q := unservedQuestion(models, rows)
	const before, left = 100_000, 20_000
	q.master.work, q.budget = before, before+left
	q.startWalk(make([]float64, len(q.master.limits)))
	assert.Less(t, q.spent(), before+left)
}

// What all need is there, with one device to spare on each row, but only a few of the
// many arrangements of replicas of different sizes hold it.
func TestShareServesAllWhereLittleIsToSpare(t *testing.T) {
	random := rand.New(rand.NewPCG(45, 46))
	for range 30 {
		models, rows := packed(random, 30)
		answer := Share(models, rows)
		require.True(t, within(used(models, rows, answer), rows))
		for i, v := range answer {
			require.Zero(t, v.Unserved, "model %d of %+v on %v", i, models, rows)
		}
	}
}

// packed are models with two variants each, and the room that random replicas of them
// take, which is what they need, and one more on each row.
func packed(random *rand.Rand, n int) (models []Model, rows []float64) {
	rows = []float64{1, 1, 1, 1, 1}
	for range n {
		var m Model
		for _, row := range random.Perm(len(rows))[:2] {
			devices, replicas := 1+random.IntN(4), random.IntN(3)
			m.Options = append(m.Options, Option{Cost: capacity.Cost(devices), Serves: capacity.Rate(devices), Most: -1, Uses: []Use{{row, float64(devices)}}})
			m.Need += capacity.Rate(devices * replicas)
			rows[row] += float64(devices * replicas)
		}
		models = append(models, m)
	}
	return models, rows
}

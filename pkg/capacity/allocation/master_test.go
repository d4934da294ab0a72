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

// randomPools are offers of which the first of each group keep the limits together.
func randomPools(random *rand.Rand) ([][]offer, []float64) {
	limits := make([]float64, 1+random.IntN(6))
	for r := range limits {
		limits[r] = float64(random.IntN(4))
	}
	pools := make([][]offer, 1+random.IntN(12))
	for i := range pools {
		pools[i] = []offer{{value: 50}}
		for range random.IntN(6) {
			o := offer{value: float64(random.IntN(60))}
			for r := range limits {
				if random.IntN(2) == 0 {
					o.uses = append(o.uses, Use{Row: r, Amount: float64(random.IntN(5))})
				}
			}
			pools[i] = append(pools[i], o)
		}
	}
	return pools, limits
}

// The value of the mix is the bound at the prices: by duality both are then the best.
func TestTheMasterIsSolvedWithProof(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for range 3000 {
		pools, limits := randomPools(random)
		m := newMaster(pools, limits, math.MaxInt)
		m.most = math.MaxInt
		m.solve(1000)
		require.InDelta(t, m.bound(), m.value(), 1e-6, "%+v %v", pools, limits)
		used := make([]float64, len(limits))
		for i, at := range m.key {
			share := m.share(i)
			require.GreaterOrEqual(t, share, 0.0)
			add(used, pools[i][at].uses, share)
		}
		for s, b := range m.slots {
			if b.group >= 0 {
				require.GreaterOrEqual(t, m.amount[s], 0.0)
				add(used, pools[b.group][b.at].uses, m.amount[s])
			}
		}
		for r, limit := range limits {
			require.LessOrEqual(t, used[r], limit+1e-6)
		}
	}
}

// At any prices the bound is one: at those of the beginning, where no row costs anything,
// every group has its best offer.
func TestTheBoundHoldsBeforeTheMasterIsSolved(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 37))
	for range 300 {
		pools, limits := randomPools(random)
		want := 0.0
		for _, pool := range pools {
			least := math.Inf(1)
			for _, o := range pool {
				least = min(least, o.value)
			}
			want += least
		}
		require.InDelta(t, want, newMaster(pools, limits, math.MaxInt).bound(), 1e-9)
	}
}

func TestARefreshedInverseIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	for range 500 {
		pools, limits := randomPools(random)
		m := newMaster(pools, limits, math.MaxInt)
		m.most = math.MaxInt
		m.solve(1000)
		before := m.value()
		m.refresh()
		m.reprice()
		require.InDelta(t, before, m.value(), 1e-6)
		require.InDelta(t, m.bound(), m.value(), 1e-6)
	}
}

// TestTheFinderAgreesWithBruteForce tries all numbers of the parts.
func TestTheFinderAgreesWithBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(35, 36))
	for range 2000 {
		g := randomGroup(random)
		prices := []float64{30 * random.Float64(), 30 * random.Float64()}
		f := newPriced(g, prices)
		got := math.Inf(1)
		if found := f.run(1, math.Inf(1)); len(found) > 0 {
			got = found[0].value
		}
		want := math.Inf(1)
		everyChoice(g, prices, func(_ column, value float64) { want = math.Min(want, value) })
		if math.IsInf(want, 1) {
			require.True(t, math.IsInf(got, 1))
			continue
		}
		require.InDelta(t, want, got, 1e-9*(1+math.Abs(want)))
	}
}

// everyChoice calls do with all numbers of the parts and what they are worth at a
// weight of 1e-3.
func everyChoice(g *group, prices []float64, do func(c column, value float64)) {
	counts := make([]int, len(g.parts))
	var try func(at int)
	try = func(at int) {
		if at == len(counts) {
			c := g.column(counts)
			value := g.penalty(c.served) + 1e-3*(c.cost+float64(c.changes)*g.perChange())
			for _, u := range c.uses {
				value += prices[u.Row] * u.Amount
			}
			do(c, value)
			return
		}
		for counts[at] = 0; counts[at] <= g.parts[at].limit; counts[at]++ {
			try(at + 1)
		}
		counts[at] = 0
	}
	try(0)
}

// The walk's lists are the best of all choices without a replica that serves nothing
// that counts.
func TestSeveralAreTheBestLeanChoices(t *testing.T) {
	random := rand.New(rand.NewPCG(37, 38))
	const keep = 8
	full := 0
	for range 1000 {
		g := randomGroup(random)
		prices := []float64{3 * random.Float64(), 3 * random.Float64()}
		var want []float64
		everyChoice(g, prices, func(c column, value float64) {
			lean := !math.IsInf(value, 1)
			for p, n := range c.counts {
				lean = lean && (n == 0 || g.penalty(c.served-g.parts[p].serves) > g.penalty(c.served))
			}
			if lean {
				want = append(want, value)
			}
		})
		slices.Sort(want)
		want = want[:min(len(want), keep)]
		found := newPriced(g, prices).several(keep, math.Inf(1), math.MaxInt)
		require.Len(t, found, len(want))
		for i, a := range found {
			require.InDelta(t, want[i], a.value, 1e-9*(1+math.Abs(want[i])))
		}
		if len(want) == keep {
			full++
		}
		gap := random.Float64()
		for _, a := range newPriced(g, prices).several(keep, gap, math.MaxInt) {
			require.LessOrEqual(t, a.value, want[0]+gap, "beyond what is worth trying")
		}
		require.LessOrEqual(t, len(newPriced(g, prices).several(keep, math.Inf(1), 0)), 1, "without work")
	}
	assert.Greater(t, full, 200, "cases with more than enough choices")
}

func newPriced(g *group, prices []float64) *finder {
	f := newFinder(g)
	f.price(1e-3, prices)
	return f
}

// randomGroup asks a question about a model with up to six parts.
func randomGroup(random *rand.Rand) *group {
	m := Model{Need: capacity.Rate(1 + random.IntN(25)), Options: make([]Option, 1+random.IntN(3))}
	for j := range m.Options {
		m.Options[j] = Option{
			Cost: capacity.Cost(1 + random.IntN(9)), Serves: capacity.Rate(1 + random.IntN(6)), Now: random.IntN(3), Most: random.IntN(7),
			Uses: []Use{{random.IntN(2), float64(1 + random.IntN(3))}},
		}
	}
	limits := []float64{20, 20}
	g := newGroup(0, m, limits)
	g.heaviest, g.costUnit = g.weight, 1
	g.begin(limits)
	g.setPrices(1)
	g.factor = float64(random.IntN(3))
	if random.IntN(2) == 0 {
		g.least = g.top * random.Float64()
	}
	return g
}

// What is used is a sum, and the error of a sum grows with what it comes to.
func TestRoundingGrowsWithTheLimit(t *testing.T) {
	for _, limit := range []float64{1, 1e3, 1e12} {
		assert.False(t, over(limit*(1+fine/2), limit), limit)
		assert.True(t, over(limit*(1+2*fine), limit), limit)
	}
	assert.False(t, over(fine/2, 0), "below one it is that of one")
	assert.True(t, over(2*fine, 0))
}

package allocation

import (
	"math"
	"math/rand/v2"
	"testing"

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
		m := newMaster(pools, limits)
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

func TestARefreshedInverseIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(33, 34))
	for range 500 {
		pools, limits := randomPools(random)
		m := newMaster(pools, limits)
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
		f := newFinder(g)
		f.price(1e-3, prices)
		got := math.Inf(1)
		if found := f.run(1, math.Inf(1)); len(found) > 0 {
			got = found[0].value
		}
		want := math.Inf(1)
		counts := make([]int, len(g.parts))
		var try func(at int)
		try = func(at int) {
			if at == len(counts) {
				c := g.column(counts)
				value := g.penalty(c.served) + 1e-3*(c.cost+float64(c.changes)*g.perChange())
				for _, u := range c.uses {
					value += prices[u.Row] * u.Amount
				}
				want = math.Min(want, value)
				return
			}
			for counts[at] = 0; counts[at] <= g.parts[at].limit; counts[at]++ {
				try(at + 1)
			}
			counts[at] = 0
		}
		try(0)
		if math.IsInf(want, 1) {
			require.True(t, math.IsInf(got, 1))
			continue
		}
		require.InDelta(t, want, got, 1e-9*(1+math.Abs(want)))
	}
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

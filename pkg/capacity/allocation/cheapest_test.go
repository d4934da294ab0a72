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

func TestCheapest(t *testing.T) {
	for name, tc := range map[string]struct {
		options  []Option
		need     capacity.Rate
		want     []int
		unserved capacity.Rate
	}{
		"100 units: one at 6 that serves 100, not one at 10 that serves 200": {
			[]Option{{Cost: 10, Serves: 200, Most: -1}, {Cost: 6, Serves: 100, Most: -1}}, 100, []int{0, 1}, 0},
		"nothing is needed":                  {[]Option{{Cost: 1, Serves: 1, Now: 3, Most: -1}}, 0, []int{0}, 0},
		"what exists serves":                 {[]Option{{Cost: 4, Serves: 10, Now: 2, Most: -1, Start: 9}, {Cost: 3, Serves: 10, Most: -1, Start: 9}}, 20, []int{2, 0}, 0},
		"a switch that pays":                 {[]Option{{Cost: 4, Serves: 10, Now: 2, Most: -1}, {Cost: 3, Serves: 10, Most: -1, Start: 0.5}}, 20, []int{0, 2}, 0},
		"only what is new pays for starting": {[]Option{{Cost: 4, Serves: 10, Now: 2, Most: -1, Start: 9}, {Cost: 5, Serves: 10, Most: -1}}, 30, []int{2, 1}, 0},
		"of equal costs the fewer changes":   {[]Option{{Cost: 2, Serves: 10, Now: 0, Most: -1}, {Cost: 2, Serves: 10, Now: 2, Most: -1}}, 20, []int{0, 2}, 0},
		"then the most spare":                {[]Option{{Cost: 2, Serves: 10, Most: -1}, {Cost: 2, Serves: 12, Most: -1}}, 9, []int{0, 1}, 0},
		"the lower bound":                    {[]Option{{Cost: 9, Serves: 10, Least: 1, Most: -1}, {Cost: 1, Serves: 10, Most: -1}}, 20, []int{1, 1}, 0},
		"the upper bound":                    {[]Option{{Cost: 1, Serves: 10, Most: 1}, {Cost: 9, Serves: 10, Most: -1}}, 20, []int{1, 1}, 0},
		"bounds that contradict each other":  {[]Option{{Cost: 1, Serves: 10, Least: 3, Most: 1}}, 5, []int{3}, 0},
		"too little":                         {[]Option{{Cost: 1, Serves: 10, Most: 1}, {Cost: 5, Serves: 1, Most: 2}, {Cost: 1, Serves: 0, Most: 5}}, 20, []int{1, 2, 0}, 8},
		"a need that is not known":           {[]Option{{Cost: 1, Serves: 10, Now: 4, Most: 3}}, capacity.Rate(math.NaN()), []int{3}, 0},
		"a negative need":                    {[]Option{{Cost: 1, Serves: 10, Now: 4, Least: 1, Most: 3}}, -5, []int{1}, 0},
		"a cost that is not known":           {[]Option{{Cost: capacity.Cost(math.NaN()), Serves: 10, Most: -1}, {Cost: 99, Serves: 1, Most: -1}}, 2, []int{0, 2}, 0},
		"of equal costs the fewer replicas":  {[]Option{{Cost: 1, Serves: 1, Most: -1}, {Cost: 2, Serves: 2, Most: -1}}, 2, []int{0, 1}, 0},
		"many of equal worth are told apart by size": {[]Option{
			{Cost: 10, Serves: 10, Most: -1}, {Cost: 10, Serves: 10, Most: -1}, {Cost: 10, Serves: 10, Most: -1}, {Cost: 20, Serves: 20, Most: -1},
		}, 2000, []int{0, 0, 0, 100}, 0},
		"no options": {nil, 2, []int{}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			got := Cheapest(tc.options, tc.need)
			assert.Equal(t, tc.want, got.Replicas)
			assert.InDelta(t, float64(tc.unserved), float64(got.Unserved), 1e-9)
		})
	}
}

// oracle tries every vector and keeps the best by the words of Cheapest.
type oracle struct {
	options []Option
	need    float64
	best    []int
	rank    [4]float64
}

func (o *oracle) try(replicas []int) {
	if i := len(replicas); i < len(o.options) {
		option := o.options[i]
		for n := option.Least; n <= option.Most; n++ {
			o.try(append(replicas, n))
		}
		return
	}
	if rank := o.rankOf(replicas); o.best == nil || slices.Compare(rank[:], o.rank[:]) < 0 {
		o.best, o.rank = slices.Clone(replicas), rank
	}
}

// rankOf is what is unserved, the cost, the changes and less the spare; the test's
// numbers are such that sums are exact.
func (o *oracle) rankOf(replicas []int) [4]float64 {
	cost, served, moved := 0.0, 0.0, 0
	for i, n := range replicas {
		option := o.options[i]
		cost += float64(option.Cost)*float64(n) + float64(option.Start)*float64(max(0, n-option.Now))
		served += float64(option.Serves) * float64(n)
		moved += max(n-option.Now, option.Now-n)
	}
	return [4]float64{math.Max(0, o.need-served), cost, float64(moved), -math.Max(0, served-o.need)}
}

func randomOptions(random *rand.Rand) []Option {
	options := make([]Option, 1+random.IntN(4))
	for i := range options {
		options[i] = Option{
			Cost: capacity.Cost(random.IntN(13)), Serves: capacity.Rate(random.IntN(10)),
			Now: random.IntN(5), Least: max(0, random.IntN(5)-2), Start: capacity.Cost(max(0, random.IntN(8)-3)),
		}
		options[i].Most = options[i].Least + random.IntN(5)
		if i > 0 && random.IntN(4) == 0 {
			// Equal worth, or the very same, for ties.
			factor := 1 + random.IntN(2)
			options[i].Cost, options[i].Serves = options[i-1].Cost*capacity.Cost(factor), options[i-1].Serves*capacity.Rate(factor)
		}
	}
	return options
}

func TestCheapestAgreesWithBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	short, tied := 0, 0
	for range 20_000 {
		options := randomOptions(random)
		need := float64(random.IntN(60))
		o := &oracle{options: options, need: need}
		o.try(nil)
		got, _, complete := cheapest(options, need, stateBudget)
		require.True(t, complete)
		require.Equal(t, o.rank, o.rankOf(got), "%+v need %v\ngot  %v\nwant %v", options, need, got, o.best)
		if o.rank[0] > 0 {
			short++
		}
		if !slices.Equal(got, o.best) {
			tied++
		}
	}
	assert.Greater(t, short, 500)
	assert.Greater(t, tied, 50)
}

func TestCheapestDoesNotDependOnTheOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		options := randomOptions(random)
		need := capacity.Rate(random.IntN(60))
		first := Cheapest(options, need)
		order := random.Perm(len(options))
		shuffled := make([]Option, len(options))
		for i, at := range order {
			shuffled[i] = options[at]
		}
		again := Cheapest(shuffled, need)
		for i, at := range order {
			if n := again.Replicas[i]; n != first.Replicas[at] {
				// Only the very same options may change places.
				twin := slices.IndexFunc(order, func(j int) bool {
					return j != at && options[j].Cost == options[at].Cost && options[j].Serves == options[at].Serves
				})
				require.GreaterOrEqual(t, twin, 0, "%+v need %v: %v, shuffled %v %v", options, need, first, order, again)
			}
		}
	}
}

func TestMoreLoadNeverCostsLess(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		options := randomOptions(random)
		last := -1.0
		for need := capacity.Rate(0); need < 60; need++ {
			v := Cheapest(options, need)
			cost := float64(v.Cost + v.Start)
			if v.Unserved > 0 {
				break
			}
			require.GreaterOrEqual(t, cost, last-1e-9, "%+v need %v", options, need)
			last = cost
		}
	}
}

// realOptions are of the sizes that models have, with costs and rates without a
// common measure.
func realOptions(random *rand.Rand, n int) []Option {
	options := make([]Option, n)
	for i := range options {
		size := float64(int(1) << random.IntN(4))
		options[i] = Option{
			Cost: capacity.Cost(size * (1 + 4*random.Float64())), Serves: capacity.Rate(size * (0.5 + 2*random.Float64())),
			Now: random.IntN(30), Most: -1, Start: capacity.Cost(size * random.Float64()),
		}
		if random.IntN(3) == 0 {
			options[i].Most = random.IntN(100)
		}
	}
	return options
}

func TestTheSearchEndsLongBeforeItsBudget(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 3000 {
		options := realOptions(random, 1+random.IntN(10))
		need := math.Pow(10, 4*random.Float64())
		_, _, complete := cheapest(options, need, stateBudget)
		require.True(t, complete, "%+v need %v", options, need)
	}
	for _, need := range []float64{1e6, 1e9, 1e12} {
		_, _, complete := cheapest(realOptions(random, 10), need, stateBudget)
		require.True(t, complete)
	}
}

func TestNonsenseNeitherPanicsNorLoops(t *testing.T) {
	numbers := []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 0, 1e-300, 5e-324, 1e-9, 1, 7, 1e9, 1e300, math.MaxFloat64}
	counts := []int{math.MinInt, -1, 0, 1, 2, 5, math.MaxInt32, math.MaxInt}
	random := rand.New(rand.NewPCG(9, 10))
	number := func() float64 { return numbers[random.IntN(len(numbers))] }
	count := func() int { return counts[random.IntN(len(counts))] }
	for range 5000 {
		models := make([]Model, 1+random.IntN(3))
		for m := range models {
			models[m] = Model{Priority: count(), Weight: number(), Need: capacity.Rate(number()), Options: make([]Option, random.IntN(4))}
			for i := range models[m].Options {
				models[m].Options[i] = Option{
					Cost: capacity.Cost(number()), Serves: capacity.Rate(number()), Start: capacity.Cost(number()),
					Now: count(), Least: count(), Most: count(), Uses: []Use{{count(), number()}},
				}
			}
			best := Cheapest(models[m].Options, models[m].Need)
			for _, n := range best.Replicas {
				require.GreaterOrEqual(t, n, 0)
			}
			anyWork().Next(models[m].Options, models[m].Need, best)
		}
		require.Len(t, Share(models, []float64{number(), number()}), len(models))
	}
}

// anyWork is more than any search of these tests needs.
func anyWork() *Work {
	w := Work(math.MaxInt)
	return &w
}

func TestNext(t *testing.T) {
	options := []Option{{Cost: 10, Serves: 10, Most: -1}, {Cost: 12, Serves: 10, Most: -1}, {Cost: 5, Serves: 4, Most: -1}}
	best := Cheapest(options, 20)
	require.Equal(t, []int{2, 0, 0}, best.Replicas)
	next, ok := anyWork().Next(options, 20, best)
	require.True(t, ok)
	assert.Equal(t, []int{0, 2, 0}, next.Replicas)
	assert.InDelta(t, 24, float64(next.Cost), 1e-9)

	options[0].Least = 1
	_, ok = anyWork().Next(options, 20, Cheapest(options, 20))
	assert.False(t, ok, "the lower bound holds it")
	only := []Option{{Cost: 1, Serves: 1, Most: -1}, {Cost: 1, Serves: 1, Most: 3}}
	_, ok = anyWork().Next(only, 9, Vector{Replicas: []int{9, 0}})
	assert.False(t, ok, "the others do not serve the need")
}

// Of alternatives that cost the same, or nothing, the one with fewer changes is next,
// whichever is found first.
func TestNextOfEqualCostsChangesLess(t *testing.T) {
	for _, cost := range []capacity.Cost{5, 0} {
		options := []Option{
			{Cost: cost, Serves: 10, Now: 1, Most: 1}, {Cost: cost, Serves: 10, Most: 1}, {Cost: cost, Serves: 10, Most: -1},
		}
		next, ok := anyWork().Next(options, 20, Vector{Replicas: []int{1, 1, 0}})
		require.True(t, ok)
		assert.Equal(t, []int{1, 0, 1}, next.Replicas, "cost %v", cost)
		options[0].Cost += cost * 6e-10
		next, _ = anyWork().Next(options, 20, Vector{Replicas: []int{1, 1, 0}})
		assert.Equal(t, []int{1, 0, 1}, next.Replicas, "cost %v: what rounding makes is no difference", cost)
	}
}

// Where changes are equal too, it is the first that was found.
func TestNextOfEqualAlternativesIsTheFirst(t *testing.T) {
	for _, cost := range []capacity.Cost{5, 0} {
		options := []Option{{Cost: cost, Serves: 10, Most: 1}, {Cost: cost, Serves: 10, Most: 1}, {Cost: cost, Serves: 10, Most: 1}}
		next, ok := anyWork().Next(options, 20, Vector{Replicas: []int{1, 1, 0}})
		require.True(t, ok)
		assert.Equal(t, []int{0, 1, 1}, next.Replicas, "cost %v", cost)
	}
}

func TestNextAtTheEndsOfItsRange(t *testing.T) {
	one := []Option{{Cost: 1, Serves: 1, Most: -1}}
	_, ok := anyWork().Next(one, 1, Vector{Replicas: []int{0, 3}})
	assert.False(t, ok, "replicas of an option that is not there")
	_, ok = anyWork().Next(one, 1e-6, Cheapest(one, 1e-6))
	assert.False(t, ok, "a need that is next to nothing is one")
}

func TestNextIsTheCheapestWithoutOneOfTheMix(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for range 3000 {
		options := randomOptions(random)
		need := float64(random.IntN(40))
		best := Cheapest(options, capacity.Rate(need))
		next, ok := anyWork().Next(options, capacity.Rate(need), best)
		var want *oracle
		for i, n := range best.Replicas {
			if n == 0 || options[i].Least > 0 {
				continue
			}
			without := slices.Clone(options)
			without[i].Most = 0
			o := &oracle{options: without, need: need}
			o.try(nil)
			if o.rank[0] <= float64(best.Unserved) && (want == nil || slices.Compare(o.rank[:], want.rank[:]) < 0) {
				want = o
			}
		}
		require.Equal(t, want != nil, ok, "%+v need %v best %v", options, need, best)
		if ok {
			require.InDelta(t, want.rank[1], float64(next.Cost+next.Start), 1e-9)
			rank := (&oracle{options: options, need: need}).rankOf(next.Replicas)
			require.Equal(t, want.rank[:3], rank[:3], "what is unserved, the cost and the changes of %v: %+v need %v", next.Replicas, options, need)
			require.InDelta(t, rank[0], float64(next.Unserved), 1e-9)
		}
	}
}

// equalWorth is the normal case where nobody states a cost.
func equalWorth(n int) []Option {
	options := make([]Option, n)
	for i := range options {
		options[i] = Option{Cost: capacity.Cost(10 * (1 + i%3)), Serves: capacity.Rate(1 + i%3), Most: -1}
	}
	return options
}

func BenchmarkCheapest(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	for name, of := range map[string]struct {
		options []Option
		need    capacity.Rate
	}{
		"ThreeOptions": {realOptions(random, 3), 40},
		"TenOptions":   {realOptions(random, 10), 1000},
		"AMillion":     {realOptions(random, 10), 1e6},
		"EqualWorth":   {equalWorth(12), 400},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Cheapest(of.options, of.need)
			}
		})
	}
}

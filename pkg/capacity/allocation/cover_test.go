package allocation

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestCover(t *testing.T) {
	for name, tc := range map[string]struct {
		options []Option
		need    capacity.Rate
		want    []int
		short   capacity.Rate
	}{
		"nothing is needed":                     {[]Option{{Cost: 1, Serves: 1, Limit: -1}}, 0, []int{0}, 0},
		"the cheapest per rate first":           {[]Option{{Cost: 10, Serves: 10, Limit: -1}, {Cost: 5, Serves: 10, Limit: -1}}, 25, []int{0, 3}, 0},
		"a small one tops up":                   {[]Option{{Cost: 8, Serves: 10, Limit: -1}, {Cost: 2, Serves: 2, Limit: -1}}, 12, []int{1, 1}, 0},
		"the limit sends the rest on":           {[]Option{{Cost: 5, Serves: 10, Limit: 1}, {Cost: 10, Serves: 10, Limit: -1}}, 25, []int{1, 2}, 0},
		"all limits reached leaves a shortfall": {[]Option{{Cost: 5, Serves: 10, Limit: 1}, {Cost: 10, Serves: 10, Limit: 1}}, 25, []int{1, 1}, 5},
		"what serves nothing is not bought":     {[]Option{{Cost: 0, Serves: 0, Limit: -1}, {Cost: 9, Serves: 1, Limit: -1}}, 1, []int{0, 1}, 0},
		"many of equal worth are told apart by size": {[]Option{
			{Cost: 10, Serves: 10, Limit: -1}, {Cost: 10, Serves: 10, Limit: -1}, {Cost: 10, Serves: 10, Limit: -1}, {Cost: 10, Serves: 10, Limit: -1},
			{Cost: 10, Serves: 10, Limit: -1}, {Cost: 10, Serves: 10, Limit: -1}, {Cost: 20, Serves: 20, Limit: -1}, {Cost: 10, Serves: 10, Limit: -1},
		}, 2000, []int{0, 0, 0, 0, 0, 0, 100, 0}, 0},
		"equal cost takes fewer replicas": {[]Option{{Cost: 1, Serves: 1, Limit: -1}, {Cost: 2, Serves: 2, Limit: -1}}, 2, []int{0, 1}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			buy, short := Cover(tc.options, tc.need)
			assert.Equal(t, tc.want, buy)
			assert.InDelta(t, float64(tc.short), float64(short), 1e-9)
		})
	}
}

func TestCoverAgreesWithBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 5000 {
		options := make([]Option, 1+random.IntN(4))
		for i := range options {
			options[i] = Option{
				Cost:   capacity.Cost(1 + random.IntN(20)),
				Serves: capacity.Rate(random.IntN(10)),
				Limit:  random.IntN(6),
			}
		}
		need := capacity.Rate(1 + random.IntN(30))
		buy, short := Cover(options, need)
		want := bruteForce(options, need)
		if math.IsInf(want, 1) {
			require.Positive(t, short, "%+v need %v", options, need)
			continue
		}
		require.Zero(t, short)
		cost, served := total(options, buy)
		require.GreaterOrEqual(t, served, need, "%+v", options)
		require.InDelta(t, want, float64(cost), 1e-9, "%+v need %v buy %v", options, need, buy)
	}
}

func total(options []Option, buy []int) (cost capacity.Cost, served capacity.Rate) {
	for i, n := range buy {
		cost += options[i].Cost * capacity.Cost(n)
		served += options[i].Serves * capacity.Rate(n)
	}
	return cost, served
}

// bruteForce tries every vector and returns the least cost, or +Inf.
func bruteForce(options []Option, need capacity.Rate) float64 {
	if need <= 0 {
		return 0
	}
	if len(options) == 0 {
		return math.Inf(1)
	}
	best := math.Inf(1)
	for n := 0; n <= options[0].Limit; n++ {
		rest := bruteForce(options[1:], need-options[0].Serves*capacity.Rate(n))
		best = min(best, float64(options[0].Cost)*float64(n)+rest)
	}
	return best
}

func BenchmarkCoverTenOptions(b *testing.B) {
	random := rand.New(rand.NewPCG(5, 6))
	options := make([]Option, 10)
	for i := range options {
		options[i] = Option{Cost: capacity.Cost(1 + 30*random.Float64()), Serves: capacity.Rate(1 + 20*random.Float64()), Limit: -1}
	}
	for b.Loop() {
		Cover(options, 500)
	}
}

// Equal cost per rate is the normal case where nobody states a cost.
func BenchmarkCoverOfEqualWorth(b *testing.B) {
	options := make([]Option, 12)
	for i := range options {
		options[i] = Option{Cost: capacity.Cost(10 * (1 + i%3)), Serves: capacity.Rate(1 + i%3), Limit: -1}
	}
	for b.Loop() {
		Cover(options, 400)
	}
}

package replay

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func node(accelerator capacity.Accelerator, devices int) placement.Node {
	r := placement.Resources{Devices: devices, MilliCPU: 1 << 30, MemoryBytes: 1 << 50, Pods: 110}
	return placement.Node{Accelerator: accelerator, Allocatable: r, Free: r}
}

func asks(accelerator capacity.Accelerator, devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}}
}

// oneModel is a scenario of one model with a variant of one device and, if asked for, a
// second of two; each serves what its name says, at any shape.
func oneModel(prices ...capacity.Cost) *Scenario {
	s := &Scenario{
		Cluster: &placement.Cluster{Nodes: []placement.Node{node("H100", 8)}}, Policy: decision.DefaultPolicy(),
		Models: []Model{{ID: "m", SLO: capacity.SLO{TTFT: 2000, ITL: 50}}},
	}
	for i, price := range prices {
		s.Models[0].Variants = append(s.Models[0].Variants, Variant{
			Name: string(rune('a' + i)), Cost: price, Request: asks("H100", 1+i), Policy: decision.DefaultVariantPolicy(),
			Profile: serving.Profile{Base: capacity.Milliseconds(20 - 8*i), PerRequest: 0.05, PerPrefillToken: 0.05, BatchLimit: 64},
		})
	}
	return s
}

var someShape = capacity.TokenShape{Input: 1000, Output: 100}

// loadOf asks, minute by minute, for what so many replicas of the first variant serve for the
// promised share, and meanLoadOf for what they serve in the mean.
func loadOf(s *Scenario, replicas ...float64) Load {
	return loadIn(s.Serves(0, 0, someShape), replicas)
}

func meanLoadOf(s *Scenario, replicas ...float64) Load {
	return loadIn(s.meanRates(loadOf(s, 1))[0][0][0], replicas)
}

func loadIn(one capacity.Rate, replicas []float64) Load {
	load := Load{nil}
	for _, n := range replicas {
		m := Minute{Length: time.Minute}
		if n > 0 {
			m.Rate, m.Shape = capacity.Rate(n)*one, someShape
		}
		load[0] = append(load[0], m)
	}
	return load
}

// The slow references look at every vector: of whole replicas, and of those in which all but
// one variant have none or all of theirs, among which the best of all parts is.
func wholeAndParts(variants []Variant, most []int, serves []capacity.Rate, rate float64) (whole, parts float64) {
	whole, parts = math.Inf(1), math.Inf(1)
	var try func(v int, price, left float64)
	try = func(v int, price, left float64) {
		if v == len(variants) {
			if left <= rate*fine {
				whole = min(whole, price)
			}
			return
		}
		for n := range most[v] + 1 {
			try(v+1, price+float64(n)*float64(variants[v].Cost), left-float64(n)*float64(serves[v]))
		}
	}
	try(0, 0, rate)
	for chosen := range 1 << len(variants) {
		price, left := 0.0, rate
		for v := range variants {
			if chosen>>v&1 == 1 {
				price += float64(most[v]) * float64(variants[v].Cost)
				left -= float64(most[v]) * float64(serves[v])
			}
		}
		if left <= rate*fine {
			parts = min(parts, price)
		}
		for v := range variants {
			if x := left / float64(serves[v]); chosen>>v&1 == 0 && left > 0 && x <= float64(most[v]) {
				parts = min(parts, price+x*float64(variants[v].Cost))
			}
		}
	}
	return whole, parts
}

func TestTheBoundIsTheLeastPriceOfParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	looser, short := 0, 0
	for range 3000 {
		variants := make([]Variant, 1+random.IntN(3))
		most, serves := make([]int, len(variants)), make([]capacity.Rate, len(variants))
		for v := range variants {
			variants[v].Cost = capacity.Cost(random.IntN(9))
			most[v], serves[v] = random.IntN(6), capacity.Rate(random.IntN(6))
		}
		rate := float64(random.IntN(30)) / 2
		whole, parts := wholeAndParts(variants, most, serves, rate)
		got, all := leastPrice(variants, most, serves, rate)
		require.Equal(t, !math.IsInf(parts, 1), all)
		if !all {
			require.True(t, math.IsInf(whole, 1))
			short++
			continue
		}
		require.InDelta(t, parts, got, 1e-9, "%+v %v %v %v", variants, most, serves, rate)
		require.LessOrEqual(t, got, whole+1e-9)
		if got < whole-1e-9 {
			looser++
		}
	}
	assert.Greater(t, looser, 500)
	assert.Greater(t, short, 200)
}

// Who meets the SLO for every request pays no less, whatever the rule and the world.
func TestNoPolicyThatMissesNothingCostsLess(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	perfect := 0
	for seed := range uint64(12) {
		s := small()
		for v := range s.Models[0].Variants {
			s.Models[0].Variants[v].Cost *= capacity.Cost(0.5 + random.Float64())
		}
		points := []workload.Point{{Rate: 5 + 20*random.Float64()}}
		for at := 3 * time.Minute; at <= 12*time.Minute; at += 3 * time.Minute {
			points = append(points, workload.Point{At: at, Rate: 5 + 40*random.Float64()})
		}
		policies := []string{"hybrid", "hybrid:down=0s", "static:4", "static:6", "peak", "hpa:rps=6", "hpa:rps=7.5", "hpa:rps=9,down=0s", "hpa:inflight=5,down=60s", "keda:rps=7"}
		results, _, err := Run(Options{Scenario: s, Source: short(t, points...), Policies: policies, Startups: []time.Duration{0, 20 * time.Second}, Seed: seed})
		require.NoError(t, err)
		for _, r := range results {
			require.Positive(t, r.CostOverBound)
			if r.Attainment == 1 {
				require.GreaterOrEqual(t, r.CostOverBound, 1.0, "%s with %g s", r.Policy, r.StartupSeconds)
				perfect++
			}
		}
	}
	assert.Greater(t, perfect, 20)
}

func TestBoundByExample(t *testing.T) {
	for name, tc := range map[string]struct {
		load []float64
		// minutes are those of replicas that are paid.
		minutes    float64
		overloaded int
	}{
		"parts of replicas":                  {[]float64{0.2, 1, 1.01, 2.9}, 5.11, 0},
		"nothing for nothing":                {[]float64{0, 0, 1.5, 0}, 1.5, 0},
		"what cannot be served costs it all": {[]float64{1, 9, 1}, 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := oneModel(6)
			b, err := s.Bound(meanLoadOf(s, tc.load...))
			require.NoError(t, err)
			assert.InDelta(t, tc.minutes/10, b.Cost, 1e-9)
			assert.Equal(t, tc.overloaded, b.Overloaded)
			paid := 0.0
			for at := range tc.load {
				assert.InDelta(t, 6*min(8, tc.load[at]), b.CostAt(at, 0), 1e-9)
				paid += b.CostAt(at, 0) / 60
			}
			assert.InDelta(t, b.Cost, paid, 1e-9)
		})
	}
}

func TestWhatIsShort(t *testing.T) {
	s := oneModel(6)
	b, err := s.Bound(loadOf(s, 1, 1, 1, 3))
	require.NoError(t, err)
	assert.True(t, b.Short(3, 0, []int{2}))
	assert.False(t, b.Short(3, 0, []int{3}))
	assert.False(t, b.Short(0, 0, []int{1}))
}

func TestWhatFitsAndWhatMayBe(t *testing.T) {
	s := oneModel(6, 14)
	assert.Greater(t, s.Serves(0, 1, someShape), s.Serves(0, 0, someShape))
	load := loadOf(s, 2.5, 0)
	both := func() (Bound, [][]int) {
		b, err := s.Bound(load)
		require.NoError(t, err)
		return b, s.cheapestAt(load, s.Rates(load), 0)
	}
	three, whole := both()
	assert.Less(t, three.CostAt(0, 0), 2.5*6, "in the mean they serve more")
	assert.Greater(t, three.CostAt(0, 0), 1.9*6)
	assert.Equal(t, [][]int{{3, 0}}, whole)
	assert.Equal(t, [][]int{{1, 0}}, s.cheapestAt(load, s.Rates(load), 1), "at least one, the cheaper one")

	s.Cluster.Nodes[0].Free.Devices = 2
	two, whole := both()
	assert.Equal(t, [][]int{{2, 0}}, whole, "the node has two devices")
	assert.Zero(t, two.Overloaded, "each variant alone has them")
	s.Cluster.Nodes[0].Free.Devices = 1
	one, whole := both()
	assert.Equal(t, [][]int{{1, 0}}, whole)
	assert.Equal(t, 1, one.Overloaded)

	s = oneModel(6, 14)
	s.Models[0].Variants[0].Policy.Max = 1
	one, whole = both()
	assert.LessOrEqual(t, whole[0][0], 1)
	assert.Positive(t, whole[0][1])
	assert.Zero(t, one.Overloaded)
	assert.Greater(t, one.Cost, three.Cost)

	s.Models[0].Variants[0].Policy = decision.DefaultVariantPolicy()
	s.Models[0].Variants[1].Policy.Min = 2
	least, whole := both()
	assert.GreaterOrEqual(t, whole[0][1], 2)
	assert.InDelta(t, three.Cost, least.Cost, 1e-9, "a least number of replicas is no part of what the load costs")
}

func TestBoundNamesWhatItCannotReckonWith(t *testing.T) {
	s := oneModel(6)
	_, err := s.Bound(Load{})
	require.EqualError(t, err, "the load is of 0 models; expected that of all 1 of the scenario")
	_, err = s.Bound(Load{nil})
	require.EqualError(t, err, "the load of model m has 0 minutes; expected as many as that of the others and at least one")
	s.Models[0].Variants[0].Cost = capacity.Cost(math.NaN())
	_, err = s.Bound(loadOf(s, 1))
	require.EqualError(t, err, "model m: variant a: the price is NaN per hour; expected a number of at least 0")
	s = oneModel(6)
	s.Models[0].Variants[0].Policy.Max = 0
	_, err = s.Bound(loadOf(s, 1))
	require.EqualError(t, err, "model m: no variant may have a replica; expected one whose greatest number is not 0 and that fits on a node")
}

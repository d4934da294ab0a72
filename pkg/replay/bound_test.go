package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// reference finds the least costly schedule by trying every vector in every minute, one
// transition at a time, with nothing of the search's own but the rules.
type reference struct{ *course }

// vectors are those that may serve a minute.
func (r reference) vectors(t int) [][]int {
	var all [][]int
	var grow func(x []int)
	grow = func(x []int) {
		if i := len(x); i < len(r.options) {
			for n := r.options[i].least; n <= r.options[i].most; n++ {
				grow(append(slices.Clip(x), n))
			}
			return
		}
		if r.room.holds(x) {
			all = append(all, x)
		}
	}
	grow(nil)
	least := math.Inf(1)
	for _, x := range all {
		least = min(least, r.missing(t, x))
	}
	return slices.DeleteFunc(all, func(x []int) bool { return r.missing(t, x) > least+1e-9 })
}

func (r reference) missing(t int, x []int) float64 {
	sum, i := 0.0, 0
	for m, end := range r.ends {
		serves, count := 0.0, 0
		for ; i < end; i++ {
			serves += r.moments[t].serves[i] * float64(x[i])
			count += x[i]
		}
		if need := r.moments[t].need[m]; need > 0 {
			sum += max(0, 1-serves/need)
		}
		if count == 0 {
			sum++
		}
	}
	return sum
}

func (r reference) least() float64 {
	costs := map[int]float64{}
	var before [][]int
	for t := range r.moments {
		next, now := map[int]float64{}, r.vectors(t)
		for k, x := range now {
			best := math.Inf(1)
			for j, y := range before {
				cost := costs[j]
				for i := range x {
					cost += r.startup * r.options[i].price * float64(max(0, x[i]-y[i]))
				}
				best = min(best, cost)
			}
			if t == 0 {
				best = 0
			}
			for i := range x {
				best += r.moments[t].hours * r.options[i].price * float64(x[i])
			}
			next[k] = best
		}
		before, costs = now, next
	}
	least := math.Inf(1)
	for _, cost := range costs {
		least = min(least, cost)
	}
	return least
}

// randomCourse is a small one on a small cluster.
func randomCourse(random *rand.Rand, models, variants int) *course {
	c := &course{startup: float64(random.IntN(6)) / 60 * random.Float64() * 2}
	cluster := &placement.Cluster{}
	for range 1 + random.IntN(3) {
		cluster.Nodes = append(cluster.Nodes, node("H100", 1+random.IntN(8)))
	}
	var requests []*placement.Request
	for range models {
		for range 1 + random.IntN(variants) {
			request := asks("H100", 1<<random.IntN(3))
			most, err := cluster.Slots(request)
			if err != nil {
				panic(err)
			}
			c.options = append(c.options, option{price: float64(1 + random.IntN(9)), most: min(most, 5)})
			requests = append(requests, request)
		}
		c.ends = append(c.ends, len(c.options))
	}
	c.room = newRoom(cluster, requests)
	for range 2 + random.IntN(7) {
		m := moment{hours: 1.0 / 60}
		for range c.ends {
			m.need = append(m.need, float64(random.IntN(12)))
		}
		for range c.options {
			m.serves = append(m.serves, float64(random.IntN(6)))
		}
		c.moments = append(c.moments, m)
	}
	c.moments[len(c.moments)-1].hours /= 2
	return c
}

func node(accelerator capacity.Accelerator, devices int) placement.Node {
	r := placement.Resources{Devices: devices, MilliCPU: 1 << 30, MemoryBytes: 1 << 50, Pods: 110}
	return placement.Node{Accelerator: accelerator, Allocatable: r, Free: r}
}

func asks(accelerator capacity.Accelerator, devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}}
}

func TestTheScheduleIsTheBestOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tight, short := 0, 0
	for range 600 {
		c := randomCourse(random, 1, 1+random.IntN(2))
		want := reference{c}.least()
		got := c.solve()
		require.True(t, got.optimal)
		require.InDelta(t, want, got.least, 1e-9, "%+v", c)
		require.InDelta(t, want, c.cost(got.replicas), 1e-9)
		for _, x := range got.replicas {
			require.True(t, c.room.holds(x))
		}
		if !c.room.holds(c.everything().high) {
			tight++
		}
		if c.unserved(&c.moments[0], got.replicas[0]) > 0 {
			short++
		}
	}
	assert.Greater(t, tight, 50)
	assert.Greater(t, short, 50)
}

// each calls f for every vector of a span, in the order of their indexes.
func each(of span, f func(index int, x []int)) {
	x := slices.Clone(of.low)
	for index := range of.size() {
		f(index, x)
		for k := len(x) - 1; k >= 0; k-- {
			if x[k]++; x[k] <= of.high[k] {
				break
			}
			x[k] = of.low[k]
		}
	}
}

func TestWhatIsStartedCostsTheLeastOverAllVectorsBefore(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 16))
	for round := range 2000 {
		c := &course{startup: 0.5, options: make([]option, 1+random.IntN(3))}
		spans := make([]span, 2)
		for i := range c.options {
			c.options[i].price = float64(random.IntN(5))
			for k := range spans {
				low := random.IntN(6)
				spans[k].low, spans[k].high = append(spans[k].low, low), append(spans[k].high, low+random.IntN(4))
			}
		}
		if round%3 == 0 {
			spans[1] = spans[0]
		}
		before := make([]float64, spans[0].size())
		for i := range before {
			if before[i] = float64(random.IntN(20)); random.IntN(4) == 0 {
				before[i] = math.Inf(1)
			}
		}
		got := newSearch(c, spans).started(1, before)
		require.Len(t, got, spans[1].size())
		each(spans[1], func(index int, x []int) {
			want := math.Inf(1)
			each(spans[0], func(from int, y []int) {
				cost := before[from]
				for i := range x {
					cost += 0.5 * c.options[i].price * float64(max(0, x[i]-y[i]))
				}
				want = min(want, cost)
			})
			if math.IsInf(want, 1) {
				require.True(t, math.IsInf(got[index], 1))
			} else {
				require.InDelta(t, want, got[index], 1e-9, "%+v %v: %v", spans, before, x)
			}
		})
	}
}

func TestWhatAnotherReplacesIsNotMissed(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	left := 0
	for range 300 {
		c := randomCourse(random, 1, 3)
		c.room.cluster = nil
		for i := range c.options {
			c.options[i].most = 5
		}
		for k := range c.moments {
			for i := range c.moments[k].serves {
				c.moments[k].serves[i] = float64(1 + random.IntN(3) + 2*i)
			}
			c.moments[k].need[0] = float64(random.IntN(6))
		}
		require.InDelta(t, reference{c}.least(), c.plan().least, 1e-9, "%+v", c)
		if len(c.needed()) < len(c.options) {
			left++
		}
	}
	assert.Greater(t, left, 100)
	assert.Less(t, left, 280)
}

func TestModelsThatShareAClusterGetTheBestTogether(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	contested, free := 0, 0
	for range 80 {
		c := randomCourse(random, 2, 1+random.IntN(2))
		want := reference{c}.least()
		got := c.solve()
		require.True(t, got.optimal)
		require.InDelta(t, want, c.cost(got.replicas), 1e-9, "%+v", c)
		own := 0.0
		for m := range c.ends {
			own += c.only(m).plan().least
		}
		if want > own+1e-9 || want < own-1e-9 {
			contested++
		} else {
			free++
		}
	}
	assert.Greater(t, contested, 10)
	assert.Greater(t, free, 10)
}

func TestWhatIsLookedAtOnlyInPartIsBoundedFromBothSides(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	loose := 0
	for range 200 {
		models := 1 + random.IntN(2)
		c := randomCourse(random, models, 2)
		want := reference{c}.least()
		got := c.planNear(float64(random.IntN(300)))
		short := false
		for k, x := range got.replicas {
			require.True(t, c.room.holds(x))
			short = short || c.unserved(&c.moments[k], x) > 0
		}
		if models == 1 || !short {
			require.LessOrEqual(t, got.least, want+1e-9, "%+v", c)
		}
		if !short {
			require.GreaterOrEqual(t, c.cost(got.replicas), want-1e-9, "%+v", c)
		}
		if len(c.options) == 1 && !short {
			require.InDelta(t, want, got.least, 1e-9, "one variant is solved level by level")
		}
		if got.least < want-1e-9 {
			loose++
		}
	}
	assert.Greater(t, loose, 25)
}

func TestContestedModelsAreBoundedFromBothSides(t *testing.T) {
	random := rand.New(rand.NewPCG(13, 14))
	tried, served := 0, 0
	for tried < 100 {
		c := randomCourse(random, 2, 2)
		for k := range c.moments {
			for i := range c.moments[k].serves {
				c.moments[k].serves[i]++
			}
			for m := range c.moments[k].need {
				c.moments[k].need[m] /= 2
			}
		}
		whole := c.apart()
		if !slices.ContainsFunc(whole.replicas, func(x []int) bool { return !c.room.holds(x) }) {
			continue
		}
		tried++
		got, want := c.contested(whole, float64(random.IntN(3000))), reference{c}.least()
		short := false
		for k, x := range got.replicas {
			require.True(t, c.room.holds(x))
			short = short || c.unserved(&c.moments[k], x) > 0
		}
		if !short {
			require.LessOrEqual(t, got.least, want+1e-9)
			require.GreaterOrEqual(t, c.cost(got.replicas), want-1e-9)
			served++
		}
	}
	assert.Greater(t, served, 10)
}

func TestMoreLoadNeverCostsLess(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		c := randomCourse(random, 1, 2)
		c.room.cluster = nil
		for i := range c.options {
			c.options[i].most = 12
		}
		last := 0.0
		for range 4 {
			for k := range c.moments {
				for i := range c.moments[k].serves {
					c.moments[k].serves[i] = max(1, c.moments[k].serves[i])
				}
				c.moments[k].need[0] = min(12, c.moments[k].need[0]+float64(random.IntN(3)))
			}
			got := c.solve()
			require.GreaterOrEqual(t, got.least, last-1e-9)
			last = got.least
		}
	}
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

// loadOf asks, minute by minute, for what so many replicas of a variant serve.
func loadOf(s *Scenario, variant int, replicas ...float64) Load {
	one := s.serves(0, variant, someShape)
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

// counts are the replicas of the first model's variant.
func counts(b Bound, variant int) []int {
	var all []int
	for _, at := range b.Replicas {
		all = append(all, at[0][variant])
	}
	return all
}

func TestBoundByExample(t *testing.T) {
	for name, tc := range map[string]struct {
		startup time.Duration
		load    []float64
		want    []int
		// minutes are those of replicas that are paid.
		minutes    float64
		overloaded int
	}{
		"whole replicas":                                           {0, []float64{0.2, 1, 1.01, 2.9}, []int{1, 1, 2, 3}, 7, 0},
		"at least one":                                             {0, []float64{0, 0, 1.5, 0}, []int{1, 1, 2, 1}, 5, 0},
		"without a start-up nothing is kept":                       {0, []float64{2, 1, 2, 1, 2}, []int{2, 1, 2, 1, 2}, 8, 0},
		"a gap shorter than a start-up is bridged":                 {90 * time.Second, []float64{2, 1, 2, 1, 1, 2}, []int{2, 2, 2, 1, 1, 2}, 10 + 1.5, 0},
		"what is needed before it could start is there at once":    {3 * time.Minute, []float64{1, 1, 2, 1}, []int{2, 2, 2, 1}, 7, 0},
		"what is needed later starts in time":                      {time.Minute, []float64{1, 1, 1, 3}, []int{1, 1, 1, 3}, 6 + 2, 0},
		"levels are kept each for itself":                          {150 * time.Second, []float64{3, 1, 2, 1, 1, 3}, []int{3, 2, 2, 2, 2, 3}, 14 + 2.5, 0},
		"what cannot be served gets what serves most, and no more": {0, []float64{1, 9, 1}, []int{1, 8, 1}, 10, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := oneModel(6)
			b, err := s.Bound(loadOf(s, 0, tc.load...), tc.startup)
			require.NoError(t, err)
			assert.Equal(t, tc.want, counts(b, 0))
			assert.InDelta(t, tc.minutes/10, b.Cost, 1e-9)
			assert.InDelta(t, tc.minutes/60, b.ReplicaHours, 1e-9)
			assert.InDelta(t, tc.minutes/60, b.GPUHours, 1e-9)
			assert.Zero(t, b.Gap)
			assert.Equal(t, tc.overloaded, b.Overloaded)
			assert.Equal(t, [][]int{{tc.want[0]}}, b.Initial())
			paid := 0.0
			for at := range tc.load {
				paid += b.CostAt(at, 0) / 60
			}
			assert.InDelta(t, b.Cost, paid, 1e-9)
		})
	}
}

func TestBoundPaysForAStartBeforeItServes(t *testing.T) {
	s := oneModel(6)
	b, err := s.Bound(loadOf(s, 0, 1, 1, 1, 3), 90*time.Second)
	require.NoError(t, err)
	for at, want := range []float64{6, 6 + 0.5*12, 6 + 12, 18} {
		assert.InDelta(t, want, b.CostAt(at, 0), 1e-9, "minute %d", at)
	}
	assert.True(t, b.Short(3, 0, []int{2}))
	// The parts of a relaxed cost add up to it too.
	b.Gap = b.Cost / 4
	b.Cost -= b.Gap
	paid := 0.0
	for at := range 4 {
		paid += b.CostAt(at, 0) / 60
	}
	assert.InDelta(t, b.Cost, paid, 1e-9)
	assert.False(t, b.Short(3, 0, []int{3}))
	assert.False(t, b.Short(0, 0, []int{1}))
}

func TestBoundTakesWhatFitsAndWhatMayBe(t *testing.T) {
	s := oneModel(6, 14)
	assert.Greater(t, s.serves(0, 1, someShape), s.serves(0, 0, someShape))
	load := loadOf(s, 0, 2.5)
	three, err := s.Bound(load, 0)
	require.NoError(t, err)
	assert.Equal(t, [][]int{{3, 0}}, three.Initial())

	s.Cluster.Nodes[0].Free.Devices = 2
	two, err := s.Bound(load, 0)
	require.NoError(t, err)
	assert.Equal(t, [][]int{{2, 0}}, two.Initial(), "the node has two devices")
	assert.Equal(t, 1, two.Overloaded)

	s = oneModel(6, 14)
	s.Models[0].Variants[0].Policy.Max = 1
	one, err := s.Bound(load, 0)
	require.NoError(t, err)
	assert.LessOrEqual(t, one.Initial()[0][0], 1)
	assert.Positive(t, one.Initial()[0][1])
	assert.Zero(t, one.Overloaded)
	assert.Greater(t, one.Cost, three.Cost)

	s.Models[0].Variants[0].Policy = decision.DefaultVariantPolicy()
	s.Models[0].Variants[1].Policy.Min = 2
	least, err := s.Bound(load, 0)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, least.Initial()[0][1], 2)

	s.Models[0].Variants[0].Policy.Min = 7
	unbounded, err := s.Bound(load, 0)
	require.NoError(t, err)
	assert.Equal(t, three.Initial(), unbounded.Initial(), "minima that do not fit together bind nobody")
}

func TestBoundNamesWhatItCannotReckonWith(t *testing.T) {
	s := oneModel(6)
	_, err := s.Bound(Load{}, 0)
	require.EqualError(t, err, "the load is of 0 models; expected that of all 1 of the scenario")
	_, err = s.Bound(Load{nil}, 0)
	require.EqualError(t, err, "the load of model m has 0 minutes; expected as many as that of the others and at least one")
	s.Models[0].Variants[0].Cost = capacity.Cost(math.NaN())
	_, err = s.Bound(loadOf(s, 0, 1), 0)
	require.EqualError(t, err, "model m: variant a: the price is NaN per hour; expected a number of at least 0")
	s = oneModel(6)
	s.Models[0].Variants[0].Policy.Max = 0
	_, err = s.Bound(loadOf(s, 0, 1), 0)
	require.EqualError(t, err, "model m: no variant may have a replica; expected one whose greatest number is not 0 and that fits on a node")
}

func TestBoundIsTheSameTwice(t *testing.T) {
	load := Load{nil}
	random := rand.New(rand.NewPCG(9, 10))
	for range 120 {
		load[0] = append(load[0], Minute{Length: time.Minute, Rate: capacity.Rate(100 * random.Float64()), Shape: capacity.TokenShape{
			Input: capacity.Tokens(800 + 400*random.Float64()), Output: capacity.Tokens(150 + 100*random.Float64()),
		}})
	}
	first, err := roomy().Bound(load, time.Minute)
	require.NoError(t, err)
	again, err := roomy().Bound(load, time.Minute)
	require.NoError(t, err)
	assert.Equal(t, first, again)
	assert.Zero(t, first.Gap)
	assert.Zero(t, first.Overloaded)
}

package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func benchCluster(nodes int) *Cluster {
	c := &Cluster{}
	for i := range nodes {
		a := []capacity.Accelerator{"H100", "A100", "L40S", "H200", "MI300X"}[i%5]
		n := gpuNode(fmt.Sprint("n", i), a, 8, i%9)
		n.Free.MilliCPU = int64(i%193) * 1000
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// typedCluster has nodes of three kinds with states of every sort.
func typedCluster(rng *rand.Rand) *Cluster {
	c := &Cluster{}
	for i := range 1 + rng.IntN(12) {
		devices := []int{4, 8, 16}[i%3]
		n := gpuNode(fmt.Sprint("n", i), []capacity.Accelerator{"H100", "A100", "L40S"}[i%3], devices, rng.IntN(devices+1))
		n.MemoryGiB = []int{80, 40, 48}[i%3]
		n.Free.MilliCPU = int64(rng.IntN(97)) * 2000
		if rng.IntN(10) == 0 {
			n.Out = "cordoned"
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// typedOutlook expects shapes whose CPU has a common unit.
func typedOutlook(rng *rand.Rand) Outlook {
	o := Outlook{}
	for range rng.IntN(8) {
		e := Expected{Weight: int64(rng.IntN(5)) * 500}
		e.Shape = gpus(rng.IntN(10), []capacity.Accelerator{"H100", "A100", "L40S", "MI300X"}[rng.IntN(4)]).Shape
		e.Shape.MilliCPU = int64(rng.IntN(7)) * 4000
		if rng.IntN(4) == 0 {
			e.Shape.MemoryGiB = 80
		}
		if rng.IntN(3) == 0 {
			e.Also = []capacity.Accelerator{"A100", "L40S"}[:1+rng.IntN(2)]
		}
		o = append(o, e)
	}
	return o
}

func TestTheTableIsTheFormula(t *testing.T) {
	rng, waiting := rand.New(rand.NewPCG(11, 12)), rand.New(rand.NewPCG(12, 11))
	for round := range 600 {
		c, outlook := typedCluster(rng), typedOutlook(rng)
		for i := range outlook {
			outlook[i].Waiting = int64(waiting.IntN(12)) - 5
		}
		other := c.Clone()
		for i := range other.Nodes {
			other.Nodes[i].Free.Devices = rng.IntN(other.Nodes[i].Allocatable.Devices + 1)
		}
		table := NewTable(outlook, other).Refresh(c)
		require.Equal(t, NewTable(outlook, c), table, "a refreshed table is a new one")
		for i := range c.Nodes {
			n := &c.Nodes[i]
			s := gpus(1+rng.IntN(4), n.Accelerator).Shape
			s.MilliCPU = int64(rng.IntN(5)) * 4000
			if n.Verdict(s) != Fits {
				continue
			}
			want := lossByFormula(outlook, c, n, s)
			got := float64(table.Loss(n, s)) / Unit
			require.InDelta(t, want, got, 1e-4*max(1, math.Abs(want)), "round %d: %v on %+v for %+v", round, s, n, outlook)
		}
	}
}

func TestTheOrderOfTheOutlookIsOfNoAccount(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for range 200 {
		c, outlook := typedCluster(rng), typedOutlook(rng)
		shuffled := slices.Clone(outlook)
		rng.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		require.Equal(t, NewTable(outlook, c).worth, NewTable(shuffled, c).worth)
	}
}

func TestScoreFollowsTheOutlook(t *testing.T) {
	three, five := gpuNode("three", "H100", 8, 3), gpuNode("five", "H100", 8, 5)
	starved := gpuNode("starved", "H100", 8, 5)
	starved.Free.MilliCPU = 2000
	other := gpuNode("other", "A100", 8, 8)
	c := &Cluster{Nodes: []Node{three, five, starved, other}}
	one := gpus(1, "H100").Shape
	expect := func(size int, cpu int64) *Table {
		s := gpus(size, "H100").Shape
		s.MilliCPU = cpu
		return NewTable(Outlook{{Shape: s, Weight: 1000}}, c)
	}
	assert.Greater(t, expect(3, 1000).Score(&five, one, 0, 0), expect(3, 1000).Score(&three, one, 0, 0), "the hole of three is worth keeping")
	assert.Greater(t, expect(5, 1000).Score(&three, one, 0, 0), expect(5, 1000).Score(&five, one, 0, 0), "the hole of five is worth keeping")
	assert.Greater(t, expect(5, 64_000).Loss(&five, one), expect(5, 64_000).Loss(&starved, one), "a hole without CPU is worth little to those who need CPU")
	assert.Zero(t, NewTable(Outlook{}, c).Loss(&other, gpus(1, "A100").Shape)+wasteWeight*Unit, "what nobody expects to use is wasted until it is used")
}

// A score is four numbers side by side, so that no tier reaches into another.
func TestAScoreHoldsItsTiersApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 18))
	for range 300 {
		c, outlook := typedCluster(rng), typedOutlook(rng)
		table := NewTable(outlook, c)
		for i := range c.Nodes {
			n := &c.Nodes[i]
			s := gpus(1+rng.IntN(4), n.Accelerator).Shape
			s.MilliCPU = int64(rng.IntN(5)) * 4000
			if n.Verdict(s) != Fits {
				continue
			}
			order, mates := rng.IntN(16), rng.IntN(16)
			packed := -table.Score(n, s, order, mates)
			require.Equal(t, min((n.Free.MilliCPU-s.MilliCPU)/500, 1<<10-1), packed&(1<<10-1), "CPU")
			require.EqualValues(t, n.free(n.poolOf(&s))-s.Devices, packed>>10&(1<<7-1), "devices")
			require.Equal(t, table.Loss(n, s)+int64(mates)*4*Unit+1<<33, packed>>17&(1<<42-1), "loss")
			require.EqualValues(t, order, packed>>59, "order")
		}
	}
}

func TestTheTiersOfAScore(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 3), gpuNode("b", "H100", 8, 8)}}
	tight, loose := &c.Nodes[0], &c.Nodes[1]
	one := gpus(1, "H100").Shape
	waiting := NewTable(Outlook{Expecting(gpus(8, "H100").Shape, 1, 0, 1), Expecting(one, 1, 1, 2)}, c)
	roomy := *tight
	roomy.Free.MilliCPU += 1000
	cases := []struct {
		name          string
		better, worse int64
	}{
		{"the pod's own order before everything", (*Table)(nil).Score(loose, one, 0, 15), (*Table)(nil).Score(tight, one, 1, 0)},
		{"the loss before the fit", (*Table)(nil).Score(tight, one, 0, 0), (*Table)(nil).Score(loose, one, 0, 0)},
		{"nothing expected: the tightest fit", NewTable(Outlook{}, c).Score(tight, one, 0, 0), NewTable(Outlook{}, c).Score(loose, one, 0, 0)},
		{"then the CPU", (*Table)(nil).Score(tight, one, 0, 0), (*Table)(nil).Score(&roomy, one, 0, 0)},
		{"a mate before the fit", NewTable(Outlook{}, c).Score(loose, one, 0, 0), NewTable(Outlook{}, c).Score(tight, one, 0, 1)},
		{"a mate before a whole node that nobody expects to need", (*Table)(nil).Score(loose, one, 0, 0), (*Table)(nil).Score(tight, one, 0, 1)},
		{"the only node of one that waits before a mate", waiting.Score(tight, one, 0, 1), waiting.Score(loose, one, 0, 0)},
		{"fewer mates", (*Table)(nil).Score(tight, one, 0, 2), (*Table)(nil).Score(tight, one, 0, 3)},
		{"orders and mates beyond the range are its end", (*Table)(nil).Score(tight, one, -1, -1), (*Table)(nil).Score(tight, one, math.MaxInt, math.MaxInt)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Greater(t, c.better, c.worse)
			assert.LessOrEqual(t, c.better, int64(0))
		})
	}
}

func TestTheScarcerTypeIsSparedWhenAPodAcceptsBoth(t *testing.T) {
	c := &Cluster{}
	for i := range 20 {
		c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("a", i), "A100", 8, 8))
	}
	c.Nodes = append(c.Nodes, gpuNode("h", "H100", 8, 8))
	table := NewTable(Outlook{
		{Shape: gpus(4, "H100").Shape, Weight: 5},
		{Shape: gpus(4, "A100").Shape, Also: []capacity.Accelerator{"H100"}, Weight: 5},
	}, c)
	assert.Less(t, table.Loss(&c.Nodes[0], gpus(1, "A100").Shape), table.Loss(&c.Nodes[20], gpus(1, "H100").Shape))
}

func TestDrawsFollowTheWeights(t *testing.T) {
	assert.Nil(t, draw(nil))
	assert.Nil(t, draw([]int64{0, -5}))
	var counts [4]int
	for _, arrivals := range draw([]int64{1, 0, 2, 5}) {
		for _, i := range arrivals {
			counts[i]++
		}
	}
	assert.Zero(t, counts[1])
	for i, want := range []int{160, 0, 320, 800} {
		assert.InDelta(t, want, counts[i], 1, "strata leave little to chance: %v", counts)
	}
}

func TestCoarseLevelsStillLetEqualPartsFillANode(t *testing.T) {
	node := gpuNode("a", "H100", 8, 8)
	node.Allocatable.MilliCPU, node.Free.MilliCPU = 191_451, 191_451
	c := &Cluster{Nodes: []Node{node}}
	eighth, odd := gpus(1, "H100").Shape, gpus(2, "H100").Shape
	eighth.MilliCPU, odd.MilliCPU = 23_931, 17_389
	table := NewTable(Outlook{{Shape: eighth, Weight: 1}, {Shape: odd, Weight: 0}}, c)
	assert.Equal(t, int64(23_931), table.kinds[0].unit, "one request is its own unit")
	table = NewTable(Outlook{{Shape: eighth, Weight: 1000}, {Shape: odd, Weight: 1}}, c)
	assert.InDelta(t, coarseLevels, table.kinds[0].levels, 2)
	assert.Equal(t, map[capacity.Accelerator]int{"H100": 0}, table.Fragmentation(c))
}

func TestFragmentation(t *testing.T) {
	c := &Cluster{Nodes: []Node{
		gpuNode("five", "H100", 8, 5), gpuNode("starved", "H100", 8, 4), gpuNode("thin", "H100", 8, 2),
		gpuNode("out", "H100", 8, 3), gpuNode("full", "A100", 8, 8), gpuNode("crowded", "L4", 8, 1),
	}}
	c.Nodes[1].Free.MilliCPU = 10
	c.Nodes[2].Free.MemoryBytes = 1 << 30
	c.Nodes[3].Out = "cordoned"
	c.Nodes[5].Free.Pods = 0
	c.Nodes = append(c.Nodes, gpuNode("labelled, without devices yet", "T4", 0, 0))
	table := NewTable(Outlook{{Shape: gpus(2, "H100").Shape, Weight: 1}, {Shape: gpus(8, "A100").Shape, Weight: 1}, {Shape: gpus(1, "L4").Shape, Weight: 1}}, c)
	assert.Equal(t, map[capacity.Accelerator]int{"H100": 1 + 4, "A100": 0, "L4": 1}, table.Fragmentation(c))
	assert.Equal(t, map[capacity.Accelerator]int{"H100": 0, "A100": 0, "L4": 1}, (*Table)(nil).Fragmentation(c))
}

func TestANodeOfANewKindMakesANewTable(t *testing.T) {
	c := benchCluster(10)
	table := NewTable(outlookOf(20), c)
	grown := c.Clone()
	grown.Nodes = append(grown.Nodes, gpuNode("new", "B200", 8, 8))
	assert.Equal(t, NewTable(outlookOf(20), grown), table.Refresh(grown))
	assert.Nil(t, (*Table)(nil).Refresh(c))
	for _, size := range []int{8, 16} {
		larger := benchCluster(1)
		table := NewTable(outlookOf(20), larger)
		larger.Nodes[0].Allocatable.Devices, larger.Nodes[0].Free.Devices = size, size
		assert.Equal(t, NewTable(outlookOf(20), larger), table.Refresh(larger), "%d devices", size)
		table = NewTable(outlookOf(20), larger)
		larger.Nodes[0].Allocatable.MilliCPU *= int64(size / 8)
		assert.Equal(t, NewTable(outlookOf(20), larger), table.Refresh(larger), "CPU for %d devices", size)
	}
	neutral := NewTable(nil, c).Refresh(grown)
	assert.Contains(t, neutral.index, capacity.Device{Accelerator: "B200"}, "the neutral outlook expects the new kind as well")
}

func TestScoringAllocatesNothing(t *testing.T) {
	n := gpuNode("a", "H100", 8, 5)
	shape := gpus(1, "H100").Shape
	table := NewTable(outlookOf(200), benchCluster(100))
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = table.Score(&n, shape, 0, 0)
		_ = (*Table)(nil).Score(&n, shape, 0, 0)
		_ = n.Verdict(shape)
	}))
}

func BenchmarkScore(b *testing.B) {
	n := gpuNode("a", "H100", 8, 5)
	shape := gpus(1, "H100").Shape
	for _, shapes := range []int{0, 5, 200} {
		table := NewTable(outlookOf(shapes), benchCluster(5000))
		b.Run(fmt.Sprintf("shapes=%d", shapes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = table.Score(&n, shape, 0, 0)
			}
		})
	}
}

func BenchmarkNewTable(b *testing.B) {
	c := benchCluster(5000)
	odd := outlookOf(200)
	for i := range odd {
		odd[i].Shape.MilliCPU += int64(i)
	}
	for name, outlook := range map[string]Outlook{"unit": outlookOf(200), "nounit": odd} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = NewTable(outlook, c)
			}
		})
	}
}

func BenchmarkRefresh(b *testing.B) {
	c := benchCluster(5000)
	odd := outlookOf(200)
	for i := range odd {
		odd[i].Shape.MilliCPU += int64(i)
	}
	for name, outlook := range map[string]Outlook{"unit": outlookOf(200), "nounit": odd} {
		table := NewTable(outlook, c)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = table.Refresh(c)
			}
		})
	}
}

func TestExpecting(t *testing.T) {
	shape := gpus(4, "H100").Shape
	for _, c := range []struct {
		name                  string
		wanted, present, most int
		weight, waiting       int64
	}{
		{"wanted and nowhere yet", 2, 1, 3, 2000, 2},
		{"room beyond the wanted", 2, 1, 10, 2000 + 700, 2},
		{"more than allowed", 2, 3, 4, 2000, 2},
		{"all there, and no more allowed", 0, 3, 3, 0, 0},
		{"none allowed", 0, 0, 0, 0, 0},
		{"no bound", 0, 3, -1, 300, 0},
		{"no bound, and some wanted", 2, 3, -1, 2000 + 300, 2},
		{"no bound, and nothing there", 0, 0, -1, 100, 0},
		{"absurd", math.MaxInt, math.MinInt, math.MaxInt, MaxWeight, math.MaxInt},
	} {
		assert.Equal(t, Expected{Shape: shape, Weight: c.weight, Waiting: c.waiting}, Expecting(shape, c.wanted, c.present, c.most), c.name)
	}
}

// The neutral outlook expects the sizes up to the largest node's, that one among them.
func TestTheNeutralOutlookSpelledOut(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), gpuNode("b", "H100", 8, 5), gpuNode("c", "L4", 1, 1)}}
	var all Outlook
	for _, s := range []*Request{gpus(1, "H100"), gpus(2, "H100"), gpus(4, "H100"), gpus(8, "H100"), gpus(1, "L4")} {
		all = append(all, Expected{Shape: s.Shape, Weight: 1})
	}
	neutral, spelled := NewTable(nil, c), NewTable(all, c)
	for i := range c.Nodes {
		for _, r := range []*Request{gpus(1, "H100"), gpus(8, "H100"), gpus(1, "L4")} {
			assert.Equal(t, spelled.Loss(&c.Nodes[i], r.Shape), neutral.Loss(&c.Nodes[i], r.Shape), "%s on %s", r.Shape, c.Nodes[i].Name)
		}
	}
}

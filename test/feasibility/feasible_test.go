package feasibility

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// gpuNode has plenty of everything but devices.
func gpuNode(name string, accelerator capacity.Accelerator, devices, free int) placement.Node {
	plenty := placement.Resources{Devices: devices, MilliCPU: 192_000, MemoryBytes: 2 << 40, Pods: 110}
	n := placement.Node{Name: name, Accelerator: accelerator, Allocatable: plenty, Free: plenty}
	n.Free.Devices = free
	return n
}

func gpus(devices int, accelerator capacity.Accelerator) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1, MilliCPU: 1000, MemoryBytes: 1 << 30}}
}

// randomCluster is one to five nodes of two types and unknown ones, some with slices
// beside, on which everything binds about equally often.
func randomCluster(rng *rand.Rand) *placement.Cluster {
	types := []capacity.Accelerator{"H100", "H100", "A100", ""}
	c := &placement.Cluster{}
	for i := range 1 + rng.IntN(5) {
		n := gpuNode(fmt.Sprint("n", i), types[rng.IntN(len(types))], 8, rng.IntN(11)-1)
		n.MemoryGiB = []int{0, 40, 80}[rng.IntN(3)]
		n.Free.MilliCPU, n.Free.MemoryBytes, n.Free.Pods = 64_000, 64<<30, 64
		if rng.IntN(2) == 0 {
			n.Free.MilliCPU, n.Free.MemoryBytes, n.Free.Pods = int64(rng.IntN(13))*1000, int64(rng.IntN(13))<<30, rng.IntN(9)-1
		}
		if rng.IntN(4) == 0 {
			n.Beside = []placement.Pool{
				{Device: capacity.Device{Accelerator: "slice", MemoryGiB: 10}, Allocatable: 7, Free: rng.IntN(8)},
				{Device: capacity.Device{Accelerator: "slice", MemoryGiB: 20}, Allocatable: 3, Free: rng.IntN(4)},
			}
		}
		if rng.IntN(8) == 0 {
			n.Out = "cordoned"
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

func randomRequest(rng *rand.Rand, nodes int) *placement.Request {
	r := gpus(rng.IntN(6), []capacity.Accelerator{"H100", "H100", "A100", "slice"}[rng.IntN(4)])
	r.Shape.MilliCPU, r.Shape.MemoryBytes = int64(rng.IntN(4))*1000, int64(rng.IntN(4))<<30
	switch {
	case r.Shape.Accelerator == "slice":
		r.Shape.MemoryGiB = []int{10, 20, 40}[rng.IntN(3)]
	case rng.IntN(4) == 0:
		r.Shape.MemoryGiB = 80
	}
	if rng.IntN(3) == 0 {
		r.Refused = make([]string, nodes)
		r.Refused[rng.IntN(nodes)] = "taint"
	}
	return r
}

func randomWants(rng *rand.Rand, c *placement.Cluster) []Want {
	var wants []Want
	left := 7
	for range 1 + rng.IntN(3) {
		r := randomRequest(rng, len(c.Nodes))
		slots, err := c.Slots(r)
		if err != nil {
			continue
		}
		// Most of what cannot fit alone is of no interest together.
		count := min(rng.IntN(left+1), slots+rng.IntN(8)/7)
		left -= count
		wants = append(wants, Want{Request: r, Count: count})
	}
	return wants
}

// fitTogether tries every node for every replica.
func fitTogether(c *placement.Cluster, wants []Want) bool {
	if len(wants) == 0 {
		return true
	}
	w := wants[0]
	if w.Count <= 0 {
		return fitTogether(c, wants[1:])
	}
	rest := append([]Want{{w.Request, w.Count - 1}}, wants[1:]...)
	for i := range c.Nodes {
		if !c.Fits(w.Request, i) {
			continue
		}
		c.Put(w.Request, i)
		fits := fitTogether(c, rest)
		c.Remove(w.Request, i)
		if fits {
			return true
		}
	}
	return false
}

// check compares the answer with all placements on one random cluster.
func check(t *testing.T, rng *rand.Rand, round int) (wanted, fit bool) {
	c := randomCluster(rng)
	wants := randomWants(rng, c)
	before := c.Clone()
	got := Of(c, wants)
	require.Equal(t, before, c, "round %d: asking changes nothing", round)
	want := fitTogether(c, wants)
	require.True(t, got.Exact, "round %d: a small instance is decided", round)
	require.Equal(t, want, got.OK, "round %d: %+v on %+v", round, wants, c.Nodes)
	searched := true
	for _, p := range problemsOf(c, wants) {
		searched = searched && p.search() == found
	}
	require.Equal(t, want, searched, "round %d: the search alone finds the same", round)
	if got.OK {
		fewer := append([]Want{}, wants...)
		fewer[rng.IntN(len(fewer))].Count--
		require.True(t, Of(c, fewer).OK, "round %d: fewer fit where more do", round)
	}
	return len(wants) > 1, want
}

func TestTheAnswerIsThatOfAllPlacements(t *testing.T) {
	t.Parallel()
	for shard := range uint64(10) {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(100, shard))
			fitting := 0
			for round := range 5_000 {
				if several, fit := check(t, rng, round); several && fit {
					fitting++
				}
			}
			require.Greater(t, fitting, 1_000, "both answers are common")
		})
	}
}

func TestSizesThatDivideEachOtherAreAlwaysDecided(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 2_000 {
		c := &placement.Cluster{}
		for i := range 50 + rng.IntN(100) {
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, rng.IntN(9)))
		}
		var wants []Want
		for _, size := range []int{8, 4, 2, 1} {
			wants = append(wants, Want{Request: gpus(size, "H100"), Count: rng.IntN(40)})
		}
		got := Of(c, wants)
		require.True(t, got.Exact)
		require.Equal(t, largestFirst(c.Clone(), wants), got.OK, "largest first is exact here")
	}
}

// largestFirst places wants that come in that order.
func largestFirst(c *placement.Cluster, wants []Want) bool {
	for _, w := range wants {
		for range w.Count {
			if _, placed := c.Place(w.Request); !placed {
				return false
			}
		}
	}
	return true
}

func TestWhatIsDecided(t *testing.T) {
	four := func(free int) *placement.Cluster {
		c := &placement.Cluster{}
		for i := range 4 {
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, free))
		}
		return c
	}
	hungry := gpus(2, "H100")
	hungry.Shape.MilliCPU = 100_000
	bound := gpus(1, "H100")
	bound.Bound = "pod affinity"
	no, yes := Answer{Exact: true}, Answer{OK: true, Exact: true}
	for name, c := range map[string]struct {
		cluster *placement.Cluster
		wants   []Want
		want    Answer
	}{
		"nothing wanted":               {four(0), nil, yes},
		"a negative number is none":    {four(0), []Want{{gpus(8, "H100"), -3}}, yes},
		"holes too small":              {four(6), []Want{{gpus(8, "H100"), 3}}, no},
		"another type":                 {four(8), []Want{{gpus(8, "A100"), 1}}, no},
		"two sizes together":           {four(6), []Want{{gpus(4, "H100"), 4}, {gpus(2, "H100"), 5}}, no},
		"one less of them":             {four(6), []Want{{gpus(4, "H100"), 4}, {gpus(2, "H100"), 4}}, yes},
		"CPU of two":                   {four(8), []Want{{hungry, 4}, {&placement.Request{Shape: capacity.Shape{MilliCPU: 92_000}}, 5}}, no},
		"the last core":                {four(8), []Want{{hungry, 4}, {&placement.Request{Shape: capacity.Shape{MilliCPU: 92_000}}, 4}}, yes},
		"more than is looked at":       {four(8), []Want{{bound, 1}}, Answer{OK: true}},
		"more than is looked at, none": {four(0), []Want{{bound, 1}}, no},
		"unknown is not none":          {four(8), []Want{{gpus(1, ""), 1}}, Answer{}},
		"each fits alone, all arrangements fail": {
			&placement.Cluster{Nodes: []placement.Node{gpuNode("a", "H100", 8, 6), gpuNode("b", "H100", 8, 1), gpuNode("c", "H100", 8, 2)}},
			[]Want{{gpus(2, "H100"), 1}, {gpus(3, "H100"), 1}, {gpus(4, "H100"), 1}}, no,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, Of(c.cluster, c.wants))
		})
	}
}

// A question that is too large to search through is not decided, and the answer says so:
// the fours leave holes of two beside them, so that the threes find none. Nodes with one
// free device are no place for any.
func TestWhatIsTooLargeToSearchIsNotDecided(t *testing.T) {
	question := func(copies int) (*placement.Cluster, []Want) {
		c := &placement.Cluster{}
		for i := range copies {
			for _, free := range []int{6, 2, 1} {
				c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i, free), "H100", 8, free))
			}
		}
		return c, []Want{{gpus(2, "H100"), copies}, {gpus(3, "H100"), copies}, {gpus(4, "H100"), copies}}
	}
	assert.Equal(t, Answer{Exact: true}, Of(question(3)))
	assert.Equal(t, Answer{}, Of(question(searchBins/2+1)))
}

// No number that somebody wrote makes an answer wrong or work without end.
func FuzzAbsurdNumbers(f *testing.F) {
	most := int64(math.MaxInt64)
	f.Add(int64(8), int64(64_000), int64(110), int64(1), int64(1000), int64(1))
	f.Add(most, most, most, most, most, most)
	f.Add(-most-1, most, -most-1, -most-1, -most-1, most)
	f.Add(int64(1)<<40, int64(3), most, int64(1), int64(1), int64(1)<<40)
	f.Fuzz(func(t *testing.T, free, cpu, pods, devices, wantsCPU, count int64) {
		n := gpuNode("a", "H100", int(free), int(free))
		n.Free.MilliCPU, n.Free.MemoryBytes, n.Free.Pods = cpu, cpu, int(pods)
		n.Beside = []placement.Pool{{Device: capacity.Device{Accelerator: "slice"}, Allocatable: int(free), Free: int(free)}}
		c := &placement.Cluster{Nodes: []placement.Node{n, gpuNode("b", "H100", 8, 5), n}}
		r := &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: int(devices), Pods: 1, MilliCPU: wantsCPU, MemoryBytes: wantsCPU}}
		slice := &placement.Request{Shape: capacity.Shape{Accelerator: "slice", Devices: int(count), MilliCPU: cpu}}
		wants := []Want{{r, int(count)}, {slice, int(count)}, {gpus(1, "H100"), int(count)}}
		if Of(c, wants).OK {
			for _, w := range wants {
				slots, err := c.Slots(w.Request)
				assert.True(t, w.Count <= 0 || err == nil && slots >= w.Count)
			}
		}
	})
}

func BenchmarkOf(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	c := &placement.Cluster{}
	for i := range 5_000 {
		c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, rng.IntN(9)))
	}
	var wants []Want
	for i, size := range []int{8, 4, 2, 1} {
		wants = append(wants, Want{Request: gpus(size, "H100"), Count: 50 << i})
	}
	b.ReportAllocs()
	for b.Loop() {
		_ = Of(c, wants)
	}
}

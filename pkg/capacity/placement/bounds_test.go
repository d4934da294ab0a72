package placement

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Pairs of devices with 10 GiB: the node's 24 GiB are those of 4.8 devices, and its five
// free devices could take two pairs. With 12 GiB they are those of 2.4.
func TestFragmentationByMemory(t *testing.T) {
	const gib = 1 << 30
	pair := capacity.Shape{Accelerator: "H100", Devices: 2, Pods: 1, MemoryBytes: 10 * gib}
	for memory, lost := range map[int64]int{24 * gib: 1, 12 * gib: 3, 1: 5, 0: 5, -gib: 5} {
		c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 5)}}
		c.Nodes[0].Free.MemoryBytes = memory
		for name, outlook := range map[string]Outlook{
			"pairs":                     {{Shape: pair, Weight: 1}},
			"and pods without devices":  {{Shape: pair, Weight: 1}, {Shape: capacity.Shape{Pods: 1, MemoryBytes: gib}, Weight: 5}},
			"which ask for no memory":   {{Shape: pair, Weight: 1}, {Shape: capacity.Shape{Pods: 1}, Weight: 5}},
			"and pairs with more of it": {{Shape: pair, Weight: 1}, {Shape: capacity.Shape{Accelerator: "H100", Devices: 2, Pods: 1, MilliCPU: 1, MemoryBytes: 20 * gib}, Weight: 1}},
		} {
			assert.Equal(t, map[capacity.Accelerator]int{"H100": lost}, NewTable(outlook, c).Fragmentation(c), "%s, %d bytes", name, memory)
		}
	}
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 5)}}
	c.Nodes[0].Free.MemoryBytes, c.Nodes[0].Free.Pods = 0, 1
	pair.MemoryBytes = 0
	assert.Equal(t, map[capacity.Accelerator]int{"H100": 1}, NewTable(Outlook{{Shape: pair, Weight: 1}}, c).Fragmentation(c), "who asks for no memory")
}

// What an outlook says of shapes that nobody can count is left out, what is alike is one.
func TestWhatAnOutlookExpects(t *testing.T) {
	of := func(devices int, a capacity.Accelerator) Expected {
		return Expected{Shape: capacity.Shape{Accelerator: a, Devices: devices, Pods: 1, MilliCPU: 1000, MemoryBytes: 9}, Weight: 2}
	}
	with := func(e Expected, change func(e *Expected)) Expected {
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		e    Expected
		want int
	}{
		"devices":                    {of(4, "H100"), 1},
		"none":                       {of(0, ""), 1},
		"fewer than none":            {of(-1, "H100"), 0},
		"of no type":                 {of(1, ""), 0},
		"of others":                  {with(of(1, ""), func(e *Expected) { e.Also = []capacity.Accelerator{"A100"} }), 1},
		"no weight":                  {with(of(1, "H100"), func(e *Expected) { e.Weight = 0 }), 0},
		"less than none":             {with(of(1, "H100"), func(e *Expected) { e.Weight = -1 }), 0},
		"one thousandth":             {with(of(1, "H100"), func(e *Expected) { e.Weight = 1 }), 1},
		"no CPU":                     {with(of(1, "H100"), func(e *Expected) { e.Shape.MilliCPU = 0 }), 1},
		"less CPU than none":         {with(of(1, "H100"), func(e *Expected) { e.Shape.MilliCPU = -1 }), 0},
		"nobody said how many pods":  {with(of(1, "H100"), func(e *Expected) { e.Shape.Pods = 0 }), 1},
		"replicas of several pods":   {with(of(1, "H100"), func(e *Expected) { e.Shape.Pods = 2 }), 0},
		"memory that cannot be":      {with(of(1, "H100"), func(e *Expected) { e.Shape.MemoryBytes = -1 }), 1},
		"a weight beyond all bounds": {with(of(1, "H100"), func(e *Expected) { e.Weight = math.MaxInt64 }), 1},
	} {
		classes := classesOf(Outlook{c.e})
		assert.Len(t, classes, c.want, name)
		for _, k := range classes {
			assert.Equal(t, max(c.e.Shape.MemoryBytes, 0), k.memoryBytes, name)
			assert.Equal(t, min(c.e.Weight, MaxWeight), k.weight, name)
			assert.Equal(t, k.devices == 0, len(k.accepts) == 0, name)
		}
	}
	less := with(of(4, "H100"), func(e *Expected) { e.Shape.MemoryBytes = 5 })
	most := with(of(4, "H100"), func(e *Expected) { e.Weight = MaxWeight })
	merged := classesOf(Outlook{of(1, "H100"), of(4, "H100"), less, of(4, "A100"), of(2, "H100")})
	require.Len(t, merged, 4)
	assert.Equal(t, class{devices: 4, milliCPU: 1000, weight: 2, memoryBytes: 9, accepts: []capacity.Device{{Accelerator: "A100"}}}, merged[0])
	assert.Equal(t, class{devices: 4, milliCPU: 1000, weight: 4, memoryBytes: 5, accepts: []capacity.Device{{Accelerator: "H100"}}}, merged[1])
	assert.Equal(t, []int{2, 1}, []int{merged[2].devices, merged[3].devices})
	two := classesOf(Outlook{most, most})
	require.Len(t, two, 1)
	assert.EqualValues(t, MaxWeight, two[0].weight)
}

// CPU is told apart in exact levels as long as there are few, and in coarse ones else; the
// more devices a kind has, the fewer levels.
func TestLevelsOfCPU(t *testing.T) {
	for name, c := range map[string]struct {
		devices      int
		allocatable  int64
		asks         []int64
		unit, levels int64
	}{
		"nobody asks for CPU":             {8, 64_000, []int64{0}, 1, 1},
		"nobody who could have it asks":   {8, 64_000, []int64{64_001}, 1, 1},
		"all of it":                       {8, 64_000, []int64{64_000}, 64_000, 2},
		"a common unit":                   {8, 64_000, []int64{4000, 6000}, 2000, 33},
		"CPU that 20 pods cannot use":     {8, 640_000, []int64{4000, 6000}, 2000, 61},
		"CPU that 32 devices could use":   {32, 640_000, []int64{4000, 6000}, 2000, 97},
		"just few enough":                 {8, 1_023_000, []int64{1000, 60_000}, 1000, 1024},
		"one more":                        {8, 1_024_000, []int64{1000, 60_000}, 4001, 256},
		"without a unit":                  {8, 64_000, []int64{4001, 6000}, 251, 255},
		"256 devices: 255 levels at most": {256, 254_000, []int64{1000}, 1000, 255},
		"256 devices: and one more":       {256, 255_000, []int64{1000}, 1001, 255},
		"less than no CPU":                {8, -5, []int64{0}, 1, 1},
		"one that just cannot have it":    {8, 20_500, []int64{1000, 21_000}, 1000, 21},
	} {
		n := gpuNode("a", "H100", c.devices, c.devices)
		n.Allocatable.MilliCPU = c.allocatable
		var outlook Outlook
		for _, cpu := range c.asks {
			outlook = append(outlook, Expected{Shape: capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1, MilliCPU: cpu}, Weight: 1})
		}
		k := NewTable(outlook, &Cluster{Nodes: []Node{n}}).kinds[0]
		assert.Equal(t, c.unit, k.unit, name)
		assert.EqualValues(t, c.levels, k.levels, name)
		assert.LessOrEqual(t, len(k.wasted), maxStates, name)
	}
}

// Who moves goes to the best place for it, wherever that stands in the order.
func TestWhoMovesGoesToTheBestPlace(t *testing.T) {
	for name, c := range map[string]struct {
		free []int
		to   int
	}{
		"the first": {[]int{7, 1, 5}, 1}, "the last": {[]int{7, 5, 1}, 2}, "of equal ones the first": {[]int{7, 3, 3}, 1},
		"of six the fourth": {[]int{7, 5, 3, 7, 1, 5, 3}, 4},
	} {
		cluster := &Cluster{}
		for _, free := range c.free {
			cluster.Nodes = append(cluster.Nodes, gpuNode("n", "H100", 8, free))
		}
		cluster.Table = NewTable(Outlook{{Shape: gpus(2, "H100").Shape, Weight: 1}}, cluster)
		room, ok := cluster.Moves(gpus(8, "H100"), []Placed{{"r", gpus(1, "H100"), 0}})
		require.True(t, ok, name)
		assert.Equal(t, Room{Node: 0, Moves: []Move{{Replica: 0, From: 0, To: c.to}}}, room, name)
	}
}

// Who moves after another one goes where that one went only if it is the better place: here
// the other one with one free device has less CPU to spare.
func TestWhoMovesLaterChoosesToo(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 1), gpuNode("b", "H100", 8, 4), gpuNode("c", "H100", 8, 4)}}
	c.Nodes[0].Free.MilliCPU = 20_000
	room, ok := c.Moves(gpus(8, "H100"), []Placed{{"small", gpus(1, "H100"), 2}, {"large", gpus(3, "H100"), 2}})
	require.True(t, ok)
	assert.Equal(t, Room{Node: 2, Moves: []Move{{Replica: 1, From: 2, To: 1}, {Replica: 0, From: 2, To: 0}}}, room)
}

// Who asks for none of a resource is not kept away where too much of it is taken.
func TestNothingOfAResourceIsThereAnyway(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8)}}
	c.Nodes[0].Other = []Stock{{Allocatable: 1, Free: -1}}
	r := gpus(1, "H100")
	r.Other = []Amount{{Count: 0}}
	assert.Equal(t, Fits, c.Verdict(r, 0))
	r.Other = []Amount{{Count: 1}}
	assert.Equal(t, TooLittleOther, c.Verdict(r, 0))
	c.Nodes[0].Free.MilliCPU, c.Nodes[0].Free.MemoryBytes = -1, -1
	assert.Equal(t, Fits, c.Nodes[0].Verdict(capacity.Shape{Accelerator: "H100", Devices: 1}))
}

// What yields adds to what is free up to what there is; where nobody yields it stays as it is.
func TestWhatIsFreeWithThoseWhoYield(t *testing.T) {
	for _, c := range []struct{ free, yielded, allocatable, want int }{{5, 0, 4, 5}, {5, -1, 4, 5}, {1, 2, 4, 3}, {3, 2, 4, 4}, {-2, 1, 4, -1}} {
		assert.Equal(t, c.want, with(c.free, c.yielded, c.allocatable), "%+v", c)
	}
}

// Who asks for no devices means none, whatever type is named.
func TestWithoutDevicesNoPoolIsMeant(t *testing.T) {
	n := gpuNode("a", "H100", 8, 8)
	_, means := n.Pool(capacity.Shape{Accelerator: "H100", Pods: 1})
	assert.False(t, means)
	_, means = n.Pool(capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1})
	assert.True(t, means)
}

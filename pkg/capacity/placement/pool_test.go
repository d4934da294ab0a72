package placement

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// sliced has whole devices and two kinds of slices.
func sliced(name string) Node {
	n := gpuNode(name, "H100", 8, 4)
	n.MemoryGiB, n.Form = 80, "SXM5"
	n.Beside = []Pool{
		{Device: capacity.Device{Accelerator: "H100-MIG-1g", MemoryGiB: 10}, Allocatable: 7, Free: 7},
		{Device: capacity.Device{Accelerator: "H100-MIG-3g", MemoryGiB: 40}, Allocatable: 2, Free: 1},
	}
	return n
}

func TestAShapeMeansOnePool(t *testing.T) {
	shape := func(a capacity.Accelerator, memory int, form string, devices int) capacity.Shape {
		return capacity.Shape{Accelerator: a, MemoryGiB: memory, Form: form, Devices: devices, MilliCPU: 1000}
	}
	cases := []struct {
		name   string
		shape  capacity.Shape
		change func(n *Node)
		want   Verdict
		slots  int
	}{
		{"the node's own devices", shape("H100", 0, "", 2), nil, Fits, 2},
		{"with their memory and form", shape("H100", 80, "SXM5", 2), nil, Fits, 2},
		{"of another memory", shape("H100", 96, "", 2), nil, WrongAccelerator, 0},
		{"of another form", shape("H100", 0, "PCIE", 2), nil, WrongAccelerator, 0},
		{"whose memory is asked for and not known", shape("H100", 80, "", 2), func(n *Node) { n.MemoryGiB = 0 }, AcceleratorUnknown, 0},
		{"whose form is asked for and not known", shape("H100", 80, "SXM5", 2), func(n *Node) { n.Form = "" }, AcceleratorUnknown, 0},
		{"of another memory and a form that is not known", shape("H100", 96, "SXM5", 2), func(n *Node) { n.Form = "" }, WrongAccelerator, 0},
		{"whose memory is not known and not asked for", shape("H100", 0, "SXM5", 2), func(n *Node) { n.MemoryGiB = 0 }, Fits, 2},
		{"slices", shape("H100-MIG-1g", 0, "", 3), nil, Fits, 2},
		{"larger slices", shape("H100-MIG-3g", 0, "", 1), nil, Fits, 1},
		{"more slices than there are", shape("H100-MIG-3g", 0, "", 3), nil, TooFewDevices, 0},
		{"more slices than are free", shape("H100-MIG-3g", 0, "", 2), nil, TooFewFree, 0},
		{"slices of a size that is not there", shape("H100-MIG-2g", 0, "", 1), nil, WrongAccelerator, 0},
		{"slices share the CPU", shape("H100-MIG-1g", 0, "", 1), func(n *Node) { n.Free.MilliCPU = 2500 }, Fits, 2},
		{"slices share the pod slots", shape("H100-MIG-1g", 0, "", 1), func(n *Node) { n.Free.Pods = 0 }, NoPodSlot, 0},
		{"slices of no known type", shape("L4", 0, "", 1), func(n *Node) { n.Beside[0].Device.Accelerator = "" }, AcceleratorUnknown, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			n := sliced("a")
			if c.change != nil {
				c.change(&n)
			}
			assert.Equal(t, c.want, n.Verdict(c.shape))
			assert.Equal(t, c.slots, n.Slots(c.shape))
		})
	}
}

func TestPlacingOnACopyLeavesTheOriginal(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), sliced("b"), sliced("c")}}
	want := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), sliced("b"), sliced("c")}}
	slice := gpus(1, "H100-MIG-1g")
	clone := c.Clone()
	for range 14 {
		_, ok := clone.Place(slice)
		require.True(t, ok)
	}
	_, ok := clone.Place(slice)
	assert.False(t, ok)
	assert.Equal(t, 0, clone.LargestHole(slice))
	assert.Equal(t, want, c)
	assert.Equal(t, 7, c.LargestHole(slice))
	assert.Equal(t, 0, c.LargestHole(nil))
	pool, ok := c.Nodes[1].Pool(slice.Shape)
	assert.True(t, ok)
	assert.Equal(t, c.Nodes[1].Beside[0], pool)
	_, ok = c.Nodes[0].Pool(slice.Shape)
	assert.False(t, ok)
}

func TestSlicesAreWorthWhatIsExpectedOfThem(t *testing.T) {
	c := &Cluster{Nodes: []Node{sliced("a"), sliced("b")}}
	c.Nodes[1].Beside[0].Free = 2
	c.Table = NewTable(Outlook{{Shape: gpus(4, "H100-MIG-1g").Shape, Weight: 1}, {Shape: gpus(4, "H100").Shape, Weight: 1}}, c)
	node, ok := c.Place(gpus(1, "H100-MIG-1g"))
	require.True(t, ok)
	assert.Equal(t, 1, node, "not where four slices are free")
	assert.Zero(t, c.Table.Loss(&c.Nodes[0], capacity.Shape{MilliCPU: 1000}), "there is CPU for all")
	c.Nodes[0].Free.MilliCPU = 1000
	assert.Positive(t, c.Table.Loss(&c.Nodes[0], capacity.Shape{MilliCPU: 1000}), "pods without devices cost room where they take the last CPU")
}

func TestExplainNamesTheNarrowerForm(t *testing.T) {
	r := gpus(8, "H100")
	r.Shape.MemoryGiB = 80
	c := &Cluster{Nodes: []Node{sliced("a"), sliced("b")}}
	assert.Equal(t, "wants 8xH100-80GB: 2 H100-80GB nodes have fewer than 8 free (largest hole 4)", c.Explain(r).String())
}

func BenchmarkVerdict(b *testing.B) {
	for i, n := range []Node{gpuNode("a", "H100", 8, 5), sliced("b"), gpuNode("c", "", 0, 0)} {
		b.Run(fmt.Sprint("node=", i), func(b *testing.B) {
			s := gpus(4, "H100").Shape
			b.ReportAllocs()
			for b.Loop() {
				_ = n.Verdict(s)
			}
		})
	}
}

// The devices of a replica are in the pool that its shape means, and in the node's own where
// it means none of them.
func TestThePoolThatAReplicaHolds(t *testing.T) {
	n := gpuNode("a", "H100", 8, 8)
	n.Beside = []Pool{{Device: capacity.Device{Accelerator: "H100-MIG-1g"}, Allocatable: 7, Free: 7}}
	c := &Cluster{Nodes: []Node{n}}
	for want, r := range map[int]*Request{0: gpus(1, "H100"), 1: gpus(1, "H100-MIG-1g"), noPool: {Shape: capacity.Shape{MilliCPU: 1}}} {
		assert.Equal(t, want, c.holding(r, 0), "%s", r.Shape)
	}
	assert.Zero(t, c.holding(gpus(1, "A100"), 0), "a further type that it accepts")
}

// Devices of which nothing says what they are count for the request that has them as its
// own, in every way that others do, and for nobody else.
func TestDevicesThatAreOfOneRequestAlone(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "", 8, 5), gpuNode("b", "", 8, 8), gpuNode("c", "H100", 8, 2)}}
	own, other := gpus(2, "H100"), gpus(2, "H100")
	own.Own = []bool{true, false, false}
	assert.NotEqual(t, own.Identity(), other.Identity())
	for r, want := range map[*Request]int{own: 3, other: 1} {
		slots, err := c.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots)
		trial, err := NewTrial(c.Clone()).Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, trial)
	}
	assert.Equal(t, 5, c.LargestHole(own))
	assert.Equal(t, 2, c.LargestHole(other))
	assert.Equal(t, AcceleratorUnknown, c.Verdict(own, 1))
	assert.Equal(t, AcceleratorUnknown, c.Verdict(other, 0))

	for range 3 {
		_, ok := c.Place(own)
		require.True(t, ok)
	}
	assert.Equal(t, []int{1, 8, 0}, []int{c.Nodes[0].Free.Devices, c.Nodes[1].Free.Devices, c.Nodes[2].Free.Devices})
	assert.Equal(t, "wants 2xH100: 2 H100 nodes have fewer than 2 free (largest hole 1), 1 has no product label", c.Explain(own).String())
	assert.Equal(t, []int{0}, c.Victims(own, []Replica{{Name: "x", Node: 0, State: Ready}}, 1))
	c.Remove(own, 0)
	assert.Equal(t, 3, c.Nodes[0].Free.Devices)
}

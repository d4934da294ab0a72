package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// gpuNode has plenty of everything but devices.
func gpuNode(name string, accelerator capacity.Accelerator, devices, free int) Node {
	plenty := Resources{Devices: devices, MilliCPU: 192_000, MemoryBytes: 2 << 40, Pods: 110}
	n := Node{Name: name, Accelerator: accelerator, Allocatable: plenty, Free: plenty}
	n.Free.Devices = free
	return n
}

func gpus(devices int, accelerator capacity.Accelerator) *Request {
	return &Request{Shape: capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1, MilliCPU: 1000, MemoryBytes: 1 << 30}}
}

func TestVerdict(t *testing.T) {
	cases := []struct {
		name   string
		change func(n *Node, r *Request)
		want   Verdict
	}{
		{"all of a free node", func(*Node, *Request) {}, Fits},
		{"another type", func(n *Node, _ *Request) { n.Accelerator = "A100" }, WrongAccelerator},
		{"no devices at all", func(n *Node, _ *Request) { n.Accelerator, n.Allocatable.Devices, n.Free.Devices = "", 0, 0 }, WrongAccelerator},
		{"devices without a label", func(n *Node, _ *Request) { n.Accelerator = "" }, AcceleratorUnknown},
		{"a label before its devices", func(n *Node, _ *Request) { n.Allocatable.Devices, n.Free.Devices = 0, 0 }, TooFewDevices},
		{"cordoned", func(n *Node, _ *Request) { n.Out = "cordoned" }, NodeOut},
		{"tainted", func(_ *Node, r *Request) { r.Refused = []string{"taint"} }, Refused},
		{"type counts before the taint", func(n *Node, r *Request) { n.Accelerator, r.Refused = "L4", []string{"taint"} }, WrongAccelerator},
		{"one device short", func(n *Node, _ *Request) { n.Free.Devices = 3 }, TooFewFree},
		{"more bound than there is", func(n *Node, _ *Request) { n.Free.Devices = -2 }, TooFewFree},
		{"the node is too small", func(_ *Node, r *Request) { r.Shape.Devices = 16 }, TooFewDevices},
		{"CPU", func(n *Node, _ *Request) { n.Free.MilliCPU = 999 }, TooLittleCPU},
		{"memory", func(n *Node, _ *Request) { n.Free.MemoryBytes = 1<<30 - 1 }, TooLittleMemory},
		{"pod slots", func(n *Node, _ *Request) { n.Free.Pods = 0 }, NoPodSlot},
		{"no CPU asked of an overcommitted node", func(n *Node, r *Request) { n.Free.MilliCPU, r.Shape.MilliCPU = -5, 0 }, Fits},
		{"no devices asked of a full node of any type", func(n *Node, r *Request) { n.Free.Devices, r.Shape.Devices = 0, 0 }, Fits},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cluster := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8)}}
			r := gpus(4, "H100")
			c.change(&cluster.Nodes[0], r)
			assert.Equal(t, c.want, cluster.Verdict(r, 0))
			assert.Equal(t, c.want == Fits, cluster.Fits(r, 0))
			slots, err := cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.want == Fits, slots > 0, "%d slots", slots)
		})
	}
}

func TestEightFreeDevicesOnEightNodesHoldNoReplicaOfEight(t *testing.T) {
	cluster := &Cluster{}
	for i := range 8 {
		cluster.Nodes = append(cluster.Nodes, gpuNode(fmt.Sprint("h", i), "H100", 8, 1))
	}
	slots, err := cluster.Slots(gpus(8, "H100"))
	require.NoError(t, err)
	assert.Zero(t, slots)
	slots, err = cluster.Slots(gpus(1, "H100"))
	require.NoError(t, err)
	assert.Equal(t, 8, slots)
}

func TestWhatCannotBeCountedIsRefusedEverywhere(t *testing.T) {
	several, nameless, negative := gpus(1, "H100"), gpus(1, ""), gpus(1, "H100")
	several.Shape.Pods, negative.Shape.MilliCPU = 2, -1
	cases := []struct {
		name    string
		request *Request
		want    error
	}{
		{"no request", nil, ErrShapeUnknown},
		{"a replica of two pods", several, ErrSeveralPods},
		{"devices of no known type", nameless, ErrShapeUnknown},
		{"a negative request", negative, ErrShapeUnknown},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			cluster := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), gpuNode("b", "", 8, 8)}}
			_, err := cluster.Slots(c.request)
			require.ErrorIs(t, err, c.want)
			assert.False(t, cluster.Fits(c.request, 0))
			_, ok := cluster.Place(c.request)
			assert.False(t, ok)
			assert.Equal(t, c.want.Error(), cluster.Explain(c.request).String()[:len(c.want.Error())])
		})
	}
}

func TestExplain(t *testing.T) {
	cluster := &Cluster{Nodes: []Node{gpuNode("x", "", 8, 8)}}
	for i := range 12 {
		cluster.Nodes = append(cluster.Nodes, gpuNode(fmt.Sprint("a", i), "A100", 8, 8))
	}
	for i := range 3 {
		cluster.Nodes = append(cluster.Nodes, gpuNode(fmt.Sprint("h", i), "H100", 8, i))
	}
	assert.Equal(t, "wants 4xH100: 3 H100 nodes have fewer than 4 free (largest hole 2), 12 nodes are of another type, 1 has no product label",
		cluster.Explain(gpus(4, "H100")).String())
	assert.Equal(t, 2, cluster.LargestHole(gpus(4, "H100")))
	assert.Equal(t, "wants 1xL4: there are no nodes", (&Cluster{}).Explain(gpus(1, "L4")).String())
}

func TestPlaceSparesTheNodesThatLargerReplicasNeed(t *testing.T) {
	cluster := &Cluster{Nodes: []Node{
		gpuNode("a-whole", "H100", 8, 8),
		gpuNode("b-five", "H100", 8, 5),
		gpuNode("c-six", "H100", 8, 6),
		gpuNode("d-one", "H100", 8, 1),
		gpuNode("e-other", "A100", 8, 1),
	}}
	// The single device first; then the fifth device of five, which nothing larger
	// can use; then a pair is the least to break; the whole node comes last.
	for _, want := range []string{"d-one", "b-five", "c-six"} {
		node, ok := cluster.Place(gpus(1, "H100"))
		require.True(t, ok)
		assert.Equal(t, want, cluster.Nodes[node].Name)
	}
	node, ok := cluster.Place(gpus(8, "H100"))
	require.True(t, ok)
	assert.Equal(t, "a-whole", cluster.Nodes[node].Name)
	_, ok = cluster.Place(gpus(8, "H100"))
	assert.False(t, ok)
}

// reaches says whether the counts of sizes 1, 2, 4 and 8 fit on the free devices,
// by trying everything, largest size first.
func reaches(free []int, sizes []int) bool {
	if len(sizes) == 0 {
		return true
	}
	for i, f := range free {
		if f < sizes[0] {
			continue
		}
		free[i] -= sizes[0]
		ok := reaches(free, sizes[1:])
		free[i] += sizes[0]
		if ok {
			return true
		}
	}
	return false
}

// Placing pods where the neutral outlook loses least must not make a larger replica
// impossible when some other placement would have kept it possible.
func TestNeutralPlacementNeverWastesAHole(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for round := range 5_000 {
		c := &Cluster{}
		var free []int
		for i := range 1 + rng.IntN(4) {
			f := rng.IntN(9)
			free = append(free, f)
			c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), "H100", 8, f))
		}
		small, large := []int{1, 2}[rng.IntN(2)], []int{4, 8}[rng.IntN(2)]
		if rng.IntN(2) == 0 {
			c.Table = NewTable(nil, c)
		}
		possible := reaches(free, []int{large, small})
		if _, ok := c.Place(gpus(small, "H100")); !ok {
			continue
		}
		slots, err := c.Slots(gpus(large, "H100"))
		require.NoError(t, err)
		require.Equal(t, possible, slots > 0, "round %d: free %v, first %d, then %d", round, free, small, large)
	}
}

// outlookOf is that many different shapes on three accelerators.
func outlookOf(shapes int) Outlook {
	o := Outlook{}
	for i := range shapes {
		r := gpus(1+i%8, []capacity.Accelerator{"H100", "A100", "L40S"}[i%3])
		r.Shape.MilliCPU = int64(1+i/24) * 4000
		o = append(o, Expected{Shape: r.Shape, Weight: 1000})
	}
	return o
}

func BenchmarkSlots(b *testing.B) {
	c := &Cluster{}
	for i := range 5_000 {
		accelerator := capacity.Accelerator("H100")
		if i%7 != 0 {
			accelerator = ""
		}
		c.Nodes = append(c.Nodes, gpuNode(fmt.Sprint("n", i), accelerator, 8, i%9))
	}
	r := gpus(4, "H100")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Slots(r)
	}
}

func TestAVerdictThatIsNone(t *testing.T) {
	for v := range Verdict(verdicts) {
		assert.NotEqual(t, "invalid verdict", v.String())
		assert.NotEmpty(t, v.String())
	}
	assert.Equal(t, "invalid verdict", Verdict(verdicts).String())
}

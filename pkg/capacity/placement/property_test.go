package placement

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// The model is compared with the plain definition of what a node holds, written
// without any of its code, on small clusters on which devices, CPU, memory, pod slots,
// types, narrower forms, pools and refusals bind about equally often.

// randomCluster is one to five nodes of two types and unknown ones, some with slices
// beside.
func randomCluster(rng *rand.Rand) *Cluster {
	types := []capacity.Accelerator{"H100", "H100", "A100", ""}
	c := &Cluster{}
	for i := range 1 + rng.IntN(5) {
		n := gpuNode(fmt.Sprint("n", i), types[rng.IntN(len(types))], 8, rng.IntN(11)-1)
		n.MemoryGiB = []int{0, 40, 80}[rng.IntN(3)]
		n.Free.MilliCPU = int64(rng.IntN(13)) * 1000
		n.Free.MemoryBytes = int64(rng.IntN(13)) << 30
		n.Free.Pods = rng.IntN(9) - 1
		if rng.IntN(2) == 0 {
			n.Free.MilliCPU, n.Free.MemoryBytes, n.Free.Pods = 64_000, 64<<30, 64
		}
		if rng.IntN(4) == 0 {
			n.Beside = []Pool{
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

func randomRequest(rng *rand.Rand, nodes int) *Request {
	r := gpus(rng.IntN(6), []capacity.Accelerator{"H100", "H100", "A100", "slice"}[rng.IntN(4)])
	r.Shape.MilliCPU = int64(rng.IntN(4)) * 1000
	r.Shape.MemoryBytes = int64(rng.IntN(4)) << 30
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

// held is a node as the plain definition sees it: a number for everything.
type held struct {
	devices, slices10, slices20 int
	milliCPU, memoryBytes       int64
	pods                        int
}

func plainly(c *Cluster) []held {
	nodes := make([]held, len(c.Nodes))
	for i, n := range c.Nodes {
		nodes[i] = held{devices: n.Free.Devices, milliCPU: n.Free.MilliCPU, memoryBytes: n.Free.MemoryBytes, pods: n.Free.Pods}
		if n.Beside != nil {
			nodes[i].slices10, nodes[i].slices20 = n.Beside[0].Free, n.Beside[1].Free
		}
	}
	return nodes
}

// take puts a pod on the node if there is room for it. The node in the cluster says
// what does not change.
func (h *held) take(n *Node, s capacity.Shape, refused bool) bool {
	after := *h
	after.milliCPU -= s.MilliCPU
	after.memoryBytes -= s.MemoryBytes
	after.pods--
	right := true
	switch {
	case s.Devices == 0:
	case s.Accelerator == "slice" && s.MemoryGiB == 10:
		after.slices10 -= s.Devices
	case s.Accelerator == "slice" && s.MemoryGiB == 20:
		after.slices20 -= s.Devices
	case s.Accelerator == "slice":
		right = false
	default:
		after.devices -= s.Devices
		right = n.Accelerator == s.Accelerator && (s.MemoryGiB == 0 || n.MemoryGiB == s.MemoryGiB)
	}
	enough := (s.Devices == 0 || after.devices >= 0 || s.Accelerator == "slice") && after.slices10 >= 0 && after.slices20 >= 0 &&
		(s.MilliCPU == 0 || after.milliCPU >= 0) && (s.MemoryBytes == 0 || after.memoryBytes >= 0) && after.pods >= 0
	if refused || n.Out != "" || !right || !enough {
		return false
	}
	*h = after
	return true
}

// bruteForce counts by putting pods on nodes one after the other.
func bruteForce(c *Cluster, r *Request) int {
	count := 0
	for i, h := range plainly(c) {
		for h.take(&c.Nodes[i], r.Shape, r.Refused != nil && r.Refused[i] != "") {
			count++
		}
	}
	return count
}

// check compares everything that can be counted on one random cluster.
func check(t *testing.T, rng *rand.Rand, round int) (slots int) {
	c := randomCluster(rng)
	r := randomRequest(rng, len(c.Nodes))
	before := c.Clone()

	slots, err := c.Slots(r)
	require.NoError(t, err)
	require.Equal(t, bruteForce(c, r), slots, "round %d: %+v on %+v", round, r, c.Nodes)
	require.Equal(t, slots > 0, c.Explain(r).Nodes[Fits] > 0)
	if rng.IntN(16) == 0 {
		c.Table = NewTable(Outlook{{Shape: randomRequest(rng, 1).Shape, Weight: 1}}, c)
	}
	placeAndRemove(t, c, r, slots)
	c.Table = nil
	require.Equal(t, before, c, "round %d: what was placed is undone", round)
	return slots
}

// placeAndRemove places until nothing fits, which must be so many times, and takes
// everything off again.
func placeAndRemove(t *testing.T, c *Cluster, r *Request, slots int) {
	var placed []int
	for {
		node, ok := c.Place(r)
		if !ok {
			break
		}
		placed = append(placed, node)
	}
	require.Len(t, placed, slots)
	for _, node := range placed {
		c.Remove(r, node)
	}
}

func TestTheModelEqualsBruteForce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	some := 0
	for round := range 5_000 {
		if check(t, rng, round) > 0 {
			some++
		}
	}
	require.Greater(t, some, 1_000, "both answers are common")
	require.Less(t, some, 4_000)
}

// The same on many more clusters, because what the model gets wrong is rare.
func TestTheModelEqualsBruteForceOnAHundredThousandClusters(t *testing.T) {
	t.Parallel()
	for shard := range uint64(10) {
		t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(100, shard))
			for round := range 10_000 {
				check(t, rng, round)
			}
		})
	}
}

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
		n := gpuNode(fmt.Sprint("n", i), types[rng.IntN(len(types))], 8, rng.IntN(10)-1)
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
		if rng.IntN(2) == 0 {
			n.Other = []Stock{{Allocatable: 4, Free: int64(rng.IntN(6)) - 1}, {Allocatable: 9, Free: int64(rng.IntN(10))}}[:1+rng.IntN(2)]
		}
		c.Nodes = append(c.Nodes, n)
	}
	for i := range rng.IntN(3) {
		hard := int64(rng.IntN(20))
		c.Quotas = append(c.Quotas, Quota{Namespace: "team", Name: fmt.Sprint("q", i), Resource: "pods", Hard: hard, Left: hard - int64(rng.IntN(4))})
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
	if rng.IntN(3) == 0 {
		r.Other = []Amount{{Index: 1 + rng.IntN(2), Count: int64(rng.IntN(3))}, {Index: 0, Count: 1}}[:1+rng.IntN(2)]
	}
	return r
}

// yielding lets pods of some nodes yield to the request: what they hold is not free.
func yielding(rng *rand.Rand, c *Cluster, r *Request) *Request {
	if rng.IntN(3) > 0 {
		return r
	}
	r.Yields = make([]Yield, len(c.Nodes))
	for i := range r.Yields[:1+rng.IntN(len(c.Nodes))] {
		n := &c.Nodes[i]
		devices := n.Allocatable.Devices - n.Free.Devices
		if r.Shape.Accelerator == "slice" && n.Beside != nil {
			devices = min(n.Beside[0].Allocatable-n.Beside[0].Free, n.Beside[1].Allocatable-n.Beside[1].Free)
		}
		r.Yields[i] = Yield{Resources: Resources{
			Devices: min(rng.IntN(4), max(devices, 0)), MilliCPU: int64(rng.IntN(3)) * 1000, MemoryBytes: int64(rng.IntN(3)) << 30, Pods: rng.IntN(3),
		}}
		if len(n.Other) > 0 {
			r.Yields[i].Other = []int64{min(int64(rng.IntN(2)), n.Other[0].Allocatable-n.Other[0].Free)}
		}
	}
	return r
}

// charged lets the request count against the quotas of the cluster.
func charged(rng *rand.Rand, c *Cluster, r *Request) *Request {
	for i := range c.Quotas {
		if rng.IntN(2) == 0 {
			r.Charges = append(r.Charges, Amount{Index: i, Count: int64(rng.IntN(4))})
		}
	}
	return r
}

// held is a node as the plain definition sees it: a number for everything.
type held struct {
	devices, slices10, slices20 int
	milliCPU, memoryBytes       int64
	pods                        int
	other                       [3]int64
}

// plainly is every node once what yields to the request has yielded.
func plainly(c *Cluster, r *Request) []held {
	nodes := make([]held, len(c.Nodes))
	for i, n := range c.Clone().Nodes {
		if r.Yields != nil {
			give(&n, r.Shape, &r.Yields[i])
		}
		nodes[i] = held{devices: n.Free.Devices, milliCPU: n.Free.MilliCPU, memoryBytes: n.Free.MemoryBytes, pods: n.Free.Pods}
		if n.Beside != nil {
			nodes[i].slices10, nodes[i].slices20 = n.Beside[0].Free, n.Beside[1].Free
		}
		for j := range n.Other {
			nodes[i].other[j] = n.Other[j].Free
		}
	}
	return nodes
}

// give adds what yields to what is free, never beyond what there is.
func give(n *Node, s capacity.Shape, y *Yield) {
	slice := map[int]int{10: 0, 20: 1}
	if at, ok := slice[s.MemoryGiB]; s.Accelerator == "slice" {
		if ok && n.Beside != nil && y.Devices > 0 {
			n.Beside[at].Free = min(n.Beside[at].Free+y.Devices, n.Beside[at].Allocatable)
		}
	} else if y.Devices > 0 {
		n.Free.Devices = min(n.Free.Devices+y.Devices, n.Allocatable.Devices)
	}
	if y.MilliCPU > 0 {
		n.Free.MilliCPU = min(n.Free.MilliCPU+y.MilliCPU, n.Allocatable.MilliCPU)
	}
	if y.MemoryBytes > 0 {
		n.Free.MemoryBytes = min(n.Free.MemoryBytes+y.MemoryBytes, n.Allocatable.MemoryBytes)
	}
	if y.Pods > 0 {
		n.Free.Pods = min(n.Free.Pods+y.Pods, n.Allocatable.Pods)
	}
	for j := range min(len(n.Other), len(y.Other)) {
		if y.Other[j] > 0 {
			n.Other[j].Free = min(n.Other[j].Free+y.Other[j], n.Other[j].Allocatable)
		}
	}
}

// take puts a pod on the node if there is room for it. The node in the cluster says
// what does not change.
func (h *held) take(n *Node, r *Request, refused bool) bool {
	s, after := r.Shape, *h
	others := true
	for _, a := range r.Other {
		after.other[a.Index] -= a.Count
		others = others && (a.Count == 0 || after.other[a.Index] >= 0)
	}
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
	if refused || n.Out != "" || !right || !enough || !others {
		return false
	}
	*h = after
	return true
}

// bruteForce counts by putting pods on nodes one after the other, as long as the quotas
// allow it.
func bruteForce(c *Cluster, r *Request) int {
	left := make([]int64, len(c.Quotas))
	for i, q := range c.Quotas {
		left[i] = q.Left
	}
	allowed := func() bool {
		for _, a := range r.Charges {
			left[a.Index] -= a.Count
		}
		for _, a := range r.Charges {
			if a.Count > 0 && left[a.Index] < 0 {
				return false
			}
		}
		return true
	}
	count := 0
	for i, h := range plainly(c, r) {
		for h.take(&c.Nodes[i], r, r.Refused != nil && r.Refused[i] != "") {
			if !allowed() {
				return count
			}
			count++
		}
	}
	return count
}

// check compares everything that can be counted on one random cluster.
func check(t *testing.T, rng *rand.Rand, round int) (slots int) {
	c := randomCluster(rng)
	r := yielding(rng, c, charged(rng, c, randomRequest(rng, len(c.Nodes))))
	before := c.Clone()

	slots, err := c.Slots(r)
	require.NoError(t, err)
	require.Equal(t, bruteForce(c, r), slots, "round %d: %+v on %+v", round, r, c.Nodes)
	e := c.Explain(r)
	require.Equal(t, slots > 0, e.Nodes[Fits] > 0 && e.Quota == "", "round %d: %v", round, e)
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
	forced := false
	for at, node := range placed {
		// What was placed before is still there when one looks from the end.
		for _, later := range placed[at:] {
			c.Remove(r, later)
		}
		free := c.Nodes[node].slots(&r.Shape, r.Other, &none) > 0
		require.False(t, forced && free, "nobody yields while there is room elsewhere")
		forced = forced || !free
		for _, later := range placed[at:] {
			c.put(r, later, 1)
		}
	}
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

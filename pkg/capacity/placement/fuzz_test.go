package placement

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// What nodes and templates say may be anything. Nothing panics, nothing overflows into
// room that is not there, and no work grows with a number that somebody wrote.
func FuzzAbsurdNumbers(f *testing.F) {
	most := int64(math.MaxInt64)
	f.Add(int64(8), int64(8), int64(64_000), int64(1)<<40, int64(110), int64(1), int64(1000), int64(1)<<30, int64(1), "H100")
	f.Add(most, most, most, most, most, most, most, most, most, "H100")
	f.Add(most, -most-1, most, -most-1, most, int64(1), int64(0), int64(0), -most-1, "")
	f.Add(-most-1, most, -most-1, most, -most-1, -most-1, -most-1, -most-1, most, "H100")
	f.Add(int64(1)<<40, int64(1)<<40, int64(3), int64(3), most, int64(1), int64(1), int64(1), int64(1)<<40, "H100")
	f.Add(int64(0), most, most-1, most/3, int64(2), int64(7), most/2, most/2, int64(100), "L4")
	f.Fuzz(func(t *testing.T, allocatable, free, cpu, memory, pods, devices, wantsCPU, wantsMemory, count int64, name string) {
		n := Node{
			Name: "a", Accelerator: capacity.Accelerator(name),
			Allocatable: Resources{int(allocatable), cpu, memory, int(pods)},
			Free:        Resources{int(free), cpu, memory, int(pods)},
			Beside:      []Pool{{Device: capacity.Device{Accelerator: "slice"}, Allocatable: int(free), Free: int(allocatable)}},
			Other:       []Stock{{Allocatable: cpu, Free: free}},
		}
		c := &Cluster{
			Nodes:  []Node{n, gpuNode("b", "H100", 8, 5), n},
			Quotas: []Quota{{Resource: "requests.cpu", Hard: free, Left: memory}, {Resource: "memory", Hard: cpu, Left: pods}},
		}
		r := &Request{Shape: capacity.Shape{Accelerator: "H100", Devices: int(devices), Pods: 1, MilliCPU: wantsCPU, MemoryBytes: wantsMemory}}
		slice := &Request{
			Shape: capacity.Shape{Accelerator: "slice", Devices: int(count), MilliCPU: cpu},
			Other: []Amount{{Count: devices}, {Index: 1, Count: count}}, Charges: []Amount{{Index: 0, Count: wantsCPU}, {Index: 1, Count: count}},
			Yields: []Yield{{Resources: Resources{int(pods), memory, cpu, int(free)}, Other: []int64{free}}},
		}
		outlook := Outlook{
			{Shape: r.Shape, Weight: count}, {Shape: slice.Shape, Weight: free, Also: []capacity.Accelerator{"H100", ""}},
			{Shape: gpus(2, "H100").Shape, Weight: most},
		}
		for _, table := range []*Table{nil, NewTable(nil, c), NewTable(outlook, c), NewTable(outlook, &Cluster{}).Refresh(c)} {
			c.Table = table
			absurd(t, c.Clone(), []*Request{r, slice, gpus(1, "H100")}, int(count))
		}
	})
}

// absurd asks everything.
func absurd(t *testing.T, c *Cluster, requests []*Request, count int) {
	var placed []Placed
	for _, r := range requests {
		slots, err := c.Slots(r)
		require.GreaterOrEqual(t, slots, 0)
		if err == nil {
			e := c.Explain(r)
			assert.Equal(t, slots > 0, e.Nodes[Fits] > 0 && e.Quota == "")
			assert.NotEmpty(t, e.String())
		}
		for i := range c.Nodes {
			assert.LessOrEqual(t, c.Table.Score(&c.Nodes[i], r.Shape, count, -count), int64(0))
			fits := c.Fits(r, i)
			before := c.Clone()
			c.put(r, i, 1)
			c.Remove(r, i)
			if fits {
				assert.Equal(t, before, c)
			}
			c = before
			placed = append(placed, Placed{Request: r, Node: i})
		}
		c.LargestHole(r)
		replicas := []Replica{{Node: 0, State: Ready, Load: math.Inf(1)}, {Node: 2, State: Ready, Load: math.Inf(-1)}, {Node: 1, State: 77}}
		assert.Len(t, c.Victims(r, replicas, 2), 2)
		c.Moves(r, placed)
	}
	for _, lost := range c.Table.Fragmentation(c) {
		assert.GreaterOrEqual(t, lost, 0)
	}
}

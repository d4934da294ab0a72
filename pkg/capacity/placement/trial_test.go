package placement

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A trial says what the cluster says that it remembers, whatever was placed and taken
// off before.
func TestATrialAnswersAsTheClusterDoes(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		slow := &Cluster{}
		types := []capacity.Accelerator{"H100", "L40S", ""}
		for i := range 1 + random.IntN(12) {
			size := Resources{Devices: random.IntN(9), MilliCPU: int64(random.IntN(64000)), MemoryBytes: int64(random.IntN(1 << 30)), Pods: 1 + random.IntN(20)}
			n := Node{Name: fmt.Sprint("n", i), Accelerator: types[random.IntN(3)], Allocatable: size, Free: size}
			n.Free.Devices -= random.IntN(n.Free.Devices + 1)
			if random.IntN(2) == 0 {
				n.Other = []Stock{{Allocatable: 5, Free: int64(random.IntN(6))}}
			}
			slow.Nodes = append(slow.Nodes, n)
		}
		slow.Quotas = []Quota{{Name: "q", Hard: 20, Left: int64(random.IntN(20))}}
		var requests []*Request
		for range 1 + random.IntN(4) {
			r := &Request{Shape: capacity.Shape{Accelerator: types[random.IntN(2)], Devices: 1 << random.IntN(4), Pods: 1, MilliCPU: int64(random.IntN(9000)), MemoryBytes: int64(random.IntN(1 << 27))}}
			if random.IntN(5) == 0 {
				r.Shape = capacity.Shape{Pods: 1}
			}
			if random.IntN(2) == 0 {
				r.Refused = make([]string, len(slow.Nodes))
				r.Refused[random.IntN(len(slow.Nodes))] = "taint"
			}
			if random.IntN(3) == 0 {
				r.Other = []Amount{{Count: 1}}
			}
			requests = append(requests, yielding(random, slow, charged(random, slow, r)))
		}
		outlook := Outlook{}
		for _, r := range requests {
			outlook = append(outlook, Expecting(r.Shape, 2, 1, 5))
		}
		trial := NewTrial(slow.Clone())
		trial.Expect(outlook)
		slow.Table = NewTable(outlook, slow)
		type placed struct {
			r    *Request
			node int
		}
		var all []placed
		for range 60 {
			r := requests[random.IntN(len(requests))]
			if len(all) > 0 && random.IntN(3) == 0 {
				last := all[len(all)-1]
				all = all[:len(all)-1]
				slow.Remove(last.r, last.node)
				trial.Remove(last.r, last.node)
			} else {
				node, ok := slow.Place(r)
				got, gotOK := trial.Place(r)
				require.Equal(t, ok, gotOK, "seed %d", seed)
				require.Equal(t, node, got, "seed %d", seed)
				if ok {
					all = append(all, placed{r, node})
				}
			}
			r = requests[random.IntN(len(requests))]
			want, _ := slow.Slots(r)
			slots, err := trial.Slots(r)
			require.NoError(t, err)
			require.Equal(t, want, slots, "seed %d", seed)
			require.Equal(t, slow.Explain(r).String(), trial.Explain(r).String(), "seed %d", seed)
			require.Equal(t, slow.LargestHole(r), trial.LargestHole(r), "seed %d", seed)
		}
	}
}

// What cannot be counted finds no place, and takes none.
func TestATrialPlacesNothingOfSeveralPods(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8)}}
	r := gpus(1, "H100")
	r.Shape.Pods = 2
	node, ok := NewTrial(c).Place(r)
	assert.False(t, ok)
	assert.Equal(t, -1, node)
	assert.Equal(t, 8, c.Nodes[0].Free.Devices)
}

// Of numbers that no node has the most that is counted is added up, in whichever order they
// come.
func TestATrialAddsUpAbsurdNumbers(t *testing.T) {
	for want, pods := range map[int][]int{mostSlots + 5: {math.MaxInt, 5}, 6 + mostSlots: {6, mostSlots + 1}, 2 * mostSlots: {math.MaxInt, mostSlots}} {
		c := &Cluster{}
		for i, n := range pods {
			c.Nodes = append(c.Nodes, Node{Name: string(rune('a' + i)), Allocatable: Resources{Pods: n}, Free: Resources{Pods: n}})
		}
		r := &Request{Shape: capacity.Shape{Pods: 1}}
		slots, err := NewTrial(c).Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, "%v", pods)
		slots, err = c.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, "%v", pods)
	}
}

package placement

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A quota is a limit like the nodes, for all requests that count against it, and the
// reason says what is left of it.
func TestAQuotaLimitsWhatTheNodesHold(t *testing.T) {
	c := &Cluster{
		Nodes:  []Node{gpuNode("a", "H100", 8, 8), gpuNode("b", "H100", 8, 8)},
		Quotas: []Quota{{Namespace: "team", Name: "gpus", Resource: "requests.nvidia.com/gpu", Hard: 8, Left: 6}, {Namespace: "team", Name: "size", Resource: "pods", Hard: 9, Left: 9}},
	}
	four, one := gpus(4, "H100"), gpus(1, "H100")
	four.Charges = []Amount{{Index: 0, Count: 4}, {Index: 1, Count: 1}}
	one.Charges = []Amount{{Index: 0, Count: 1}, {Index: 1, Count: 1}}
	for _, world := range []interface {
		Slots(*Request) (int, error)
		Place(*Request) (int, bool)
		Remove(*Request, int)
		Explain(*Request) Explanation
		Charge(*Request, int)
	}{c.Clone(), NewTrial(c.Clone())} {
		slots := func(r *Request) int {
			n, err := world.Slots(r)
			require.NoError(t, err)
			return n
		}
		assert.Equal(t, 1, slots(four))
		assert.Equal(t, 6, slots(one))
		assert.Equal(t, 16, slots(gpus(1, "H100")), "of another namespace")
		assert.NotContains(t, world.Explain(four).String(), "quota")
		node, ok := world.Place(four)
		require.True(t, ok)
		assert.Equal(t, 0, slots(four))
		assert.Equal(t, 2, slots(one))
		assert.Equal(t, "wants 4xH100: quota gpus of namespace team: 2 of requests.nvidia.com/gpu left, 2 nodes have room", world.Explain(four).String())
		assert.NotContains(t, world.Explain(one).String(), "quota")
		assert.NotContains(t, world.Explain(gpus(4, "H100")).String(), "quota", "of another namespace")
		_, again := world.Place(four)
		assert.False(t, again)
		world.Remove(four, node)
		assert.Equal(t, 1, slots(four))
		world.Charge(four, 1)
		assert.Equal(t, 0, slots(four))
		world.Charge(four, -2)
		assert.Equal(t, 2, slots(four))
	}
	_, moves := func() (Room, bool) { c.Quotas[0].Left = 0; return c.Moves(four, nil) }()
	assert.False(t, moves, "no move makes room in a quota")
}

func TestAllowed(t *testing.T) {
	c := &Cluster{Quotas: []Quota{{Namespace: "n", Name: "a", Left: 7}, {Namespace: "n", Name: "b", Left: -1}, {Namespace: "n", Name: "c", Left: 5}}}
	for name, tc := range map[string]struct {
		charges []Amount
		want    int
		by      string
	}{
		"no quota":                {nil, math.MaxInt, ""},
		"nothing of it":           {[]Amount{{Index: 1, Count: 0}}, math.MaxInt, ""},
		"the least":               {[]Amount{{Index: 0, Count: 3}, {Index: 2, Count: 2}}, 2, "a"},
		"the least, another way":  {[]Amount{{Index: 2, Count: 5}, {Index: 0, Count: 3}}, 1, "c"},
		"more taken than allowed": {[]Amount{{Index: 0, Count: 1}, {Index: 1, Count: 1}}, 0, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			got, by := c.Allowed(&Request{Charges: tc.charges})
			assert.Equal(t, tc.want, got)
			if tc.by != "" {
				tc.by = "quota " + tc.by + " of namespace n: "
			}
			assert.Equal(t, tc.by, by[:min(len(tc.by), len(by))])
			assert.Equal(t, tc.by == "", by == "")
		})
	}
}

func TestAQuotaSaysWhatIsLeft(t *testing.T) {
	for want, q := range map[string]Quota{
		"quota q of namespace n: 4 of requests.nvidia.com/gpu left": {Resource: "requests.nvidia.com/gpu", Left: 4},
		"quota q of namespace n: 0 of pods left":                    {Resource: "pods", Left: -3},
		"quota q of namespace n: 1.5 cores of limits.cpu left":      {Resource: "limits.cpu", Left: 1500},
		"quota q of namespace n: 2 GiB of memory left":              {Resource: "memory", Left: 2 << 30},
	} {
		q.Name, q.Namespace = "q", "n"
		assert.Equal(t, "quota q of namespace n: say more", q.says(Amount{Count: 1, Name: "say more"}))
		assert.Equal(t, want, q.says(Amount{Count: 1}))
	}
}

// Further resources are counted as numbers of the node, and named where they are what
// is missing.
func TestFurtherResources(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "", 0, 0), gpuNode("b", "", 0, 0), gpuNode("c", "", 0, 0)}}
	c.Nodes[0].Other = []Stock{{Allocatable: 1, Free: 1}, {Allocatable: 8, Free: 8}}
	c.Nodes[1].Other = []Stock{{Allocatable: 1, Free: 1}, {Allocatable: 8, Free: 3}}
	r := &Request{Shape: capacity.Shape{Pods: 1, MilliCPU: 1000}, Other: []Amount{{Index: 1, Count: 3, Name: "furiosa.ai/rngd"}}}
	slots, err := c.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 3, slots)
	node, ok := c.Place(r)
	require.True(t, ok)
	slots, err = c.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 2, slots, "node %d", node)
	r.Other[0].Count = 9
	assert.Equal(t, TooLittleOther, c.Verdict(r, 0))
	assert.True(t, TooLittleOther.Resolvable())
	assert.Equal(t, "wants 9 of furiosa.ai/rngd: 3 nodes have less than 9 of furiosa.ai/rngd free", c.Explain(r).String())
	both := gpus(1, "H100")
	both.Other = []Amount{{Index: -1, Count: 2, Name: "rdma/hca"}}
	c.Nodes[2] = gpuNode("c", "H100", 8, 8)
	assert.Equal(t, "wants 1xH100 and 2 of rdma/hca: 1 H100 node has less than 2 of rdma/hca free, 2 nodes are of another type", c.Explain(both).String())
}

// Pods of lower priority yield: what they hold counts as free for who may preempt them,
// and as held for everybody else.
func TestWhoMayPreemptCountsWhatYields(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 0), gpuNode("b", "H100", 8, 2)}}
	r := gpus(4, "H100")
	r.Yields = []Yield{{Resources: Resources{Devices: 8, MilliCPU: 1000, Pods: 2}}, {Resources: Resources{Devices: 1}}}
	slots, err := c.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 2, slots)
	assert.Equal(t, 8, c.LargestHole(r))
	assert.Equal(t, "wants 4xH100: 1 node has room, 1 H100 node has fewer than 4 free (largest hole 3)", c.Explain(r).String())
	assert.Equal(t, TooFewFree, c.Verdict(gpus(4, "H100"), 0))

	small := gpus(1, "H100")
	small.Yields = r.Yields[:1]
	node, ok := c.Place(small)
	require.True(t, ok)
	assert.Equal(t, 1, node, "nobody yields while there is room")
	_, _ = c.Place(small)
	node, ok = c.Place(small)
	require.True(t, ok)
	assert.Equal(t, 0, node)
	slots, err = c.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 1, slots, "what was placed holds what yielded")
	slots, err = c.Emptied().Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 4, slots, "never more than there is")
}

// Advice to move replicas never has others yield to them.
func TestMovesAskNobodyToYield(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 4), gpuNode("b", "H100", 8, 0)}}
	moving := gpus(4, "H100")
	moving.Yields = []Yield{{}, {Resources: Resources{Devices: 4}}}
	_, ok := c.Moves(gpus(8, "H100"), []Placed{{Name: "r", Request: moving, Node: 0}})
	assert.False(t, ok)
	c.Nodes[1].Free.Devices = 4
	room, ok := c.Moves(gpus(8, "H100"), []Placed{{Name: "r", Request: moving, Node: 0}})
	require.True(t, ok)
	assert.Equal(t, []Move{{Replica: 0, From: 0, To: 1}}, room.Moves)
}

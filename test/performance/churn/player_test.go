package churn

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestPoliciesOnTinyClusters(t *testing.T) {
	// Node 0 holds six of eight, node 1 four, node 2 none.
	steps := func() *world {
		w := tiny("H100", "H100", "H100")
		w.with(2, 5, h100, 0, 0, 0, 1, 1)
		return w
	}
	for _, test := range []struct {
		name   string
		policy func(w *world) policy
		want   int
	}{
		{"spreading takes the emptiest", func(*world) policy { return scored{spreading, chanceForTest()} }, 2},
		{"mostallocated takes the fullest", func(*world) policy { return scored{mostAllocated, chanceForTest()} }, 0},
		{"gradient breaks no hole that others need", func(w *world) policy { return scored{newGradient(w).score, chanceForTest()} }, 0},
		{"ours breaks no hole that others need", func(*world) policy { return &ours{} }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := steps()
			v := w.with(1, 1, h100)
			w.with(4, 1, h100)
			w.with(8, 1, h100)
			p := test.policy(w)
			p.begin(w)
			assert.Equal(t, test.want, p.place(w, v))
			large := w.with(8, 2, h100, 2)
			assert.Equal(t, -1, p.place(w, large), "no room")
		})
	}
}

func TestSpreadingLooksAtCPU(t *testing.T) {
	w := tiny("H100", "H100")
	w.cluster.Nodes[0].Allocatable.MilliCPU, w.cluster.Nodes[0].Free.MilliCPU = 100_000, 60_000
	w.cluster.Nodes[1].Allocatable.MilliCPU, w.cluster.Nodes[1].Free.MilliCPU = 100_000, 50_000
	w.cluster.Nodes[0].Free.Devices = 1
	v := w.with(1, 1, h100)
	v.kind.cores = 10
	assert.Equal(t, 0, scored{spreading, chanceForTest()}.place(w, v), "the fewer devices, but the more CPU")
	assert.InDelta(t, 50, spreading(w, v, 0), 0)
}

func TestGradientByHand(t *testing.T) {
	w := tiny("H100", "H100", "A100")
	one, eight := w.with(1, 4, h100), w.with(8, 1, h100)
	one.wave.mean, eight.wave.mean = 8, 1 // half of the devices each
	g := newGradient(w)
	n := &w.cluster.Nodes[0]
	assert.InDelta(t, 0, g.fragments(n), 1e-12, "the empty node holds both")
	w.start(one, 0)
	assert.InDelta(t, 3.5, g.fragments(n), 1e-12, "seven free are of no use to the half that wants eight")
	assert.InDelta(t, 8, g.fragments(&w.cluster.Nodes[2]), 1e-12, "another type is of no use to all")
	assert.Greater(t, g.score(w, one, 0), g.score(w, one, 1), "the used node loses a fragment, the empty one becomes one")
}

func TestTiesAreBrokenByChance(t *testing.T) {
	w := tiny("H100", "H100", "H100")
	v := w.with(1, 1, h100)
	p := scored{mostAllocated, chanceForTest()}
	taken := map[int]int{}
	for range 300 {
		taken[p.place(w, v)]++
	}
	require.Len(t, taken, 3)
	for node := range 3 {
		assert.InDelta(t, 100, taken[node], 40)
	}
}

func TestOursKeepsTheOrderOfTypes(t *testing.T) {
	w := tiny("H100", "A100")
	w.with(7, 1, h100, 0)
	v := w.with(1, 2, both)
	p := &ours{}
	p.begin(w)
	assert.Equal(t, 1, p.place(w, v), "a whole A100 node before the last H100")
	w.with(8, 1, a100, 1)
	assert.Equal(t, 0, p.place(w, v), "then the next type")
}

func TestOutlookIsTheVariantsAsTheyStand(t *testing.T) {
	w := tiny("H100", "A100")
	w.with(2, 5, both, 0, 0)
	w.with(4, 0, h100)
	w.with(1, 1, h100, 0, 0)
	got := outlook(w)
	assert.Equal(t, placement.Outlook{
		{Shape: w.variants[0].requests[0].Shape, Also: h100, Weight: 3*1000 + 2*100, Waiting: 3},
		{Shape: w.variants[1].requests[0].Shape, Weight: 100},
		{Shape: w.variants[2].requests[0].Shape, Weight: 2 * 100},
	}, got)
}

func TestRandomVictimsAreEachOnce(t *testing.T) {
	w := tiny("H100", "H100")
	w.with(1, 2, h100, 0, 0, 0, 1, 1)
	w.with(1, 3, h100, 0)
	chooser := randomVictims{chanceForTest()}
	seen := map[int]int{}
	for range 200 {
		all := chooser.victims(w)
		require.Len(t, all, 2)
		assert.Empty(t, all[1], "wants more, not less")
		require.Len(t, all[0], 3)
		for _, victim := range all[0] {
			seen[victim]++
		}
	}
	require.Len(t, seen, 5)
	for victim := range 5 {
		assert.InDelta(t, 120, seen[victim], 40)
	}
}

func TestModelVictimsEmptyANodeTogether(t *testing.T) {
	w := tiny("H100", "H100", "H100")
	four := w.with(4, 1, h100, 0, 1)
	two := w.with(2, 2, h100, 0, 1, 2)
	last := w.with(2, 1, h100, 1, 2)
	w.with(8, 1, h100)
	// Node 0 holds a four and a two, node 1 a four and two twos, node 2 two twos.
	leave(w, modelVictims{})
	empty := 0
	for i := range w.cluster.Nodes {
		if w.cluster.Nodes[i].Free.Devices == 8 {
			empty++
		}
	}
	assert.GreaterOrEqual(t, empty, 1)
	assert.Len(t, four.nodes, 1)
	assert.Len(t, two.nodes, 2)
	assert.Len(t, last.nodes, 1)
}

// The second replica of a small variant goes to another node although that is no tight
// fit; where it is not to, that it had the choice is counted.
func TestTheFirstReplicasAreSpread(t *testing.T) {
	for name, c := range map[string]struct {
		policy *ours
		target int
		node   int
		beside beside
	}{
		"spread":      {&ours{}, 2, 1, beside{choices: 1}},
		"not spread":  {&ours{together: true}, 2, 0, beside{choices: 1, taken: 1}},
		"one of many": {&ours{}, 4, 0, beside{}},
	} {
		t.Run(name, func(t *testing.T) {
			w := tiny("H100", "H100")
			w.with(6, 1, h100, 0)
			v := w.with(1, c.target, h100, 0)
			c.policy.begin(w)
			assert.Equal(t, c.node, c.policy.place(w, v))
			assert.Equal(t, c.beside, w.beside)
		})
	}
}

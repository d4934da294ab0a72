package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestVictims(t *testing.T) {
	w := newWorld(2)
	w.variants = w.variants[:1]
	w.now = epoch
	w.setReplicas(0, 5)
	w.now = w.now.Add(time.Hour)
	w.cluster = &placement.Cluster{Nodes: nodes(2, "H100", 4)}
	w.cluster.Nodes[0].Free.Devices, w.cluster.Nodes[1].Free.Devices = 1, 2
	s := w.snapshot()
	v := &s.Models[0].Variants[0]
	for i := range v.Replicas {
		v.Replicas[i].Node = []string{"H100-0", "H100-1", "H100-0", "H100-1", "H100-0"}[i]
	}
	// A second model wants whole nodes.
	big := Model{Namespace: "ns", ID: "n", Variants: []Variant{{Name: "big", Request: request("H100", 4), Cost: 1}}}
	s.Models = append(s.Models, big)
	policy := policyFor(false, "a-h100", "big")
	down := policy.Variants[Key{"ns", "a-h100"}]
	down.Down.Window = 0
	down.Max = 3
	policy.Variants[Key{"ns", "a-h100"}] = down

	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Empty(t, plan.Models[0].Variants[0].Victims, "the choice is not ours")
	v.Picks = true
	down.Min = 3
	policy.Variants[Key{"ns", "a-h100"}] = down
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	require.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.ElementsMatch(t, []string{"a-h100-1", "a-h100-3"}, plan.Models[0].Variants[0].Victims, "the two that empty a node")

	v.Current = 4
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Len(t, plan.Models[0].Variants[0].Victims, 2, "one is still there from before")

	v.Replicas[0].Marked = true
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	assert.Equal(t, "a-h100-0", plan.Models[0].Variants[0].Victims[0], "what was chosen before stays chosen")
	v.Replicas[0].Marked = false

	v.Current, v.Starting = 6, []Starting{{Name: "waits", Since: s.Time}}
	plan, _ = Decide(s, policy, Memory{}, RoundFull)
	require.Equal(t, 3, *plan.Models[0].Variants[0].Desired)
	assert.Equal(t, "waits", plan.Models[0].Variants[0].Victims[0], "what no node holds goes first")
	assert.Len(t, plan.Models[0].Variants[0].Victims, 3)
}

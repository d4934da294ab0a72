package decision

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/preempt"
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
	down := policy.Variants[Key{Namespace: "ns", Name: "a-h100"}]
	down.Down.Window = 0
	down.Max = 3
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = down

	plan, _ := Decide(s, policy, Memory{}, RoundFull)
	assert.Empty(t, plan.Models[0].Variants[0].Victims, "the choice is not ours")
	v.ChoosesVictims = true
	down.Min = 3
	policy.Variants[Key{Namespace: "ns", Name: "a-h100"}] = down
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

// Saturated replicas are not removed while there are others, the busiest last of all; but one
// that gives its room to another model's replica goes, or nobody would have that room.
func TestWhoGivesItsRoomGoesHoweverBusy(t *testing.T) {
	names := func(list []placement.Replica) (names []string) {
		for i := range list {
			names = append(names, list[i].Name)
		}
		return names
	}
	r, _, v := bare(DefaultPolicy(), Memory{}, &Variant{Name: "v", Current: 3, Ready: 3, Replicas: []Replica{
		{Name: "busiest", Waiting: Sample{Value: 9, Time: epoch, Present: true}, KVUse: Sample{Value: 0.9, Time: epoch, Present: true}},
		{Name: "busy", Waiting: Sample{Value: 6, Time: epoch, Present: true}, KVUse: Sample{Value: 0.9, Time: epoch, Present: true}},
		{Name: "idle", Waiting: Sample{Value: 0, Time: epoch, Present: true}, KVUse: Sample{Value: 0.1, Time: epoch, Present: true}},
	}})
	v.Load.Of = []fleet.Class{fleet.Saturated, fleet.Saturated, fleet.Unsaturated}
	assert.Equal(t, []string{"idle"}, names(preempt.Removable(r, within(r, v), 1, nil, nil)))
	assert.Equal(t, []string{"idle", "busy"}, names(preempt.Removable(r, within(r, v), 2, nil, nil)))
	gives := preempt.Removable(r, within(r, v), 1, []string{"busiest"}, nil)
	assert.Equal(t, []string{"busiest", "idle"}, names(gives))
	assert.True(t, gives[0].Chosen)
	assert.False(t, gives[1].Chosen)
}

package decision

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestReserveLeavesTheSlotsOfADecision(t *testing.T) {
	s := newWorld(1).snapshot()
	s.Cluster = &placement.Cluster{Nodes: nodes(2, "H100", 8)}
	v := &s.Models[0].Variants[0]
	v.Current, v.Surge = 4, 1
	v.Starting = []Starting{{Name: "waits", Since: s.Time}, {Name: "nominated", Since: s.Time, Held: true}}
	plan, _ := Decide(s, demoPolicy(), Memory{}, RoundFast)
	left := Reserve(s, demoPolicy())
	slots, err := left.Slots(v.Request)
	require.NoError(t, err)
	assert.Equal(t, plan.Models[0].Variants[0].Slots.Count, slots)
	assert.Equal(t, 8, s.Cluster.Nodes[0].Free.Devices, "the snapshot stays as it was")
	s.Cluster = nil
	assert.Nil(t, Reserve(s, demoPolicy()))
}

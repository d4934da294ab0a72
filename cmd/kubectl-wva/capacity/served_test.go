package capacity

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func TestWhatIsServedLeavesOnlyOtherWorkOnTheNodes(t *testing.T) {
	seen := holed()
	served := seen.served()
	free := map[string]int{}
	for _, n := range served.Cluster.Nodes {
		free[n.Name] = n.Free.Devices
	}
	assert.Equal(t, map[string]int{"h100-0": 8, "h100-1": 5, "h100-2": 8, "fresh": 2, "cpu": 0}, free, "training holds 3 of one node, and nobody knows of a variant")
	require.Len(t, served.Variants, 2)
	for i, devices := range []int{8, 1} {
		v := served.Variants[i]
		assert.Same(t, seen.variants[i].object, v.Object)
		assert.Equal(t, []any{capacity.Accelerator("H100"), devices}, []any{v.Request.Shape.Accelerator, v.Request.Shape.Devices})
		assert.Empty(t, v.Problem)
	}
	slots, err := served.Cluster.Slots(served.Variants[0].Request)
	require.NoError(t, err)
	assert.Equal(t, 1, slots, "one node is whole without the small variant, and one is cordoned")
	assert.Empty(t, seen.notes)
	assert.Len(t, seen.pods, 6, "what was read stays as it is")
}

func TestTheDevicesOfAServedVariantMayBeKnownByItsNodesAlone(t *testing.T) {
	seen := holed()
	seen.variants = seen.variants[1:]
	seen.variants[0].object.Spec.Accelerator = ""
	v := seen.served().Variants[0]
	require.NotNil(t, v.Request, v.Problem)
	assert.Equal(t, capacity.Accelerator("H100"), v.Request.Shape.Accelerator)
}

func TestWhatIsNotKnownOfWhatIsServed(t *testing.T) {
	seen := holed()
	seen.variants[0].target.problem = "Deployment large does not exist in namespace demo"
	seen.variants[1].target.podsPerReplica = 2
	served := seen.served()
	assert.Equal(t, "Deployment large does not exist in namespace demo", served.Variants[0].Problem)
	assert.Contains(t, served.Variants[1].Problem, "several pods")
	for _, v := range served.Variants {
		assert.Nil(t, v.Request)
	}
	assert.Equal(t, 7, served.Cluster.Nodes[2].Free.Devices, "what it holds is other work")
	seen = holed()
	seen.pods, seen.podsKnown = nil, false
	assert.Equal(t, (*placement.Cluster)(nil), seen.served().Cluster, "what is free is not known")
}

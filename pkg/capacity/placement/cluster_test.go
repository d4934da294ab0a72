package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestEmptiedHasNothingOnItsNodes(t *testing.T) {
	a := gpuNode("a", "H100", 8, 3)
	a.Beside = []Pool{{Device: capacity.Device{Accelerator: "L4"}, Allocatable: 4, Free: 1}}
	b := gpuNode("b", "H200", 8, 0)
	c := &Cluster{Nodes: []Node{a, b}}
	before := c.Clone()
	empty := c.Emptied()
	for i, n := range empty.Nodes {
		assert.Equal(t, c.Nodes[i].Allocatable, n.Free)
		assert.Equal(t, 8, n.Free.Devices)
	}
	assert.Equal(t, 4, empty.Nodes[0].Beside[0].Free)
	assert.Equal(t, before, c, "the cluster itself stays as it is")
}

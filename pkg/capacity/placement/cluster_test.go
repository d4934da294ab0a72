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
	var before *Cluster
	c.Nodes[1].Other = []Stock{{Allocatable: 4, Free: 1}}
	c.Quotas = []Quota{{Hard: 7, Left: 2}}
	before = c.Clone()
	empty := c.Emptied()
	for i, n := range empty.Nodes {
		assert.Equal(t, c.Nodes[i].Allocatable, n.Free)
		assert.Equal(t, 8, n.Free.Devices)
	}
	assert.Equal(t, 4, empty.Nodes[0].Beside[0].Free)
	assert.EqualValues(t, 4, empty.Nodes[1].Other[0].Free)
	assert.EqualValues(t, 7, empty.Quotas[0].Left)
	assert.Equal(t, before, c, "the cluster itself stays as it is")
}

// What is done to a copy leaves the cluster as it was.
func TestACloneIsOfItsOwn(t *testing.T) {
	c := &Cluster{Nodes: []Node{gpuNode("a", "H100", 8, 8), gpuNode("b", "H100", 8, 8)}, Quotas: []Quota{{Hard: 7, Left: 2}}}
	for i := range c.Nodes {
		c.Nodes[i].Other = []Stock{{Allocatable: 4, Free: 4}}
		c.Nodes[i].Beside = []Pool{{Device: capacity.Device{Accelerator: "slice"}, Allocatable: 7, Free: 7}}
	}
	r := &Request{Shape: capacity.Shape{Accelerator: "slice", Devices: 1}, Other: []Amount{{Count: 1}}, Charges: []Amount{{Count: 2}}}
	copied := c.Clone()
	copied.Put(r, 1)
	assert.Equal(t, Pool{Device: capacity.Device{Accelerator: "slice"}, Allocatable: 7, Free: 6}, copied.Nodes[1].Beside[0])
	assert.Equal(t, Stock{Allocatable: 4, Free: 3}, copied.Nodes[1].Other[0])
	assert.EqualValues(t, 0, copied.Quotas[0].Left)
	assert.Equal(t, copied.Nodes[0].Other, c.Nodes[1].Other)
	assert.Equal(t, 7, c.Nodes[1].Beside[0].Free)
	assert.EqualValues(t, 2, c.Quotas[0].Left)
}

// Requests are of one kind when the nodes take them alike, whatever quotas they count
// against.
func TestKind(t *testing.T) {
	refused, yields, other := []string{"taint"}, make([]Yield, 1), []Amount{{Count: 1}}
	base := Request{Shape: gpus(2, "H100").Shape, Refused: refused, Yields: yields, Other: other}
	same := base
	same.Charges, same.Bound = []Amount{{Count: 1}}, "volumes"
	known := map[Identity]bool{base.Identity(): true}
	assert.True(t, known[same.Identity()])
	for name, change := range map[string]func(*Request){
		"shape":   func(r *Request) { r.Shape.Devices++ },
		"refused": func(r *Request) { r.Refused = []string{"taint"} },
		"yields":  func(r *Request) { r.Yields = nil },
		"other":   func(r *Request) { r.Other = []Amount{{Count: 2}} },
	} {
		changed := base
		change(&changed)
		assert.False(t, known[changed.Identity()], name)
	}
}

package placement

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Resources is what a node holds or a pod takes.
type Resources struct {
	Devices     int
	MilliCPU    int64
	MemoryBytes int64
	Pods        int
}

// Node is one node with what it can hold and what is taken.
type Node struct {
	Name string
	// Accelerator is the type of all devices of the node. It is empty when the node
	// has none, and also when it has some (Allocatable.Devices > 0) whose type is not
	// known yet.
	Accelerator capacity.Accelerator
	// MemoryGiB and Form describe the devices further, as far as it is known.
	MemoryGiB int
	Form      string
	// Allocatable is what the node offers to pods, Free what no pod holds. Free is
	// negative where more was bound to the node than it offers.
	Allocatable, Free Resources
	// Beside are the node's further devices, of other types than the first, which are
	// counted apart: slices of several sizes, for example. They share CPU, memory and
	// pod slots.
	Beside []Pool
	// Out says why the node takes no new pods at all (cordoned, not ready, ...);
	// empty means that it does.
	Out string
}

// Pool is the devices of one type on a node that has several.
type Pool struct {
	Device            capacity.Device
	Allocatable, Free int
}

// Cluster is a set of nodes on which placements can be tried out.
type Cluster struct {
	// Nodes are sorted by name. The order breaks ties.
	Nodes []Node
	// Table is what Place spares room by. Nil spares room for the usual sizes.
	Table *Table
}

// Request is what one replica asks of the cluster.
type Request struct {
	Shape capacity.Shape
	// Refused says for each node of the cluster why pods of this request may not go
	// there (a taint, a node selector, node affinity), by the index of the node;
	// empty means that they may. A nil slice means that every node admits them.
	Refused []string
	// Bound names what else the pods ask for that the model does not know (pod
	// affinity, volumes, ...); it makes every count an upper bound. Empty means that
	// counts are exact.
	Bound string
}

// Clone copies the cluster, so that placements can be tried out on the copy. The
// table is shared: nothing here changes it.
func (c *Cluster) Clone() *Cluster {
	clone := &Cluster{Nodes: slices.Clone(c.Nodes), Table: c.Table}
	pools := 0
	for i := range c.Nodes {
		pools += len(c.Nodes[i].Beside)
	}
	beside := make([]Pool, 0, pools)
	for i := range clone.Nodes {
		n := &clone.Nodes[i]
		if n.Beside == nil {
			continue
		}
		first := len(beside)
		beside = append(beside, n.Beside...)
		n.Beside = beside[first:len(beside):len(beside)]
	}
	return clone
}

// Emptied is a copy with nothing on its nodes.
func (c *Cluster) Emptied() *Cluster {
	empty := c.Clone()
	for i := range empty.Nodes {
		n := &empty.Nodes[i]
		n.Free = n.Allocatable
		for j := range n.Beside {
			n.Beside[j].Free = n.Beside[j].Allocatable
		}
	}
	return empty
}

// refused is the reason why a node refuses the request's pods, or empty.
func (r *Request) refused(node int) string {
	if node >= len(r.Refused) {
		return ""
	}
	return r.Refused[node]
}

// Minus is what is left of r without o. Numbers that no real node has stay at the
// ends of their range.
func (r Resources) Minus(o Resources) Resources {
	return Resources{
		Devices:     capacity.Minus(r.Devices, o.Devices),
		MilliCPU:    capacity.Minus(r.MilliCPU, o.MilliCPU),
		MemoryBytes: capacity.Minus(r.MemoryBytes, o.MemoryBytes),
		Pods:        capacity.Minus(r.Pods, o.Pods),
	}
}

// Plus is r and o together, within the range of the numbers.
func (r Resources) Plus(o Resources) Resources {
	return Resources{
		Devices:     capacity.Plus(r.Devices, o.Devices),
		MilliCPU:    capacity.Plus(r.MilliCPU, o.MilliCPU),
		MemoryBytes: capacity.Plus(r.MemoryBytes, o.MemoryBytes),
		Pods:        capacity.Plus(r.Pods, o.Pods),
	}
}

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
	// Outlook is what Place spares room for. Nil means the neutral outlook of
	// Score.
	Outlook Outlook
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
// outlook is shared: nothing here changes it.
func (c *Cluster) Clone() *Cluster {
	return &Cluster{Nodes: slices.Clone(c.Nodes), Outlook: c.Outlook}
}

// refused is the reason why a node refuses the request's pods, or empty.
func (r *Request) refused(node int) string {
	if node >= len(r.Refused) {
		return ""
	}
	return r.Refused[node]
}

// take is what one pod of the shape takes from a node.
func take(s capacity.Shape) Resources {
	return Resources{Devices: s.Devices, MilliCPU: s.MilliCPU, MemoryBytes: s.MemoryBytes, Pods: 1}
}

// Minus is what is left of r without o.
func (r Resources) Minus(o Resources) Resources {
	return Resources{
		Devices:     r.Devices - o.Devices,
		MilliCPU:    r.MilliCPU - o.MilliCPU,
		MemoryBytes: r.MemoryBytes - o.MemoryBytes,
		Pods:        r.Pods - o.Pods,
	}
}

// Plus is r and o together.
func (r Resources) Plus(o Resources) Resources {
	return Resources{
		Devices:     r.Devices + o.Devices,
		MilliCPU:    r.MilliCPU + o.MilliCPU,
		MemoryBytes: r.MemoryBytes + o.MemoryBytes,
		Pods:        r.Pods + o.Pods,
	}
}

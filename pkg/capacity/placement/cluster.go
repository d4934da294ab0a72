package placement

import (
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
	// Accelerator is the type of all devices of the node; empty means that it has
	// none, or that its type is not known yet.
	Accelerator capacity.Accelerator
	// Allocatable is what the node offers to pods, Free what no pod holds.
	Allocatable, Free Resources
	// Out says why the node takes no new pods at all (cordoned, not ready, ...);
	// empty means that it does.
	Out string
}

// Cluster is a set of nodes on which placements can be tried out.
type Cluster struct {
	// Nodes are sorted by name. The order breaks ties.
	Nodes []Node
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

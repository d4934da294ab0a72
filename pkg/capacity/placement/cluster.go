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
	// Other are further resources of the node, extended resources that are no accelerators
	// or of a maker that nobody knows, by an index that is the same for all nodes. It has
	// none of those beyond the end of the list.
	Other []Stock
	// Out says why the node takes no new pods at all (cordoned, not ready, ...);
	// empty means that it does.
	Out string
}

// NodeNotReady is the Out of a node that does not answer: what it holds serves nobody, and
// waits for the node to come back or to be evicted.
const NodeNotReady = "not ready"

// Pool is the devices of one type on a node that has several.
type Pool struct {
	Device            capacity.Device
	Allocatable, Free int
}

// Stock is how much of a further resource a node offers to pods, and what no pod holds.
type Stock struct {
	Allocatable, Free int64
}

// Cluster is a set of nodes on which placements can be tried out.
type Cluster struct {
	// Nodes are sorted by name. The order breaks ties.
	Nodes []Node
	// Quotas are what namespaces may take beside what the nodes have.
	Quotas []Quota
	// Table is what Place spares room by. Nil spares room for the usual sizes.
	Table *Table
}

// Request is what one replica asks of the cluster.
type Request struct {
	Shape capacity.Shape
	// Other is what a replica takes of the further resources of its node, each once.
	// Requests that take the same share it.
	Other []Amount
	// Charges is what a replica takes of quotas, by the index of the cluster's Quotas. A
	// name says why the quota allows none, where that is not what is left.
	Charges []Amount
	// Refused says for each node of the cluster why pods of this request may not go
	// there (a taint, a node selector, node affinity), by the index of the node;
	// empty means that they may. A nil slice means that every node admits them.
	Refused []string
	// Own says, by the index of the node, on which nodes devices of which nothing says what
	// they are count as those of the shape, for this request alone. A nil slice means none.
	Own []bool
	// Yields is what pods of lower priority hold of each node, by its index, which
	// preemption would free for this request. A nil slice means that none do.
	Yields []Yield
	// Bound names what else the pods ask for that the model does not know (pod
	// affinity, volumes, ...); it makes every count an upper bound. Empty means that
	// counts are exact.
	Bound string
}

// Amount is so much of one of several things that are counted by their index.
type Amount struct {
	// Index may be out of range: of that there is none.
	Index int
	Count int64
	// Name says of what, for people.
	Name string
}

// Yield is what some pods hold of a node, devices of the type that the request means.
type Yield struct {
	Resources
	// Other is by the index of the node's Other, and may end before it.
	Other []int64
}

// Identity is the same for requests that the nodes of a cluster take alike.
type Identity struct {
	shape   capacity.Shape
	nodes   int
	refused *string
	own     *bool
	yields  *Yield
	other   *Amount
}

// Identity is that of the request. Requests that were made for one cluster share what is the
// same of them.
func (r *Request) Identity() Identity {
	return Identity{
		shape: r.Shape, nodes: max(len(r.Refused), len(r.Own), len(r.Yields)),
		refused: first(r.Refused), own: first(r.Own), yields: first(r.Yields), other: first(r.Other),
	}
}

func first[T any](list []T) *T {
	if len(list) == 0 {
		return nil
	}
	return &list[0]
}

// Clone copies the cluster, so that placements can be tried out on the copy. The
// table is shared: nothing here changes it.
func (c *Cluster) Clone() *Cluster {
	clone := &Cluster{Nodes: slices.Clone(c.Nodes), Quotas: slices.Clone(c.Quotas), Table: c.Table}
	pools, stocks := 0, 0
	for i := range c.Nodes {
		pools += len(c.Nodes[i].Beside)
		stocks += len(c.Nodes[i].Other)
	}
	beside, other := make([]Pool, 0, pools), make([]Stock, 0, stocks)
	for i := range clone.Nodes {
		n := &clone.Nodes[i]
		n.Beside, beside = copied(n.Beside, beside)
		n.Other, other = copied(n.Other, other)
	}
	return clone
}

// copied puts a copy of the list to the end of all, which have room for it.
func copied[T any](list, all []T) (own, grown []T) {
	if list == nil {
		return nil, all
	}
	first := len(all)
	all = append(all, list...)
	return all[first:len(all):len(all)], all
}

// Emptied is a copy with nothing on its nodes, and nothing taken of its quotas.
func (c *Cluster) Emptied() *Cluster {
	empty := c.Clone()
	for i := range empty.Nodes {
		n := &empty.Nodes[i]
		n.Free = n.Allocatable
		for j := range n.Beside {
			n.Beside[j].Free = n.Beside[j].Allocatable
		}
		for j := range n.Other {
			n.Other[j].Free = n.Other[j].Allocatable
		}
	}
	for i := range empty.Quotas {
		empty.Quotas[i].Left = empty.Quotas[i].Hard
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

// Unnamed is the accelerator of shapes that mean devices of which nothing says what they are:
// those of a node that is called so, or else has devices of no known type.
const Unnamed capacity.Accelerator = "unnamed"

// on is the shape of the request as the node of that index has it.
func (r *Request) on(node int) capacity.Shape {
	s := r.Shape
	if node < len(r.Own) && r.Own[node] {
		s.Accelerator, s.MemoryGiB, s.Form = Unnamed, 0, ""
	}
	return s
}

// yield is what preemption would free of a node for the request.
func (r *Request) yield(node int) *Yield {
	if node >= len(r.Yields) {
		return &none
	}
	return &r.Yields[node]
}

// none is what pods of lower priority hold where there are none.
var none Yield

// of is how much of a further resource it is.
func (y *Yield) of(other int) int64 {
	if other < 0 || other >= len(y.Other) {
		return 0
	}
	return y.Other[other]
}

// with is what is free once others have yielded, which is never more than there is.
func with[T int | int64](free, yielded, allocatable T) T {
	if yielded <= 0 {
		return free
	}
	return min(capacity.Plus(free, yielded), allocatable)
}

// other is what the node has of a further resource.
func (n *Node) other(index int) Stock {
	if index < 0 || index >= len(n.Other) {
		return Stock{}
	}
	return n.Other[index]
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

package placement

import (
	"fmt"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Explanation counts why the nodes of a cluster do not take one more replica.
type Explanation struct {
	Shape capacity.Shape
	// Other is what is asked for beside the shape.
	Other []Amount
	// Quota says what is left of a quota that allows no more; empty when all do.
	Quota string
	// Problem is set when the request cannot be counted; then nothing else is.
	Problem error
	// Nodes is the number of nodes by verdict.
	Nodes [verdicts]int
	// LargestHole is the largest number of free devices on a node that has enough
	// of them, but not free.
	LargestHole int
	// text is what it says without a quota, where that was made before for others.
	text string
}

// Count adds one node with its verdict.
func (e *Explanation) Count(n *Node, v Verdict) { e.count(n, e.Shape, v, 0) }

// count is Count for a shape that means other devices on that node, and where so many
// devices would be yielded.
func (e *Explanation) count(n *Node, s capacity.Shape, v Verdict, yielded int) {
	e.Nodes[v]++
	if v == TooFewFree {
		if p, ok := n.Pool(s); ok {
			e.LargestHole = max(e.LargestHole, with(p.Free, yielded, p.Allocatable))
		}
	}
}

// Explain counts the verdicts of all nodes on the request, and names a quota that allows
// no more.
func (c *Cluster) Explain(r *Request) Explanation {
	if err := r.Countable(); err != nil {
		return Explanation{Problem: err}
	}
	return c.allowing(c.explainNodes(r), r)
}

// allowing adds what quotas say.
func (c *Cluster) allowing(e Explanation, r *Request) Explanation {
	if allowed, by := c.Allowed(r); allowed < 1 {
		e.Quota = by
	}
	return e
}

func (c *Cluster) explainNodes(r *Request) Explanation {
	e := Explanation{Shape: r.Shape, Other: r.Other}
	for i := range c.Nodes {
		e.count(&c.Nodes[i], r.on(i), c.Verdict(r, i), r.yield(i).Devices)
	}
	return e
}

// Wants says what a replica asks for: "4xH100 and 1 of rdma/hca".
func Wants(shape capacity.Shape, other []Amount) string {
	var parts []string
	if shape.Devices > 0 || len(other) == 0 {
		parts = append(parts, shape.String())
	}
	return strings.Join(append(parts, named(other)...), " and ")
}

// named says how much of what.
func named(other []Amount) []string {
	var parts []string
	for _, a := range other {
		parts = append(parts, fmt.Sprintf("%d of %s", a.Count, a.Name))
	}
	return parts
}

// String says it in one line:
//
//	wants 4xH100: 3 H100 nodes have fewer than 4 free (largest hole 2), 12 nodes are of another type, 1 has no product label
//
// In the order of how they end: the first can change by themselves, the last need another
// node.
func (e Explanation) String() string {
	if e.Problem != nil {
		return e.Problem.Error()
	}
	if e.text != "" && e.Quota == "" {
		return e.text
	}
	var parts []string
	if e.Quota != "" {
		parts = append(parts, e.Quota)
	}
	add := func(v Verdict, one, many string) {
		switch count := e.Nodes[v]; count {
		case 0:
		case 1:
			parts = append(parts, "1 "+one)
		default:
			parts = append(parts, fmt.Sprintf("%d %s", count, many))
		}
	}
	add(Fits, "node has room", "nodes have room")
	node, nodes := "node", "nodes"
	if e.Shape.Devices > 0 {
		device := e.Shape.Device().String()
		node, nodes = device+" node", device+" nodes"
	}
	free := fmt.Sprintf("fewer than %d free (largest hole %d)", e.Shape.Devices, max(e.LargestHole, 0))
	add(TooFewFree, node+" has "+free, nodes+" have "+free)
	add(TooLittleCPU, node+" has too little CPU", nodes+" have too little CPU")
	add(TooLittleMemory, node+" has too little memory", nodes+" have too little memory")
	add(NoPodSlot, node+" has no pod slot left", nodes+" have no pod slot left")
	less := fmt.Sprintf("less than %s free", strings.Join(named(e.Other), " and "))
	add(TooLittleOther, node+" has "+less, nodes+" have "+less)
	small := fmt.Sprintf("fewer than %d devices", e.Shape.Devices)
	add(TooFewDevices, node+" has "+small, nodes+" have "+small)
	add(NodeOut, node+" takes no pods", nodes+" take no pods")
	add(Refused, node+" refuses it by taint or affinity", nodes+" refuse it by taint or affinity")
	add(WrongAccelerator, "node is of another type", "nodes are of another type")
	add(AcceleratorUnknown, "has no product label", "have no product label")
	if len(parts) == 0 {
		parts = append(parts, "there are no nodes")
	}
	return fmt.Sprintf("wants %s: %s", Wants(e.Shape, e.Other), strings.Join(parts, ", "))
}

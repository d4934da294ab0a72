package placement

import (
	"errors"
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// The reasons why a request cannot be counted.
var (
	// ErrShapeUnknown: there is no request, or its accelerator is not known, or its
	// numbers make no sense.
	ErrShapeUnknown = errors.New("the shape of a replica is unknown")
	// ErrSeveralPods: the replica spans nodes.
	ErrSeveralPods = errors.New("replicas of several pods are not modelled")
)

// Countable says why the replicas of a request cannot be counted; nil means that
// they can. It is safe to call on a nil request.
func (r *Request) Countable() error {
	if r == nil {
		return ErrShapeUnknown
	}
	s := &r.Shape
	switch {
	case s.Pods > 1:
		return ErrSeveralPods
	case s.Devices < 0 || s.MilliCPU < 0 || s.MemoryBytes < 0:
		return fmt.Errorf("%w: it has a negative request (%d devices, %dm CPU, %d bytes of memory)",
			ErrShapeUnknown, s.Devices, s.MilliCPU, s.MemoryBytes)
	case s.Devices > 0 && s.Accelerator == "":
		return fmt.Errorf("%w: it has %d devices of no known accelerator", ErrShapeUnknown, s.Devices)
	default:
		return nil
	}
}

// mostSlots is more than any node has. Those of all nodes can be added up.
const mostSlots = 1<<31 - 1

// Slots is how many more pods of the shape fit on the node now.
func (n *Node) Slots(s capacity.Shape) int { return n.slots(&s, nil, &none) }

// slots is Slots for pods that take further resources too, and before which some others
// yield.
func (n *Node) slots(s *capacity.Shape, other []Amount, y *Yield) int {
	if n.Out != "" {
		return 0
	}
	slots := min(max(with(n.Free.Pods, y.Pods, n.Allocatable.Pods), 0), mostSlots)
	if s.Devices > 0 {
		pool := n.poolOf(s)
		if pool == noPool || s.Devices > n.pool(pool).Allocatable {
			return 0
		}
		slots = min(slots, max(with(n.free(pool), y.Devices, n.pool(pool).Allocatable), 0)/s.Devices)
	}
	atMost := func(free, each int64) {
		if each > 0 {
			slots = int(min(int64(slots), max(free, 0)/each))
		}
	}
	atMost(with(n.Free.MilliCPU, y.MilliCPU, n.Allocatable.MilliCPU), s.MilliCPU)
	atMost(with(n.Free.MemoryBytes, y.MemoryBytes, n.Allocatable.MemoryBytes), s.MemoryBytes)
	for _, a := range other {
		o := n.other(a.Index)
		atMost(with(o.Free, y.of(a.Index), o.Allocatable), a.Count)
	}
	return slots
}

// slotsOn is how many more replicas of the request fit on the node of that index.
func (c *Cluster) slotsOn(r *Request, node int) int {
	if r.refused(node) != "" {
		return 0
	}
	s := r.on(node)
	return c.Nodes[node].slots(&s, r.Other, r.yield(node))
}

// Slots is how many more replicas of the request fit now and quotas allow, if nothing
// else is placed: exact when r.Bound is empty, else an upper bound. Where pods of lower
// priority yield, they are gone then. It is an error, and not none, when the request
// cannot be counted.
func (c *Cluster) Slots(r *Request) (int, error) {
	if err := r.Countable(); err != nil {
		return 0, err
	}
	slots := 0
	for i := range c.Nodes {
		slots += c.slotsOn(r, i)
	}
	allowed, _ := c.Allowed(r)
	return min(slots, allowed), nil
}

// LargestHole is the largest number of free devices on one node that takes the
// request's pods, whether it suffices for one of them or not.
func (c *Cluster) LargestHole(r *Request) int {
	if r == nil {
		return 0
	}
	hole := 0
	for i := range c.Nodes {
		s := r.on(i)
		v, pool := c.Nodes[i].typed(&s)
		if v == Fits && pool != noPool && r.refused(i) == "" {
			hole = max(hole, with(c.Nodes[i].free(pool), r.yield(i).Devices, c.Nodes[i].pool(pool).Allocatable))
		}
	}
	return hole
}

// Place puts one replica on the node with the best score and returns its index. Nodes
// on which nobody has to yield come first. It reports false, and changes nothing, when
// no node has room, a quota is used up, or the request cannot be counted.
func (c *Cluster) Place(r *Request) (node int, ok bool) {
	if r.Countable() != nil {
		return -1, false
	}
	if allowed, _ := c.Allowed(r); allowed < 1 {
		return -1, false
	}
	best := c.best(r, func(int) bool { return true })
	if best < 0 {
		return -1, false
	}
	c.put(r, best, 1)
	return best, true
}

// best is the node with the best score among those that the request fits on and that
// are allowed, or -1.
func (c *Cluster) best(r *Request, allowed func(node int) bool) int {
	best, bestScore := -1, int64(0)
	for i := range c.Nodes {
		if !allowed(i) || c.Verdict(r, i) != Fits {
			continue
		}
		if score := c.score(r, i); best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// score is that of a node that the request fits on. Where others would have to yield it
// is below that of every node where they need not.
func (c *Cluster) score(r *Request, node int) int64 {
	n, order := &c.Nodes[node], 0
	if r.Yields != nil && !c.vacant(r, node) {
		order = 1
	}
	return c.Table.Score(n, r.on(node), order, 0)
}

// Put has the node of that index hold one replica of the request, whether it fits or
// not: for those who choose the node themselves.
func (c *Cluster) Put(r *Request, node int) { c.put(r, node, 1) }

// Remove takes one replica of the request off the node of that index. It undoes a
// Place or a Put.
func (c *Cluster) Remove(r *Request, node int) { c.put(r, node, -1) }

// put has the node hold that many more replicas of the request, whether they fit or
// not.
func (c *Cluster) put(r *Request, node, count int) {
	n, s := &c.Nodes[node], r.on(node)
	n.change(r, n.poolOf(&s), -count)
	c.Charge(r, count)
}

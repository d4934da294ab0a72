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
	s := r.Shape
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

// Slots is how many more pods of the shape fit on the node now.
func (n *Node) Slots(s capacity.Shape) int {
	if n.Out != "" {
		return 0
	}
	slots := max(n.Free.Pods, 0)
	if s.Devices > 0 {
		pool := n.poolOf(&s)
		if pool == noPool || s.Devices > n.pool(pool).Allocatable {
			return 0
		}
		slots = min(slots, max(n.free(pool), 0)/s.Devices)
	}
	if s.MilliCPU > 0 {
		slots = int(min(int64(slots), max(n.Free.MilliCPU, 0)/s.MilliCPU))
	}
	if s.MemoryBytes > 0 {
		slots = int(min(int64(slots), max(n.Free.MemoryBytes, 0)/s.MemoryBytes))
	}
	return slots
}

// Slots is how many more replicas of the request fit now, if nothing else is
// placed: exact when r.Bound is empty, else an upper bound. It is an error, and not
// none, when the request cannot be counted.
func (c *Cluster) Slots(r *Request) (int, error) {
	if err := r.Countable(); err != nil {
		return 0, err
	}
	slots := 0
	for i := range c.Nodes {
		if r.refused(i) == "" {
			slots = capacity.Plus(slots, c.Nodes[i].Slots(r.Shape))
		}
	}
	return slots, nil
}

// LargestHole is the largest number of free devices on one node that takes the
// request's pods, whether it suffices for one of them or not.
func (c *Cluster) LargestHole(r *Request) int {
	if r == nil {
		return 0
	}
	hole := 0
	for i := range c.Nodes {
		v, pool := c.Nodes[i].typed(&r.Shape)
		if v == Fits && pool != noPool && r.refused(i) == "" {
			hole = max(hole, c.Nodes[i].free(pool))
		}
	}
	return hole
}

// Place puts one replica on the node with the best score and returns its index.
// It reports false, and changes nothing, when no node has room or the request
// cannot be counted.
func (c *Cluster) Place(r *Request) (node int, ok bool) {
	if r.Countable() != nil {
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
		if score := c.Table.Score(&c.Nodes[i], r.Shape, 0, 0); best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	return best
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
	n := &c.Nodes[node]
	n.change(r.Shape, n.poolOf(&r.Shape), -count)
}

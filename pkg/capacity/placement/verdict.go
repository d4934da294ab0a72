package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Verdict says whether one more pod fits on a node, and if not, why: one of a small
// fixed set of reasons, the first in the order of the constants that applies.
type Verdict uint8

// The verdicts.
const (
	// Fits: one more pod fits now.
	Fits Verdict = iota
	// WrongAccelerator: the node's devices are of another type, or it has none.
	WrongAccelerator
	// AcceleratorUnknown: the node has devices and nothing says of which type.
	AcceleratorUnknown
	// NodeOut: the node takes no new pods at all.
	NodeOut
	// Refused: a taint, the node selector or node affinity keeps these pods away.
	Refused
	// TooFewDevices: not even the empty node has as many devices.
	TooFewDevices
	// TooFewFree: the node has as many devices, and too few of them are free.
	TooFewFree
	// TooLittleCPU: the unrequested CPU of the node does not suffice.
	TooLittleCPU
	// TooLittleMemory: the unrequested memory of the node does not suffice.
	TooLittleMemory
	// NoPodSlot: the node holds as many pods as it may.
	NoPodSlot
	// TooLittleOther: the node has too little free of a further resource.
	TooLittleOther

	verdicts = int(TooLittleOther) + 1
)

var verdictNames = [verdicts]string{
	Fits:               "fits",
	WrongAccelerator:   "wrong accelerator",
	AcceleratorUnknown: "accelerator unknown",
	NodeOut:            "node out",
	Refused:            "refused",
	TooFewDevices:      "too few devices",
	TooFewFree:         "too few free devices",
	TooLittleCPU:       "too little CPU",
	TooLittleMemory:    "too little memory",
	NoPodSlot:          "no pod slot",
	TooLittleOther:     "too little of another resource",
}

// String is the reason in a few words, for people and as a label of metrics.
func (v Verdict) String() string {
	if int(v) >= len(verdictNames) {
		return "invalid verdict"
	}
	return verdictNames[v]
}

// Resolvable reports whether the pods that leave the node could change the verdict.
// The others need a change of the node itself.
func (v Verdict) Resolvable() bool {
	switch v {
	case TooFewFree, TooLittleCPU, TooLittleMemory, NoPodSlot, TooLittleOther:
		return true
	default:
		return false
	}
}

// Type is the verdict on the type and the state of the node, whatever is free on
// it. A shape without devices goes on nodes of every type.
func (n *Node) Type(s capacity.Shape) Verdict {
	v, _ := n.typed(&s)
	return v
}

// typed is Type, and the pool that the shape means.
func (n *Node) typed(s *capacity.Shape) (Verdict, int) {
	pool := noPool
	if s.Devices > 0 {
		if pool = n.poolOf(s); pool == noPool {
			return n.mismatch(*s), noPool
		}
	}
	if n.Out != "" {
		return NodeOut, pool
	}
	return Fits, pool
}

// mismatch is the verdict on a node none of whose pools is known to be what the
// shape asks for.
func (n *Node) mismatch(s capacity.Shape) Verdict {
	for i := range n.pools() {
		if n.pool(i).unknown(s) {
			return AcceleratorUnknown
		}
	}
	return WrongAccelerator
}

// Verdict says whether one more pod of the shape fits on the node, as far as the
// node itself knows: what a request is refused by is the cluster's Verdict.
func (n *Node) Verdict(s capacity.Shape) Verdict {
	v, pool := n.typed(&s)
	if v != Fits {
		return v
	}
	return n.room(&s, pool, nil, &none)
}

// Room is the verdict on the resources of the node alone.
func (n *Node) Room(s capacity.Shape) Verdict {
	return n.room(&s, n.poolOf(&s), nil, &none)
}

func (n *Node) room(s *capacity.Shape, pool int, other []Amount, y *Yield) Verdict {
	if s.Devices > 0 {
		if pool == noPool || s.Devices > n.pool(pool).Allocatable {
			return TooFewDevices
		}
		if s.Devices > with(n.free(pool), y.Devices, n.pool(pool).Allocatable) {
			return TooFewFree
		}
	}
	switch {
	case s.MilliCPU > 0 && s.MilliCPU > with(n.Free.MilliCPU, y.MilliCPU, n.Allocatable.MilliCPU):
		return TooLittleCPU
	case s.MemoryBytes > 0 && s.MemoryBytes > with(n.Free.MemoryBytes, y.MemoryBytes, n.Allocatable.MemoryBytes):
		return TooLittleMemory
	case with(n.Free.Pods, y.Pods, n.Allocatable.Pods) < 1:
		return NoPodSlot
	}
	for _, a := range other {
		if o := n.other(a.Index); a.Count > 0 && a.Count > with(o.Free, y.of(a.Index), o.Allocatable) {
			return TooLittleOther
		}
	}
	return Fits
}

// Verdict says whether one more pod of the request fits on the node of that index,
// whatever quotas allow.
func (c *Cluster) Verdict(r *Request, node int) Verdict { return c.verdict(r, node, r.yield(node)) }

// vacant reports whether one more fits there and nobody has to yield.
func (c *Cluster) vacant(r *Request, node int) bool { return c.verdict(r, node, &none) == Fits }

func (c *Cluster) verdict(r *Request, node int, y *Yield) Verdict {
	n, s := &c.Nodes[node], r.on(node)
	v, pool := n.typed(&s)
	if v != Fits {
		return v
	}
	if r.refused(node) != "" {
		return Refused
	}
	return n.room(&s, pool, r.Other, y)
}

// Fits reports whether one more replica fits on the node of that index. It is
// false for a request that Countable refuses.
func (c *Cluster) Fits(r *Request, node int) bool {
	return r.Countable() == nil && c.Verdict(r, node) == Fits
}

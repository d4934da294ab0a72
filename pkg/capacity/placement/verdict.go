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

	verdicts = int(NoPodSlot) + 1
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
	case TooFewFree, TooLittleCPU, TooLittleMemory, NoPodSlot:
		return true
	default:
		return false
	}
}

// Type is the verdict on the type and the state of the node, whatever is free on
// it. A shape without devices goes on nodes of every type.
func (n *Node) Type(s capacity.Shape) Verdict {
	switch {
	case s.Devices > 0 && n.Accelerator == "" && n.Allocatable.Devices > 0:
		return AcceleratorUnknown
	case s.Devices > 0 && n.Accelerator != s.Accelerator:
		return WrongAccelerator
	case n.Out != "":
		return NodeOut
	default:
		return Fits
	}
}

// Verdict says whether one more pod of the shape fits on the node, as far as the
// node itself knows: what a request is refused by is the cluster's Verdict.
func (n *Node) Verdict(s capacity.Shape) Verdict {
	if v := n.Type(s); v != Fits {
		return v
	}
	return n.Room(s)
}

// Room is the verdict on the resources of the node alone.
func (n *Node) Room(s capacity.Shape) Verdict {
	switch {
	case s.Devices > n.Allocatable.Devices:
		return TooFewDevices
	case s.Devices > 0 && s.Devices > n.Free.Devices:
		return TooFewFree
	case s.MilliCPU > 0 && s.MilliCPU > n.Free.MilliCPU:
		return TooLittleCPU
	case s.MemoryBytes > 0 && s.MemoryBytes > n.Free.MemoryBytes:
		return TooLittleMemory
	case n.Free.Pods < 1:
		return NoPodSlot
	default:
		return Fits
	}
}

// Verdict says whether one more pod of the request fits on the node of that index.
func (c *Cluster) Verdict(r *Request, node int) Verdict {
	n := &c.Nodes[node]
	if v := n.Type(r.Shape); v != Fits {
		return v
	}
	if r.refused(node) != "" {
		return Refused
	}
	return n.Room(r.Shape)
}

// Fits reports whether one more replica fits on the node of that index. It is
// false for a request that Countable refuses.
func (c *Cluster) Fits(r *Request, node int) bool {
	return r.Countable() == nil && c.Verdict(r, node) == Fits
}

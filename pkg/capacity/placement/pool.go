package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// A node's devices are counted in pools: pool 0 is the node's own devices, pool i is
// Beside[i-1]. A pod asks for one resource of a node, so a shape means one pool of
// it: the first whose devices it covers.

// noPool says that a shape means none of a node's pools.
const noPool = -1

// Pool is the devices of the node that the shape means. It reports false when it
// means none of them, or has no devices.
func (n *Node) Pool(s capacity.Shape) (Pool, bool) {
	i := n.poolOf(&s)
	if i == noPool {
		return Pool{}, false
	}
	return n.pool(i), true
}

// pools is how many pools the node has.
func (n *Node) pools() int { return 1 + len(n.Beside) }

// pool is one pool by its index.
func (n *Node) pool(i int) Pool {
	if i > 0 {
		return n.Beside[i-1]
	}
	return Pool{
		Device:      capacity.Device{Accelerator: n.Accelerator, MemoryGiB: n.MemoryGiB, Form: n.Form},
		Allocatable: n.Allocatable.Devices,
		Free:        n.Free.Devices,
	}
}

// free is how many devices of a pool are free.
func (n *Node) free(i int) int {
	if i > 0 {
		return n.Beside[i-1].Free
	}
	return n.Free.Devices
}

// poolOf is the index of the pool that the shape means, or noPool.
func (n *Node) poolOf(s *capacity.Shape) int {
	if s.Devices <= 0 || s.Accelerator == "" {
		return noPool
	}
	if n.Accelerator == s.Accelerator && n.pool(0).covered(s) {
		return 0
	}
	for i := range n.Beside {
		if n.Beside[i].Device.Accelerator == s.Accelerator && n.Beside[i].covered(s) {
			return i + 1
		}
	}
	if s.Accelerator == Unnamed {
		return n.unnamed()
	}
	return noPool
}

// unnamed is the index of the first pool of which nothing says what its devices are, or noPool.
func (n *Node) unnamed() int {
	for i := range n.pools() {
		if p := n.pool(i); p.Device.Accelerator == "" && p.Allocatable > 0 {
			return i
		}
	}
	return noPool
}

func (p Pool) covered(s *capacity.Shape) bool {
	return s.MemoryGiB == 0 && s.Form == "" || s.Device().Covers(p.Device)
}

// unknown reports whether the pool may be what the shape means and nothing says so:
// its type is not known, or a narrower form that is asked for.
func (p Pool) unknown(s capacity.Shape) bool {
	if p.Device.Accelerator == "" {
		return p.Allocatable > 0
	}
	// What is not known is supposed to be as it is asked for.
	if p.Device.MemoryGiB == 0 {
		p.Device.MemoryGiB = s.MemoryGiB
	}
	if p.Device.Form == "" {
		p.Device.Form = s.Form
	}
	return s.Device().Covers(p.Device)
}

// change adds what count replicas of the request hold to what is free on the node; a
// negative count takes it away. The pool is where their devices are.
func (n *Node) change(r *Request, pool, count int) {
	s, devices := &r.Shape, 0
	if pool != noPool {
		devices = capacity.Times(s.Devices, count)
	}
	if pool > 0 {
		n.Beside[pool-1].Free = capacity.Plus(n.Beside[pool-1].Free, devices)
		devices = 0
	}
	n.Free = n.Free.Plus(Resources{
		Devices:     devices,
		MilliCPU:    capacity.Times(s.MilliCPU, int64(count)),
		MemoryBytes: capacity.Times(s.MemoryBytes, int64(count)),
		Pods:        count,
	})
	for _, a := range r.Other {
		if a.Index >= 0 && a.Index < len(n.Other) {
			o := &n.Other[a.Index]
			o.Free = capacity.Plus(o.Free, capacity.Times(a.Count, int64(count)))
		}
	}
}

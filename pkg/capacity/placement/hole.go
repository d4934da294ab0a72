package placement

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// Hole is a number of free devices of one type on one node. How many there are limits all
// requests of the type together: a replica of s devices takes floor(s/t) holes of t.
type Hole struct {
	Accelerator capacity.Accelerator
	Devices     int
}

// HoleOf is the hole that a replica of the shape asks for; it reports false where it asks
// for no devices.
func HoleOf(s capacity.Shape) (Hole, bool) { return Hole{s.Accelerator, s.Devices}, s.Devices > 0 }

// Request asks for nothing but the hole.
func (h Hole) Request() *Request {
	return &Request{Shape: capacity.Shape{Accelerator: h.Accelerator, Devices: h.Devices, Pods: 1}}
}

// In is how many such holes one replica of the shape takes.
func (h Hole) In(s capacity.Shape) int {
	if h.Accelerator != s.Accelerator || h.Devices <= 0 {
		return 0
	}
	return s.Devices / h.Devices * max(1, s.Pods)
}

package replay

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
)

const (
	// horizontalMax stands for a bound that nobody meets.
	horizontalMax = 1000
	// noDefault is for a maximum that has to be written.
	noDefault = 0
)

// newHorizontal is an HPA without behavior, within the variant's bounds.
func newHorizontal(v *Variant, wake time.Duration) *horizontal.Autoscaler {
	h := &horizontal.Autoscaler{Min: max(horizontal.Min, v.Policy.Min), Max: horizontalMax, Wake: wake}
	if v.Policy.Max >= 0 {
		h.Max = max(h.Min, v.Policy.Max)
	}
	return h
}

// HPA is an HPA of a variant, with the most replicas of one without a bound: the published
// default, if there is one, and what all nodes would hold if they were empty. The HPA itself
// has no default (0), and who has to write a maximum writes what could ever run.
func (s *Scenario) HPA(v *Variant, published int) *horizontal.Autoscaler {
	h := newHorizontal(v, horizontal.Period)
	if v.Policy.Max >= 0 {
		return h
	}
	if published != noDefault {
		h.Max = max(h.Min, published)
	}
	if s.Cluster == nil {
		return h
	}
	if slots, err := s.Cluster.Emptied().Slots(v.Request); err == nil && (published == noDefault || slots < published) {
		h.Max = max(h.Min, slots)
	}
	return h
}

// after is the next time at a beat.
func after(now, every time.Duration) time.Duration { return now - now%every + every }

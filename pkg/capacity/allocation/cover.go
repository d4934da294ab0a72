package allocation

import "llmd.ai/workload-variant-autoscaler/pkg/capacity"

// Cover returns how many replicas of each option to buy, beside what exists, so that
// together they serve need at the least cost; among equals the fewest replicas, then
// those with the most spare. When all limits together do not serve need, everything
// is bought and short is what stays unserved. It reads Cost, Serves and Limit.
func Cover(options []Option, need capacity.Rate) (buy []int, short capacity.Rate) {
	list := make([]Option, len(options))
	for i, o := range options {
		list[i] = Option{Cost: o.Cost, Serves: o.Serves, Most: o.Limit}
	}
	best := Cheapest(list, need)
	return best.Replicas, best.Unserved
}

package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Faster is how many times as much a replica of one shape serves as one of another, when
// nothing is known of the model's times: the geometric mean of what reading the weights,
// reading the KV cache and arithmetic gain by memory bandwidth, by arithmetic and by the
// number of devices, and what the last one loses to links slower than NVLink. It reports false where the hardware cannot be compared.
func Faster(from, to capacity.Shape) (factor float64, ok bool) {
	s, ok := scaling(from, to)
	if !ok {
		return 0, false
	}
	return 1 / math.Cbrt(s.base*s.resident*s.tokens()), true
}

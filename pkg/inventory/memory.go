package inventory

import (
	"math"
	"strconv"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// in is the memory that the label says, in GiB, or 0 for none that makes sense.
func (l memory) in(labels map[string]string) int {
	text := labels[l.key]
	if l.suffix != "" {
		text = strings.TrimSuffix(text, l.suffix)
	}
	amount, err := strconv.ParseFloat(text, 64)
	const mostGiB = 1 << 14
	if gib := amount / l.perGiB; err == nil && gib >= 1 && gib <= mostGiB {
		return int(math.Round(gib))
	}
	return 0
}

// LeastMemory is the memory of one device of each type, in GiB, of the nodes whose
// devices have least of it. A type of which some nodes do not say it is left out.
func LeastMemory(nodes []placement.Node) map[capacity.Accelerator]int {
	least := map[capacity.Accelerator]int{}
	add := func(d capacity.Device) {
		if d.Accelerator == "" {
			return
		}
		if known, seen := least[d.Accelerator]; !seen || d.MemoryGiB < known {
			least[d.Accelerator] = d.MemoryGiB
		}
	}
	for i := range nodes {
		n := &nodes[i]
		add(capacity.Device{Accelerator: n.Accelerator, MemoryGiB: n.MemoryGiB})
		for _, pool := range n.Beside {
			add(pool.Device)
		}
	}
	return least
}

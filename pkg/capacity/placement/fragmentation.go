package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Fragmentation is the free devices that no mix of the expected replicas can use where
// they are, by accelerator; accelerators without any are there with 0. Nodes that take
// no pods do not count. The neutral outlook expects single devices too, so that with
// it only devices without CPU, memory or pod slots are lost.
func (t *Table) Fragmentation(c *Cluster) map[capacity.Accelerator]int {
	lost := map[capacity.Accelerator]int{}
	if t == nil {
		t = NewTable(nil, c)
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Out != "" {
			continue
		}
		for j := range n.pools() {
			at := t.kindOf(n, j)
			if at < 0 {
				continue
			}
			k := &t.kinds[at]
			free := min(max(n.free(j), 0), maxDevices)
			usable := int(k.usable[k.row(free)*k.levels+k.level(n.Free.MilliCPU)])
			lost[k.device.Accelerator] += free - min(usable, k.withMemory(n))
		}
	}
	return lost
}

// withMemory bounds the devices that expected pods can use on the node by its memory
// and pod slots.
func (k *kind) withMemory(n *Node) int {
	if n.Free.Pods < 1 {
		return 0
	}
	if k.bytesPerDevice == 0 {
		return maxDevices
	}
	return int(min(float64(max(n.Free.MemoryBytes, 0))/k.bytesPerDevice, maxDevices))
}

package placement

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// lossByFormula is Table.Loss worked out the long way from the formula that Table
// documents, in devices and with exact CPU. The node has one kind of devices, which the
// cluster has too.
func lossByFormula(outlook Outlook, c *Cluster, n *Node, s capacity.Shape) float64 {
	f := formula{classes: classesOf(outlook), cluster: c}
	after := *n
	after.Free = n.Free.Minus(Resources{Devices: s.Devices, MilliCPU: s.MilliCPU})
	return f.worth(n) - f.worth(&after)
}

type formula struct {
	classes []class
	cluster *Cluster
}

// worth is what the state of the node is worth.
func (f *formula) worth(n *Node) float64 {
	free, slots := float64(f.free(func(capacity.Device) bool { return true })), 0.0
	for t := range f.classes {
		k := &f.classes[t]
		all := 0
		for i := range f.cluster.Nodes {
			if other := &f.cluster.Nodes[i]; other.Out == "" {
				all += f.slots(k, other)
			}
		}
		each := free * f.share(k) / float64(max(all, 1))
		if k.waiting > 0 && int64(all) <= k.waiting {
			each = max(each, 9)
		}
		slots += each * float64(f.slots(k, n))
	}
	return slots - wasteWeight*f.waste(n) + scarceWeight*f.scarcity(n.pool(0).Device)*float64(max(n.Free.Devices, 0))
}

// share is the part of the class of all that is expected.
func (f *formula) share(k *class) float64 {
	total := int64(0)
	for t := range f.classes {
		total += f.classes[t].weight
	}
	return float64(k.weight) / float64(total)
}

// slots is how many pods of the class the node's free devices would hold.
func (f *formula) slots(k *class, n *Node) int {
	if k.devices == 0 || !k.on(n.pool(0).Device) || k.milliCPU > n.Free.MilliCPU {
		return 0
	}
	return max(n.Free.Devices, 0) / k.devices
}

// free is the free devices of the cluster of those kinds.
func (f *formula) free(kinds func(capacity.Device) bool) int {
	sum := 0
	for i := range f.cluster.Nodes {
		if n := &f.cluster.Nodes[i]; n.Out == "" && kinds(n.pool(0).Device) {
			sum += max(n.Free.Devices, 0)
		}
	}
	return sum
}

// waste is the mean of what is left free after the arrivals.
func (f *formula) waste(n *Node) float64 {
	weights := make([]int64, len(f.classes))
	for t := range f.classes {
		if k := &f.classes[t]; k.on(n.pool(0).Device) {
			weights[t] = k.weight
		}
	}
	drawn := draw(weights)
	if drawn == nil {
		return float64(max(n.Free.Devices, 0))
	}
	left := 0
	for _, arrivals := range drawn {
		devices, milliCPU := max(n.Free.Devices, 0), max(n.Free.MilliCPU, 0)
		for _, t := range arrivals {
			if k := &f.classes[t]; k.devices <= devices && k.milliCPU <= milliCPU {
				devices -= k.devices
				milliCPU -= k.milliCPU
			}
		}
		left += devices
	}
	return float64(left) / orders
}

// scarcity is the sum of the squares of rho over the sets that a kind is in.
func (f *formula) scarcity(d capacity.Device) float64 {
	sum := 0.0
	for m := range f.classes {
		set := &f.classes[m]
		if set.devices == 0 || !set.on(d) || f.named(m) {
			continue
		}
		demand, within := 0.0, 0.0
		for t := range f.classes {
			k := &f.classes[t]
			demand += f.share(k) * float64(k.devices)
			if k.devices > 0 && f.within(k, set) {
				within += f.share(k) * float64(k.devices)
			}
		}
		all := f.free(func(capacity.Device) bool { return true })
		sum += math.Pow(within/demand*float64(all)/float64(max(f.free(set.on), 1)), 2)
	}
	return sum
}

// within reports whether the class accepts some kind of the cluster, and only such as
// the set does.
func (f *formula) within(k, set *class) bool {
	some := false
	for i := range f.cluster.Nodes {
		d := f.cluster.Nodes[i].pool(0).Device
		if k.on(d) && !set.on(d) {
			return false
		}
		some = some || k.on(d)
	}
	return some
}

// named reports whether an earlier class accepts the same kinds as the m-th.
func (f *formula) named(m int) bool {
	for t := range m {
		k := &f.classes[t]
		if k.devices > 0 && f.within(k, &f.classes[m]) && f.within(&f.classes[m], k) {
			return true
		}
	}
	return false
}

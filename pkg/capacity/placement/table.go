package placement

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Table is what every state of a node is worth to the replicas still expected. A
// state is the kind of devices, how many of them are free, and the free CPU. Placing
// a pod turns the state x of a node into x'; its loss is worth(x) - worth(x'), with
//
//	worth(x) = F * sum over classes t of (p_t / S_t) * slots_t(x)
//	         - wasteWeight * waste(x)
//	         + scarceWeight * sum over sets M of rho_M^2 * free_M(x)
//
// in devices, where
//   - a class t is what is expected of one shape, and p_t its part of all that is
//     expected; slots_t(x) is how many pods of the class the free devices would hold,
//     0 when the CPU does not suffice for one; S_t is the sum of slots_t over the
//     cluster, at least 1. The first term is the slots lost, by how scarce they are. Where
//     no more of them are left than replicas wait for one, each is worth neededWeight at
//     least, however much else is expected some day;
//   - waste(x) is the mean of the devices left free after 20 pods of the classes
//     that the kind would do for were offered to the node, one after the other, each
//     taken when it fits, over 64 orders of arrival. It sees gaps, CPU that runs
//     out and the sizes in one number;
//   - F is the free devices of the cluster; M is every set of kinds that some class
//     accepts; free_M is the free devices of those kinds, and rho_M the part of the
//     expected devices that must come from M, times F over free_M of the cluster.
//     Above 1 that set is about to run out.
//
// The formula is of a study of packing on traces; devices that are free on nodes that
// take no pods count nowhere.
//
// A Table never changes. The nil Table knows neither outlook nor cluster and counts
// the slots of the usual sizes.
type Table struct {
	*layout
	// worth is by kind, then by free devices, then by CPU level.
	worth [][]int64
}

// The weights of the second and third term.
const (
	wasteWeight  = 3
	scarceWeight = 0.5
)

// neededWeight is more than the mates of a replica that is spread can count.
const neededWeight = MateWeight*(SpreadUpTo-1) + 1

// Unit is a loss of one device. Losses are whole numbers of its fractions.
const Unit = 1 << 20

const (
	// maxKinds bounds what absurd labels can cost; further kinds are worth what the
	// nil table says.
	maxKinds = 128
	// maxDevices is the most free devices of one pool that are told apart.
	maxDevices = 256
	// maxPerDevice is the most that a device can be worth; it keeps sums in range.
	maxPerDevice = 1 << 20
)

// layout is the part of a table that does not depend on what is free.
type layout struct {
	// outlook is nil for the neutral one.
	outlook Outlook
	classes []class
	// shares are p_t.
	shares []float64
	kinds  []kind
	index  map[capacity.Device]int
	sets   []set
	// full is set when there are more kinds of devices than are told apart.
	full bool
}

// set is a set of kinds that some class accepts.
type set struct {
	kinds []bool
	// share is the part of the expected devices that must come from the set.
	share float64
}

// NewTable works out what the states of this cluster's nodes are worth. It looks at
// the outlook and the cluster, and keeps the outlook, which must not change.
func NewTable(outlook Outlook, c *Cluster) *Table {
	l := &layout{outlook: outlook, index: map[capacity.Device]int{}}
	l.findKinds(c)
	if outlook == nil {
		outlook = l.usual()
	}
	l.classes = classesOf(outlook)
	l.share()
	for i := range l.kinds {
		l.kinds[i].lay(l.classes)
	}
	l.findSets()
	return &Table{layout: l, worth: l.weigh(c)}
}

// Refresh is the table of the same outlook for the cluster as it is now. It is much
// cheaper than a new one, unless nodes of a new kind have come.
func (t *Table) Refresh(c *Cluster) *Table {
	if t == nil {
		return nil
	}
	if !t.knows(c) {
		return NewTable(t.outlook, c)
	}
	return &Table{layout: t.layout, worth: t.weigh(c)}
}

// usual is the neutral outlook, spelled out.
func (l *layout) usual() Outlook {
	outlook := Outlook{}
	for i := range l.kinds {
		for _, size := range usualSizes {
			if size <= l.kinds[i].devices {
				outlook = append(outlook, Expected{
					Shape:  capacity.Shape{Accelerator: l.kinds[i].device.Accelerator, Devices: size, Pods: 1},
					Weight: 1,
				})
			}
		}
	}
	return outlook
}

// share works out each class's part of all that is expected.
func (l *layout) share() {
	total := int64(0)
	for i := range l.classes {
		total = capacity.Plus(total, l.classes[i].weight)
	}
	l.shares = make([]float64, len(l.classes))
	for i := range l.classes {
		l.shares[i] = float64(l.classes[i].weight) / float64(total)
	}
}

// findSets finds the sets of kinds that the classes accept, and how much of the
// expected devices must come from each: that of the classes that accept no other.
func (l *layout) findSets() {
	known := map[string]bool{}
	accepts := make([][]bool, len(l.classes))
	demand := 0.0
	for t := range l.classes {
		k := &l.classes[t]
		if k.devices == 0 {
			continue
		}
		demand += float64(l.shares[t] * float64(k.devices))
		accepts[t] = make([]bool, len(l.kinds))
		key := make([]byte, len(l.kinds))
		some := false
		for i := range l.kinds {
			if k.on(l.kinds[i].device) {
				accepts[t][i], key[i], some = true, 1, true
			}
		}
		if some && !known[string(key)] {
			known[string(key)] = true
			l.sets = append(l.sets, set{kinds: accepts[t]})
		}
	}
	for m := range l.sets {
		within := 0.0
		for t := range l.classes {
			if accepts[t] != nil && l.sets[m].holds(accepts[t]) {
				within += float64(l.shares[t] * float64(l.classes[t].devices))
			}
		}
		l.sets[m].share = within / demand
	}
}

// holds reports whether every kind of an accepted set is in this one, and there is
// one.
func (m *set) holds(kinds []bool) bool {
	some := false
	for i, in := range kinds {
		if in && !m.kinds[i] {
			return false
		}
		some = some || in
	}
	return some
}

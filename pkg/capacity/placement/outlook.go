package placement

import (
	"cmp"
	"math/bits"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Outlook is the replicas still expected, by shape, in any order. A nil Outlook is
// neutral: it expects the usual sizes of every accelerator of the cluster in equal
// parts. An empty one expects nothing.
type Outlook []Expected

// Expected is a number of replicas of one shape that are still expected.
type Expected struct {
	Shape capacity.Shape
	// Also are further accelerators that would do.
	Also []capacity.Accelerator
	// Weight is how much of all that is expected this is, in units that are the same
	// throughout an outlook: replicas, or thousandths of them. What lies outside 0 to
	// MaxWeight counts as the nearest of them.
	Weight int64
	// Waiting is how many of them are wanted now, in replicas, and would take a place at
	// once. What is below 0 is none.
	Waiting int64
}

// The weight of one replica that is still expected, in thousandths of one.
const (
	wantedWeight = 1000
	roomWeight   = 100
)

// Expecting is what one variant still expects of its shape: in full the replicas that
// it wants and no node holds, and a tenth of those that it has room for beyond these
// and the present ones, which nodes hold. The room goes up to most; where most is
// negative there is no bound, and the variant is expected to grow by what is present,
// and at least by one. All who say what is expected say it with this function, so
// that they value room alike.
func Expecting(shape capacity.Shape, wanted, present, most int) Expected {
	wanted, present = max(wanted, 0), max(present, 0)
	room := max(1, present)
	if most >= 0 {
		room = max(0, capacity.Minus(capacity.Minus(most, present), wanted))
	}
	weight := capacity.Plus(capacity.Times(wantedWeight, int64(wanted)), capacity.Times(roomWeight, int64(room)))
	return Expected{Shape: shape, Weight: min(weight, MaxWeight), Waiting: int64(wanted)}
}

// MaxWeight keeps sums of weights far from the end of their range.
const MaxWeight = 1_000_000_000_000

// usualSizes are the devices per replica that the neutral outlook expects.
var usualSizes = [...]int{1, 2, 4, 8, 16}

// class is what an outlook expects, reduced to what a loss depends on: the memory
// that a pod asks for only says whether it fits.
type class struct {
	devices  int
	milliCPU int64
	// accepts are the devices that would do, in a fixed order.
	accepts []capacity.Device
	weight  int64
	waiting int64
	// memoryBytes is the least that any of the class asks for.
	memoryBytes int64
}

// classesOf is what the outlook expects, equal expectations merged, in an order that
// does not depend on that of the outlook: by devices, then by CPU, then by name, the
// largest first. Shapes that nobody can count are left out.
func classesOf(outlook Outlook) []class {
	classes := make([]class, 0, len(outlook))
	for i := range outlook {
		e := &outlook[i]
		s := &e.Shape
		if e.Weight <= 0 || s.Devices < 0 || s.MilliCPU < 0 || s.Pods > 1 || s.Devices > 0 && s.Accelerator == "" && len(e.Also) == 0 {
			continue
		}
		k := class{devices: s.Devices, milliCPU: s.MilliCPU, weight: min(e.Weight, MaxWeight), waiting: max(e.Waiting, 0), memoryBytes: max(s.MemoryBytes, 0)}
		if s.Devices > 0 {
			k.accepts = accepted(e)
		}
		classes = append(classes, k)
	}
	slices.SortFunc(classes, class.compare)
	merged := classes[:0]
	for _, k := range classes {
		if last := len(merged) - 1; last >= 0 && merged[last].compare(k) == 0 {
			merged[last].memoryBytes = min(merged[last].memoryBytes, k.memoryBytes)
			merged[last].weight = min(merged[last].weight+k.weight, MaxWeight)
			merged[last].waiting = capacity.Plus(merged[last].waiting, k.waiting)
			continue
		}
		merged = append(merged, k)
	}
	return merged
}

func accepted(e *Expected) []capacity.Device {
	devices := make([]capacity.Device, 0, 1+len(e.Also))
	devices = append(devices, e.Shape.Device())
	for _, a := range e.Also {
		devices = append(devices, capacity.Device{Accelerator: a})
	}
	slices.SortFunc(devices, compareDevices)
	return slices.Compact(devices)
}

func (k class) compare(o class) int {
	return cmp.Or(
		cmp.Compare(o.devices, k.devices),
		cmp.Compare(o.milliCPU, k.milliCPU),
		slices.CompareFunc(k.accepts, o.accepts, compareDevices),
	)
}

func compareDevices(a, b capacity.Device) int {
	return cmp.Or(
		cmp.Compare(a.Accelerator, b.Accelerator),
		cmp.Compare(a.MemoryGiB, b.MemoryGiB),
		cmp.Compare(a.Form, b.Form),
	)
}

// on reports whether devices of this kind would do. A class without devices goes
// anywhere.
func (k *class) on(d capacity.Device) bool {
	return k.devices == 0 || slices.ContainsFunc(k.accepts, func(a capacity.Device) bool { return a.Covers(d) })
}

// orders and offered are how many orders of arrival are looked at, and how many
// pods come in each.
const (
	orders  = 64
	offered = 20
)

// draw draws the orders of arrival in which the expected pods are offered to a node:
// indexes into the weights, each as often as its weight says. It always draws the
// same, so that states are compared on the same arrivals, and it draws in strata:
// every place of the order sees the whole mix over the drawings, and all of them
// together have every weight as often as it says, to within one. It returns nil when
// no weight is above zero.
func draw(weights []int64) *[orders][offered]int {
	ends := make([]uint64, len(weights))
	total := uint64(0)
	for i, w := range weights {
		total += uint64(min(max(w, 0), MaxWeight))
		ends[i] = total
	}
	if total == 0 {
		return nil
	}
	var drawn [orders][offered]int
	chance := capacity.Draws(1)
	ranks := order(&chance, offered)
	for place := range offered {
		strata := order(&chance, orders)
		for d := range orders {
			// The middle of one of orders * offered equal parts, each taken once.
			part := uint64(strata[d]*offered + ranks[place])
			hi, lo := bits.Mul64(2*part+1, total)
			point, _ := bits.Div64(hi, lo, 2*orders*offered)
			drawn[d][place], _ = slices.BinarySearchFunc(ends, point, func(end, point uint64) int {
				if end <= point {
					return -1
				}
				return 1
			})
		}
	}
	return &drawn
}

// order is the first n whole numbers in random order.
func order(chance *capacity.Draws, n int) []int {
	order := make([]int, n)
	for i := range order {
		j := int(chance.Next() % uint64(i+1))
		order[i], order[j] = order[j], i
	}
	return order
}

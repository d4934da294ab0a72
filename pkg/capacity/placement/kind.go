package placement

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// kind is one kind of devices, with the states that its pools can be in: free devices
// from 0 to devices, and free CPU in levels.
type kind struct {
	device capacity.Device
	// devices and milliCPU are the most that a node of the kind offers.
	devices  int
	milliCPU int64
	// unit is the CPU of one level, in thousandths of a core.
	unit   int64
	levels int
	// takes are the classes that the kind would do for.
	takes []bool
	// wasted is the devices left free, summed over the drawings, by state.
	wasted []int32
	// usable is the most devices that expected pods can use together, by state.
	usable []int16
	// bytesPerDevice is the least memory that a class asks for with each device.
	bytesPerDevice float64
}

// The number of CPU levels: exact up to the first, and about the second where the
// requests have no common unit. States are bounded too, for kinds of many devices.
const (
	exactLevels  = 1024
	coarseLevels = 256
	maxStates    = 1 << 16
)

// findKinds finds the kinds of devices of the cluster, in the order of its nodes.
func (l *layout) findKinds(c *Cluster) {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for j := range n.pools() {
			p := n.pool(j)
			if p.Device.Accelerator == "" || p.Allocatable <= 0 {
				continue
			}
			at, ok := l.index[p.Device]
			if !ok {
				if len(l.kinds) == maxKinds {
					l.full = true
					continue
				}
				at = len(l.kinds)
				l.index[p.Device] = at
				l.kinds = append(l.kinds, kind{device: p.Device})
			}
			k := &l.kinds[at]
			k.devices = max(k.devices, min(p.Allocatable, maxDevices))
			k.milliCPU = max(k.milliCPU, n.Allocatable.MilliCPU)
		}
	}
}

// knows reports whether the layout tells apart the states that the nodes of the
// cluster can be in.
func (l *layout) knows(c *Cluster) bool {
	for i := range c.Nodes {
		n := &c.Nodes[i]
		for j := range n.pools() {
			p := n.pool(j)
			if p.Device.Accelerator == "" || p.Allocatable <= 0 {
				continue
			}
			at, ok := l.index[p.Device]
			if !ok && l.full {
				continue
			}
			if !ok || min(p.Allocatable, maxDevices) > l.kinds[at].devices || n.Allocatable.MilliCPU > l.kinds[at].milliCPU {
				return false
			}
		}
	}
	return true
}

// lay finds the levels and works out what is the same whatever else is free.
func (k *kind) lay(classes []class) {
	k.takes = make([]bool, len(classes))
	for t := range classes {
		k.takes[t] = classes[t].on(k.device)
	}
	k.findLevels(classes)
	k.offer(classes)
	k.fill(classes)
	k.bytesPerDevice = math.Inf(1)
	for t := range classes {
		if c := &classes[t]; k.takes[t] && c.devices > 0 {
			k.bytesPerDevice = min(k.bytesPerDevice, float64(c.memoryBytes)/float64(c.devices))
		}
	}
}

// findLevels chooses the unit of CPU: the largest that divides every request, else one
// that leaves a few hundred levels. CPU that no arrival could use is not told apart.
// Coarse levels round down what is asked for as well as what is free, so that a
// node's equal parts still fill it.
func (k *kind) findLevels(classes []class) {
	unit, most := int64(0), int64(0)
	for t := range classes {
		if cpu := classes[t].milliCPU; k.takes[t] && cpu <= k.milliCPU {
			unit = gcd(unit, cpu)
			most = max(most, cpu)
		}
	}
	if unit == 0 {
		k.unit, k.levels = 1, 1
		return
	}
	top := min(max(k.milliCPU, 0), capacity.Times(most, int64(max(offered, k.devices))))
	if top/unit >= max(1, min(exactLevels, maxStates/int64(k.rows()))) {
		levels := max(1, min(coarseLevels, maxStates/int64(k.rows())))
		unit = top/levels + 1
	}
	k.unit, k.levels = unit, int(top/unit)+1
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// rows is the number of different counts of free devices.
func (k *kind) rows() int { return k.devices + 1 }

// row is the row of so many free devices.
func (k *kind) row(free int) int { return min(max(free, 0), k.devices) }

// level is the level of so much free CPU.
func (k *kind) level(milliCPU int64) int {
	return int(min(max(milliCPU, 0)/k.unit, int64(k.levels-1)))
}

// needs is the level that a pod of the class needs; it reports false when no node of
// the kind has it, or the kind would not do.
func (k *kind) needs(t int, c *class) (level int, ok bool) {
	if !k.takes[t] || c.devices > k.devices || c.milliCPU/k.unit >= int64(k.levels) {
		return 0, false
	}
	return int(c.milliCPU / k.unit), true
}

// offer works out the waste of every state. Backwards through the arrivals, what is
// left in a state is what was left in the state that a pod turns it into where it is
// taken, for all levels of a row at once.
func (k *kind) offer(classes []class) {
	k.wasted = make([]int32, k.rows()*k.levels)
	weights, kinds := make([]int64, len(classes)), 0
	for t := range classes {
		if k.takes[t] && classes[t].weight > 0 {
			weights[t] = classes[t].weight
			kinds++
		}
	}
	drawn, drawings := draw(weights), orders
	if kinds <= 1 {
		// All orders of arrival are the same.
		drawings = 1
	}
	left := make([]int16, len(k.wasted))
	for d := range drawings {
		for i := range left {
			left[i] = int16(i / k.levels)
		}
		for place := offered - 1; place >= 0 && drawn != nil; place-- {
			c := &classes[drawn[d][place]]
			level, ok := k.needs(drawn[d][place], c)
			for free := k.devices; ok && free >= c.devices; free-- {
				copy(left[free*k.levels+level:(free+1)*k.levels], left[(free-c.devices)*k.levels:])
			}
		}
		for i, l := range left {
			k.wasted[i] += int32(l) * int32(orders/drawings)
		}
	}
}

// fill works out how many of the devices expected pods can use together, when they
// come in the numbers that fill best.
func (k *kind) fill(classes []class) {
	k.usable = make([]int16, k.rows()*k.levels)
	for free := range k.rows() {
		row := k.usable[free*k.levels : (free+1)*k.levels]
		for t := range classes {
			c := &classes[t]
			level, ok := k.needs(t, c)
			if !ok || c.devices == 0 || c.devices > free {
				continue
			}
			from := k.usable[(free-c.devices)*k.levels:]
			for l := level; l < k.levels; l++ {
				row[l] = max(row[l], int16(c.devices)+from[l-level])
			}
		}
	}
}

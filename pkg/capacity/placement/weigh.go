package placement

import "math"

// census counts the pools of one kind by state.
type census struct {
	// atLeast is how many pools have so many free devices and at least that level of
	// CPU, by row and level.
	atLeast []int32
	// free is the free devices of all of them.
	free int64
}

// count takes the census of the pools on nodes that take pods.
func (l *layout) count(c *Cluster) []census {
	counted := make([]census, len(l.kinds))
	for i := range l.kinds {
		counted[i].atLeast = make([]int32, len(l.kinds[i].wasted))
	}
	for i := range c.Nodes {
		n := &c.Nodes[i]
		if n.Out != "" {
			continue
		}
		for j := range n.pools() {
			at := l.kindOf(n, j)
			if at < 0 {
				continue
			}
			k := &l.kinds[at]
			row := k.row(n.free(j))
			counted[at].free += int64(row)
			counted[at].atLeast[row*k.levels+k.level(n.Free.MilliCPU)]++
		}
	}
	for i := range counted {
		levels := l.kinds[i].levels
		for at := len(counted[i].atLeast) - 2; at >= 0; at-- {
			if at%levels != levels-1 {
				counted[i].atLeast[at] += counted[i].atLeast[at+1]
			}
		}
	}
	return counted
}

// weigh works out what every state is worth in this cluster.
func (l *layout) weigh(c *Cluster) [][]int64 {
	counted := l.count(c)
	free := int64(0)
	for i := range counted {
		free += counted[i].free
	}
	worth := make([][]int64, len(l.kinds))
	for i := range l.kinds {
		worth[i] = make([]int64, len(l.kinds[i].wasted))
	}
	for t := range l.classes {
		l.weighSlots(t, counted, free, worth)
	}
	scarce := l.scarcity(counted, free)
	for i := range l.kinds {
		levels := l.kinds[i].levels
		for at := range worth[i] {
			if at%levels > 0 {
				// The slots of the classes that need no more CPU than the level below.
				worth[i][at] += worth[i][at-1]
			}
		}
		for at, wasted := range l.kinds[i].wasted {
			worth[i][at] += int64(at/levels)*scarce[i] - int64(wasted)*(wasteWeight*Unit/orders)
		}
	}
	return worth
}

// weighSlots adds the worth of the slots of one class to the states with just the CPU
// that the class needs.
func (l *layout) weighSlots(t int, counted []census, free int64, worth [][]int64) {
	class := &l.classes[t]
	if class.devices == 0 {
		return
	}
	slots := int64(0)
	for i := range l.kinds {
		k := &l.kinds[i]
		level, ok := k.needs(t, class)
		for f := class.devices; ok && f <= k.devices; f++ {
			slots += int64(counted[i].atLeast[f*k.levels+level]) * int64(f/class.devices)
		}
	}
	each := fixed(float64(free) * l.shares[t] / float64(max(slots, 1)))
	if class.waiting > 0 && slots <= class.waiting {
		each = max(each, neededWeight*Unit)
	}
	for i := range l.kinds {
		k := &l.kinds[i]
		level, ok := k.needs(t, class)
		for f := class.devices; ok && f <= k.devices; f++ {
			worth[i][f*k.levels+level] += each * int64(f/class.devices)
		}
	}
}

// scarcity is what a free device of each kind is worth for the sets that it is in.
func (l *layout) scarcity(counted []census, free int64) []int64 {
	scarce := make([]int64, len(l.kinds))
	for m := range l.sets {
		in := int64(0)
		for i := range counted {
			if l.sets[m].kinds[i] {
				in += counted[i].free
			}
		}
		rho := l.sets[m].share * float64(free) / float64(max(in, 1))
		each := fixed(scarceWeight * rho * rho)
		for i := range scarce {
			if l.sets[m].kinds[i] {
				scarce[i] = min(scarce[i]+each, maxPerDevice*Unit)
			}
		}
	}
	return scarce
}

// fixed is a number of devices in units, within bounds.
func fixed(devices float64) int64 {
	return int64(math.Round(min(devices, maxPerDevice) * Unit))
}

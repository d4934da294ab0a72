package main

import "slices"

// slotCounter counts slots: how many pods of each class with devices the states of nodes
// would hold if nothing else came. Every different count is kept once.
type slotCounter struct {
	classes []*Class
	// cpus are the different amounts of CPU that the classes ask for, ascending.
	cpus   []int64
	index  map[slotKey]int32
	counts [][]uint16
	// sums are S_t of the cluster, prices F * p_t / S_t as of the last call of price.
	sums   []int64
	prices []float64
	// worths of the counts, each as of a round of prices.
	worths []float64
	rounds []int32
	round  int32
}

// slotKey is what counts depend on: of the CPU only for which classes it suffices.
type slotKey struct {
	model uint8
	cpus  uint16
	free  [maxDevices]uint16
}

func newSlotCounter(s *Study) *slotCounter {
	k := &slotCounter{index: map[slotKey]int32{}}
	for i := range s.Classes {
		if c := &s.Classes[i]; c.Devices > 0 {
			k.classes = append(k.classes, c)
			k.cpus = append(k.cpus, c.MilliCPU)
		}
	}
	slices.Sort(k.cpus)
	k.cpus = slices.Compact(k.cpus)
	k.prices = make([]float64, len(k.classes))
	return k
}

// reset forgets the cluster.
func (k *slotCounter) reset() { k.sums = make([]int64, len(k.classes)) }

// add counts a node in, or out with a sign of -1.
func (k *slotCounter) add(id int32, sign int64) {
	for t, n := range k.counts[id] {
		k.sums[t] += sign * int64(n)
	}
}

// of is the identity of the counts of a state.
func (k *slotCounter) of(s *State) int32 {
	suffices, exact := slices.BinarySearch(k.cpus, int64(s.MilliCPU))
	if exact {
		suffices++
	}
	key := slotKey{model: s.Model, cpus: uint16(suffices), free: s.Free}
	if id, known := k.index[key]; known {
		return id
	}
	id := int32(len(k.counts))
	k.index[key] = id
	k.counts = append(k.counts, k.count(s))
	k.worths = append(k.worths, 0)
	k.rounds = append(k.rounds, 0)
	return id
}

func (k *slotCounter) count(s *State) []uint16 {
	counts := make([]uint16, len(k.classes))
	for t, c := range k.classes {
		switch {
		case int64(s.MilliCPU) < c.MilliCPU || !c.Models.has(s.Model):
		case c.partial():
			for _, free := range s.devices() {
				counts[t] += free / uint16(c.Share)
			}
		default:
			counts[t] = uint16(s.empty() / c.Devices)
		}
	}
	return counts
}

// price begins a round of prices for the cluster as it is now, with so many free devices.
func (k *slotCounter) price(free float64) {
	k.round++
	for t, c := range k.classes {
		k.prices[t] = free * c.Popularity / float64(max(k.sums[t], 1))
	}
}

// worth is the counts at the prices of the round, in devices.
func (k *slotCounter) worth(id int32) float64 {
	if k.rounds[id] == k.round {
		return k.worths[id]
	}
	worth := 0.0
	for t, n := range k.counts[id] {
		if n != 0 {
			worth += k.prices[t] * float64(n)
		}
	}
	k.worths[id], k.rounds[id] = worth, k.round
	return worth
}

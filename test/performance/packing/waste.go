package main

import (
	"cmp"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// wasteMeter estimates the devices that stay free on a node after expected pods were
// offered to it, over the arrivals that placement.Draw draws: for each model the same,
// of the pods that it would do for. It remembers what it has seen.
type wasteMeter struct {
	// offers are the orders of arrival, by model.
	offers [][][]offered
	known  map[State]float64
}

// offered is what waste needs to know of a pod.
type offered struct {
	milliCPU int32
	devices  uint16
	share    uint16
}

func newWasteMeter(s *Study) *wasteMeter {
	w := &wasteMeter{known: map[State]float64{}, offers: make([][][]offered, len(s.names))}
	classes := slices.Clone(s.Classes)
	slices.SortFunc(classes, inOrderOfDrawing)
	for model := range s.names {
		weights := make([]int64, len(classes))
		for t := range classes {
			if c := &classes[t]; c.Devices == 0 || c.Models.has(uint8(model)) {
				weights[t] = c.Count
			}
		}
		drawn := placement.Draw(weights)
		if drawn == nil {
			continue
		}
		for _, arrivals := range drawn {
			var order []offered
			for _, t := range arrivals {
				c := &classes[t]
				order = append(order, offered{milliCPU: int32(c.MilliCPU), devices: uint16(c.Devices), share: uint16(c.Share)})
			}
			w.offers[model] = append(w.offers[model], order)
		}
	}
	return w
}

// inOrderOfDrawing is the order in which placement has its classes: by devices, then by
// CPU, the largest first, then by the models that do.
func inOrderOfDrawing(a, b Class) int {
	return cmp.Or(cmp.Compare(b.demand(), a.demand()), cmp.Compare(b.MilliCPU, a.MilliCPU),
		slices.Compare(strings.Split(a.accepts, "|"), strings.Split(b.accepts, "|")))
}

// of is the waste of a state, in devices.
func (w *wasteMeter) of(s *State) float64 {
	free := s.free()
	if free == 0 {
		return 0
	}
	if waste, known := w.known[*s]; known {
		return waste
	}
	left, orders := free, w.offers[s.Model]
	if len(orders) > 0 {
		left = 0
	}
	for _, order := range orders {
		left += offer(*s, free, order)
	}
	waste := float64(left) / float64(max(len(orders), 1)) / whole
	w.known[*s] = waste
	return waste
}

// offer is what is left of so many free thousandths after the pods have come.
func offer(s State, free int, order []offered) int {
	// Devices without anything free come first; the rest is no longer kept in order.
	first := 0
	for s.Free[first] == 0 {
		first++
	}
	devices := s.Free[first:s.Count]
	for _, p := range order {
		if p.milliCPU > s.MilliCPU || p.devices > 0 && !settle(devices, p) {
			continue
		}
		s.MilliCPU -= p.milliCPU
		if free -= int(p.devices) * int(p.share); free == 0 {
			break
		}
	}
	return free
}

// settle takes what the pod asks for of the devices, a share of the tightest; false when
// it does not fit.
func settle(devices []uint16, p offered) bool {
	if p.share < whole {
		tightest := -1
		for i, free := range devices {
			if free >= p.share && (tightest < 0 || free < devices[tightest]) {
				tightest = i
			}
		}
		if tightest >= 0 {
			devices[tightest] -= p.share
		}
		return tightest >= 0
	}
	empty := uint16(0)
	for _, free := range devices {
		if free == whole {
			empty++
		}
	}
	if empty < p.devices {
		return false
	}
	for i, left := 0, p.devices; left > 0; i++ {
		if devices[i] == whole {
			devices[i] = 0
			left--
		}
	}
	return true
}

package main

import (
	"cmp"
	"slices"
)

// limits are bounds on the part of the devices that can be handed out when as much has
// arrived as the cluster has, whatever CPU, memory and models allow: of a policy that
// refuses nothing that fits, and of one that may refuse and knows the future.
//
// With T_s the part of the arrivals of share s that is placed, D_s their demand and v_s
// what a gap of s is worth (gapValues), no cutting of the devices holds more than
//
//	sum over s of v_s * n_s * T_s <= devices
//
// because no pattern on one device is worth more than a whole one. Who refuses nothing
// places every smaller share where a larger one fits, so that T_s does not grow with s:
// T is a mix of two cuts at most, each of which places all shares up to a size and none
// above. Who may refuse takes the shares first that hand out most for what they are worth.
//
// The limit of who refuses nothing has two caveats. T_s does not grow with s in the mean
// over streams: in a single one, more pods of a large share than of a smaller one may have
// come while there was room. And a smaller share must not need more CPU than a larger one:
// where it does, it may be left out by CPU while the larger one is placed.
func limits(classes []Class) (keeping, refusing float64) {
	values := gapValues(classes)
	demand := map[int]float64{}
	all := 0.0
	for i := range classes {
		c := &classes[i]
		demand[c.Share] += c.Popularity * float64(c.demand())
		all += c.Popularity * float64(c.demand())
	}
	delete(demand, 0)
	var sizes []part
	for share, d := range demand {
		sizes = append(sizes, part{share: share, handed: d / all, costs: d / all * values[share] * whole / float64(share)})
	}
	slices.SortFunc(sizes, func(a, b part) int { return cmp.Compare(a.share, b.share) })
	cuts := []part{{}}
	for _, s := range sizes {
		last := cuts[len(cuts)-1]
		cuts = append(cuts, part{s.share, last.handed + s.handed, last.costs + s.costs})
	}
	for i, a := range cuts {
		for _, b := range cuts[i:] {
			keeping = max(keeping, mixed(a, b))
		}
	}
	slices.SortFunc(sizes, func(a, b part) int { return cmp.Compare(a.costs/a.handed, b.costs/b.handed) })
	left := 1.0
	for _, s := range sizes {
		taken := min(1, left/s.costs)
		refusing, left = refusing+taken*s.handed, left-taken*s.costs
	}
	return keeping, refusing
}

// part is some of the arrivals: what they ask for of the devices, and what that is worth.
type part struct {
	share         int
	handed, costs float64
}

// mixed is the most that so much of a and the rest of b hands out where both together
// cost one at most.
func mixed(a, b part) float64 {
	switch {
	case b.costs <= 1:
		return b.handed
	case a.costs > 1:
		return 0
	}
	of := (1 - a.costs) / (b.costs - a.costs)
	return a.handed + of*(b.handed-a.handed)
}

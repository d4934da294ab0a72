package feasibility

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// region is the bins that some of the items may use, and the items that may use no
// others: together they must not ask for more than the region has.
type region struct {
	p     *problem
	bins  []int
	items []int
}

// exceeded reports whether the items ask for more than some region has, which proves
// that they do not fit.
func (p *problem) exceeded() bool {
	return slices.ContainsFunc(p.regions(), func(r region) bool {
		return slices.ContainsFunc(r.sizes(), r.devicesExceeded) || r.restExceeded()
	})
}

// regions are those of each item and that of all, each once.
func (p *problem) regions() []region {
	known := map[string]bool{}
	var regions []region
	add := func(in []bool) {
		key := make([]byte, len(in))
		r := region{p: p}
		for b := range in {
			if in[b] {
				key[b] = 1
				r.bins = append(r.bins, b)
			}
		}
		if known[string(key)] {
			return
		}
		known[string(key)] = true
		for i := range p.items {
			if !slices.ContainsFunc(p.binsFor(i), func(b int) bool { return !in[b] }) {
				r.items = append(r.items, i)
			}
		}
		regions = append(regions, r)
	}
	all := make([]bool, len(p.bins))
	for i := range p.items {
		in := make([]bool, len(p.bins))
		for _, b := range p.binsFor(i) {
			in[b], all[b] = true, true
		}
		add(in)
	}
	add(all)
	return regions
}

// binsFor are the bins that an item may use.
func (p *problem) binsFor(item int) []int {
	var bins []int
	for b := range p.bins {
		if p.bins[b].means[item] != shut {
			bins = append(bins, b)
		}
	}
	return bins
}

// sizes are the different numbers of devices of the region's items.
func (r region) sizes() []int {
	var sizes []int
	for _, i := range r.items {
		if d := r.p.items[i].shape.Devices; d > 0 {
			sizes = append(sizes, d)
		}
	}
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// devicesExceeded is the test of one size: an item of size d takes at least
// floor(d/size) of the floor(free/size) pieces of its pool.
func (r region) devicesExceeded(size int) bool {
	wanted, fit := 0, 0
	var which []int
	for _, i := range r.items {
		if pieces := r.p.items[i].shape.Devices / size; pieces > 0 {
			wanted = capacity.Plus(wanted, capacity.Times(pieces, r.p.items[i].count))
			which = append(which, i)
		}
	}
	for _, b := range r.bins {
		bin := &r.p.bins[b]
		for pool, free := range bin.pools {
			if slices.ContainsFunc(which, func(i int) bool { return bin.means[i] == int32(pool) }) {
				fit = capacity.Plus(fit, capacity.Times(free/size, bin.count))
			}
		}
	}
	return wanted > fit
}

// restExceeded adds up CPU, memory and pod slots.
func (r region) restExceeded() bool {
	var wanted, free [3]int64
	for _, i := range r.items {
		it := &r.p.items[i]
		for j, each := range [...]int64{it.shape.MilliCPU, it.shape.MemoryBytes, 1} {
			wanted[j] = capacity.Plus(wanted[j], capacity.Times(each, int64(it.count)))
		}
	}
	for _, b := range r.bins {
		bin := &r.p.bins[b]
		for j, each := range [...]int64{bin.milliCPU, bin.memoryBytes, bin.pods} {
			free[j] = capacity.Plus(free[j], capacity.Times(each, int64(bin.count)))
		}
	}
	return wanted[0] > free[0] || wanted[1] > free[1] || wanted[2] > free[2]
}

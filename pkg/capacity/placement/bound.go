package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// region is the bins that some of the items may use, and the items that may use no
// others: together they must not ask for more than the region has.
type region struct {
	p     *problem
	bins  []int
	items []int
}

// exceeded says which bound the items exceed together, or nothing. What it says
// proves that they do not fit.
func (p *problem) exceeded() string {
	for _, r := range p.regions() {
		for _, size := range r.sizes() {
			if binds := r.devicesExceeded(size); binds != "" {
				return binds
			}
		}
		if binds := r.restExceeded(); binds != "" {
			return binds
		}
	}
	return ""
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
func (r *region) sizes() []int {
	var sizes []int
	for _, i := range r.items {
		if d := r.p.items[i].shape.Devices; d > 0 {
			sizes = append(sizes, d)
		}
	}
	slices.Sort(sizes)
	sizes = slices.Compact(sizes)
	slices.Reverse(sizes)
	return sizes
}

// devicesExceeded is the test of one size: an item of size d takes at least
// floor(d/size) of the floor(free/size) pieces of its pool.
func (r *region) devicesExceeded(size int) string {
	wanted, fit := 0, 0
	var which []int
	for _, i := range r.items {
		if pieces := r.p.items[i].shape.Devices / size; pieces > 0 {
			wanted = plus(wanted, times(pieces, r.p.items[i].count))
			which = append(which, i)
		}
	}
	var holes holes
	for _, b := range r.bins {
		bin := &r.p.bins[b]
		for pool, free := range bin.pools {
			if slices.ContainsFunc(which, func(i int) bool { return bin.means[i] == int32(pool) }) {
				fit = plus(fit, times(free/size, bin.count))
				holes.add(free, bin.count)
			}
		}
	}
	if wanted <= fit {
		return ""
	}
	return fmt.Sprintf("%s: %d wanted, counted in pieces of %d, %d fit (%s)",
		shapes(r.p, which), wanted, size, fit, holes)
}

// restExceeded adds up CPU, memory and pod slots.
func (r *region) restExceeded() string {
	var wanted, free struct{ milliCPU, memoryBytes, pods int64 }
	nodes := 0
	for _, i := range r.items {
		it := &r.p.items[i]
		wanted.milliCPU = plus(wanted.milliCPU, times(it.shape.MilliCPU, int64(it.count)))
		wanted.memoryBytes = plus(wanted.memoryBytes, times(it.shape.MemoryBytes, int64(it.count)))
		wanted.pods = plus(wanted.pods, int64(it.count))
	}
	for _, b := range r.bins {
		bin := &r.p.bins[b]
		count := int64(bin.count)
		nodes += bin.count
		free.milliCPU = plus(free.milliCPU, times(bin.milliCPU, count))
		free.memoryBytes = plus(free.memoryBytes, times(bin.memoryBytes, count))
		free.pods = plus(free.pods, times(bin.pods, count))
	}
	which := shapes(r.p, r.items)
	switch {
	case wanted.milliCPU > free.milliCPU:
		return fmt.Sprintf("CPU for %s: %s wanted, %s free on %s", which, cores(wanted.milliCPU), cores(free.milliCPU), countNodes(nodes))
	case wanted.memoryBytes > free.memoryBytes:
		return fmt.Sprintf("memory for %s: %s wanted, %s free on %s", which, gibibytes(wanted.memoryBytes), gibibytes(free.memoryBytes), countNodes(nodes))
	case wanted.pods > free.pods:
		return fmt.Sprintf("pod slots for %s: %d wanted, %d free on %s", which, wanted.pods, free.pods, countNodes(nodes))
	default:
		return ""
	}
}

// shapes names the shapes of the items, each once.
func shapes(p *problem, items []int) string {
	var names []string
	for _, i := range items {
		if name := p.items[i].shape.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " + ")
}

// shortage says why fewer replicas of one request fit than are wanted:
//
//	8xH100: 3 wanted, 1 fit (4 nodes with 6 free each)
func (c *Cluster) shortage(w *Want, slots int) string {
	r := w.Request
	var holes holes
	// without counts the slots there would be if one of the resources did not bind.
	var without [4]int
	relaxed := [len(without)]capacity.Shape{r.Shape, r.Shape, r.Shape, r.Shape}
	relaxed[0].Devices, relaxed[1].MilliCPU, relaxed[2].MemoryBytes = min(1, r.Shape.Devices), 0, 0
	for i := range c.Nodes {
		v, pool := c.Nodes[i].typed(&r.Shape)
		if v != Fits || r.refused(i) != "" {
			continue
		}
		hole := 0
		if pool != noPool {
			hole = c.Nodes[i].free(pool)
		}
		holes.add(hole, 1)
		n := c.Nodes[i]
		for j := range without {
			if j == len(without)-1 {
				n.Free.Pods = max(n.Free.Devices, w.Count)
			}
			without[j] = plus(without[j], n.Slots(relaxed[j]))
		}
	}
	text := fmt.Sprintf("%v: %d wanted, %d fit", r.Shape, w.Count, slots)
	if holes.nodes == 0 {
		return text + " (no node takes them)"
	}
	binding := slices.Index(without[:], slices.MaxFunc(without[:], cmp.Compare[int]))
	on := countNodes(holes.nodes)
	switch {
	case without[binding] == slots || binding == 0:
		if r.Shape.Devices > 0 {
			return text + " (" + holes.String() + ")"
		}
		return text + " on " + on
	case binding == 1:
		return text + fmt.Sprintf(" (CPU: %s each, %s)", cores(r.Shape.MilliCPU), on)
	case binding == 2:
		return text + fmt.Sprintf(" (memory: %s each, %s)", gibibytes(r.Shape.MemoryBytes), on)
	default:
		return text + " (pod slots, " + on + ")"
	}
}

// holes describes the free devices of some nodes.
type holes struct {
	nodes, least, most int
}

func (h *holes) add(free, nodes int) {
	free = max(free, 0)
	if h.nodes == 0 {
		h.least = free
	}
	h.nodes = plus(h.nodes, nodes)
	h.least, h.most = min(h.least, free), max(h.most, free)
}

// String is "4 nodes with 6 free each", or the range.
func (h holes) String() string {
	switch {
	case h.nodes == 1:
		return fmt.Sprintf("1 node with %d free", h.most)
	case h.least == h.most:
		return fmt.Sprintf("%d nodes with %d free each", h.nodes, h.most)
	default:
		return fmt.Sprintf("%d nodes with %d to %d free", h.nodes, h.least, h.most)
	}
}

func countNodes(count int) string {
	if count == 1 {
		return "1 node"
	}
	return fmt.Sprintf("%d nodes", count)
}

func cores(milliCPU int64) string { return fmt.Sprintf("%.4g cores", float64(milliCPU)/1000) }

func gibibytes(bytes int64) string { return fmt.Sprintf("%.4g GiB", float64(bytes)/(1<<30)) }

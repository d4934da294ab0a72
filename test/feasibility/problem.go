package feasibility

import (
	"encoding/binary"
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// problem is a number of items to be packed into bins together. No other problem of
// the same question has to do with these bins.
type problem struct {
	items []item
	bins  []bin
}

// item is a number of equal replicas.
type item struct {
	shape *capacity.Shape
	count int
}

// bin is a node, or a pool of a node whose pools have enough of all else, as far as
// the items can tell.
type bin struct {
	// count is how many equal ones there are.
	count int
	// pools are the free devices.
	pools []int
	// milliCPU, memoryBytes and pods are what is free; unlimited means more than the
	// items could take together with the devices.
	milliCPU, memoryBytes, pods int64
	// taken is how many of the item at hand a search has put here.
	taken int
	// means is the pool that each item means here, by its index.
	means []int32
}

const unlimited = math.MaxInt64

// What an item can mean instead of a pool.
const (
	// shut: the bin does not take it.
	shut int32 = -1
	// bare: it asks for no devices.
	bare int32 = -2
)

// problemsOf turns a question into problems that have nothing to do with each other.
func problemsOf(c *placement.Cluster, wants []Want) []problem {
	var all problem
	var requests []*placement.Request
	for i := range wants {
		if w := &wants[i]; w.Count > 0 {
			all.items = append(all.items, item{shape: &w.Request.Shape, count: w.Count})
			requests = append(requests, w.Request)
		}
	}
	known := map[string]int{}
	add := func(b *bin) {
		key := b.key()
		if at, ok := known[key]; ok {
			all.bins[at].count++
			return
		}
		known[key] = len(all.bins)
		all.bins = append(all.bins, *b)
	}
	for i := range c.Nodes {
		binsOf(&c.Nodes[i], i, requests, all.items, add)
	}
	return all.split()
}

// binsOf hands over the bins that a node makes, which has that index.
func binsOf(n *placement.Node, node int, requests []*placement.Request, items []item, add func(*bin)) {
	if n.Out != "" {
		return
	}
	pools := poolsOf(n)
	b := bin{
		count:       1,
		pools:       make([]int, len(pools)),
		milliCPU:    max(n.Free.MilliCPU, 0),
		memoryBytes: max(n.Free.MemoryBytes, 0),
		pods:        max(int64(n.Free.Pods), 0),
		means:       make([]int32, len(items)),
	}
	some := false
	for i := range items {
		b.means[i] = shut
		if refused := requests[i].Refused; node < len(refused) && refused[node] != "" {
			continue
		}
		b.means[i] = meant(pools, items[i].shape)
		if pool := b.means[i]; pool >= 0 {
			b.pools[pool] = max(pools[pool].Free, 0)
		}
		if b.slots(&items[i], i) == 0 {
			b.means[i] = shut
		}
		some = some || b.means[i] != shut
	}
	if !some {
		return
	}
	b.forget(items)
	if b.milliCPU != unlimited || b.memoryBytes != unlimited || b.pods != unlimited || len(b.pools) == 1 {
		add(&b)
		return
	}
	for pool := range b.pools {
		if part := b.part(int32(pool)); part != nil {
			add(part)
		}
	}
}

// poolsOf are the devices of the node by type, its own ones first.
func poolsOf(n *placement.Node) []placement.Pool {
	own := placement.Pool{
		Device:      capacity.Device{Accelerator: n.Accelerator, MemoryGiB: n.MemoryGiB, Form: n.Form},
		Allocatable: n.Allocatable.Devices,
		Free:        n.Free.Devices,
	}
	return append([]placement.Pool{own}, n.Beside...)
}

// meant is the pool that the shape means, the first whose devices it covers, or shut, or
// bare.
func meant(pools []placement.Pool, s *capacity.Shape) int32 {
	if s.Devices == 0 {
		return bare
	}
	for i := range pools {
		if s.Device().Covers(pools[i].Device) {
			if pools[i].Allocatable < s.Devices {
				return shut
			}
			return int32(i)
		}
	}
	return shut
}

// forget makes unlimited what cannot run out before the devices do, and drops the
// pools that no item means.
func (b *bin) forget(items []item) {
	used := make([]bool, len(b.pools))
	for i := range items {
		if b.means[i] >= 0 {
			used[b.means[i]] = true
		}
	}
	for pool := range b.pools {
		if !used[pool] {
			b.pools[pool] = 0
		}
	}
	if b.most(items, func(s *capacity.Shape) int64 { return s.MilliCPU }) <= b.milliCPU {
		b.milliCPU = unlimited
	}
	if b.most(items, func(s *capacity.Shape) int64 { return s.MemoryBytes }) <= b.memoryBytes {
		b.memoryBytes = unlimited
	}
	if b.most(items, func(*capacity.Shape) int64 { return 1 }) <= b.pods {
		b.pods = unlimited
	}
}

// most bounds what the items could take of one resource in this bin: by the devices
// of each pool, at the worst ratio, and by how many items there are.
func (b *bin) most(items []item, takes func(*capacity.Shape) int64) int64 {
	ratio := make([]int64, len(b.pools))
	most, all := int64(0), int64(0)
	for i := range items {
		s := items[i].shape
		if b.means[i] == shut {
			continue
		}
		all = capacity.Plus(all, capacity.Times(takes(s), int64(items[i].count)))
		if pool := b.means[i]; pool >= 0 {
			ratio[pool] = max(ratio[pool], capacity.Times(takes(s), int64(b.pools[pool]))/int64(s.Devices))
		} else {
			most = capacity.Plus(most, capacity.Times(takes(s), int64(items[i].count)))
		}
	}
	for _, r := range ratio {
		most = capacity.Plus(most, r)
	}
	return min(most, all)
}

// part is one pool of the bin as a bin of its own, or nil when no item means it. Items
// without devices go with the first pool.
func (b *bin) part(pool int32) *bin {
	p := *b
	p.pools, p.means = []int{b.pools[pool]}, make([]int32, len(b.means))
	some := false
	for i, m := range b.means {
		p.means[i] = shut
		switch {
		case m == pool:
			p.means[i] = 0
		case m == bare && pool == 0:
			p.means[i] = bare
		default:
			continue
		}
		some = true
	}
	if !some {
		return nil
	}
	return &p
}

// key is the same for equal bins.
func (b *bin) key() string {
	key := make([]byte, 0, 8*(4+len(b.pools)+len(b.means)))
	key = binary.AppendVarint(key, b.milliCPU)
	key = binary.AppendVarint(key, b.memoryBytes)
	key = binary.AppendVarint(key, b.pods)
	key = binary.AppendVarint(key, int64(len(b.pools)))
	for _, free := range b.pools {
		key = binary.AppendVarint(key, int64(free))
	}
	for _, m := range b.means {
		key = binary.AppendVarint(key, int64(m))
	}
	return string(key)
}

// slots is how many of the item, which has that index, the bin still holds.
func (b *bin) slots(it *item, index int) int {
	pool := b.means[index]
	if pool == shut {
		return 0
	}
	slots := min(b.pods, math.MaxInt)
	if pool >= 0 {
		slots = min(slots, int64(b.pools[pool]/it.shape.Devices))
	}
	if it.shape.MilliCPU > 0 {
		slots = min(slots, b.milliCPU/it.shape.MilliCPU)
	}
	if it.shape.MemoryBytes > 0 {
		slots = min(slots, b.memoryBytes/it.shape.MemoryBytes)
	}
	return int(slots)
}

// take puts so many of the item into the bin, which has room for them; a negative
// number takes them out again.
func (b *bin) take(it *item, index, count int) {
	if pool := b.means[index]; pool >= 0 {
		b.pools[pool] -= it.shape.Devices * count
	}
	if b.milliCPU != unlimited {
		b.milliCPU -= it.shape.MilliCPU * int64(count)
	}
	if b.memoryBytes != unlimited {
		b.memoryBytes -= it.shape.MemoryBytes * int64(count)
	}
	if b.pods != unlimited {
		b.pods -= int64(count)
	}
}

// split takes apart what has no bins in common.
func (p *problem) split() []problem {
	group := make([]int, len(p.items))
	for i := range group {
		group[i] = i
	}
	root := func(i int) int {
		for group[i] != i {
			i = group[i]
		}
		return i
	}
	for b := range p.bins {
		first := -1
		for i, m := range p.bins[b].means {
			switch {
			case m == shut:
			case first < 0:
				first = root(i)
			default:
				group[root(i)] = first
			}
		}
	}
	var parts []problem
	for g := range group {
		if group[g] != g {
			continue
		}
		var members []int
		for i := range group {
			if root(i) == g {
				members = append(members, i)
			}
		}
		parts = append(parts, p.only(members))
	}
	return parts
}

// only is the problem of some of the items, which have no bins in common with others.
func (p *problem) only(members []int) problem {
	var part problem
	for _, i := range members {
		part.items = append(part.items, p.items[i])
	}
	for b := range p.bins {
		means := make([]int32, len(members))
		some := false
		for at, i := range members {
			means[at] = p.bins[b].means[i]
			some = some || means[at] != shut
		}
		if some {
			own := p.bins[b]
			own.means = means
			part.bins = append(part.bins, own)
		}
	}
	return part
}

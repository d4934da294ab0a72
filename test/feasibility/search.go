package feasibility

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// packs reports whether one of a few simple ways to pack finds room for everything.
// Largest first never fails where only devices bind, the sizes divide each other and
// all items share their bins.
func (p *problem) packs() bool {
	byDevices := func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.shape.Devices, a.shape.Devices), cmp.Compare(b.shape.MilliCPU, a.shape.MilliCPU), cmp.Compare(b.shape.MemoryBytes, a.shape.MemoryBytes))
	}
	byCPU := func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.shape.MilliCPU, a.shape.MilliCPU), byDevices(a, b))
	}
	byMemory := func(a, b *item) int {
		return cmp.Or(cmp.Compare(b.shape.MemoryBytes, a.shape.MemoryBytes), byDevices(a, b))
	}
	for _, order := range []func(a, b *item) int{byDevices, byCPU, byMemory} {
		for _, prefer := range []func(o *option) [3]int64{leastLeft, leastCPU, fewestOthers} {
			if p.packsBy(order, prefer) {
				return true
			}
		}
	}
	return false
}

// option is a bin that has room for an item.
type option struct {
	bin *bin
	at  int
	// slots is how many of the item it holds.
	slots int
	// left is the devices that would be left over.
	left int
	// others is how many other items may use it.
	others int
	rank   [3]int64
}

func leastLeft(o *option) [3]int64 {
	return [3]int64{int64(o.left), int64(o.others), o.bin.milliCPU}
}

func leastCPU(o *option) [3]int64 { return [3]int64{o.bin.milliCPU, int64(o.left), int64(o.others)} }

func fewestOthers(o *option) [3]int64 {
	return [3]int64{int64(o.others), int64(o.left), o.bin.milliCPU}
}

// packsBy packs the items in an order, each into the bins that are preferred for it,
// as many as a bin holds.
func (p *problem) packsBy(order func(a, b *item) int, prefer func(o *option) [3]int64) bool {
	indexes := make([]int, len(p.items))
	for i := range indexes {
		indexes[i] = i
	}
	slices.SortStableFunc(indexes, func(a, b int) int { return order(&p.items[a], &p.items[b]) })
	bins := copyBins(p.bins)
	for _, i := range indexes {
		missing := p.items[i].count
		options := p.options(bins, i)
		for o := range options {
			options[o].rank = prefer(&options[o])
		}
		slices.SortFunc(options, func(a, b option) int {
			return cmp.Or(slices.Compare(a.rank[:], b.rank[:]), cmp.Compare(a.at, b.at))
		})
		for o := 0; o < len(options) && missing > 0; o++ {
			at := options[o].at
			full := min(bins[at].count, missing/options[o].slots)
			bins = carve(bins, at, full, &p.items[i], i, options[o].slots)
			missing -= full * options[o].slots
			if missing > 0 && bins[at].count > 0 {
				bins = carve(bins, at, 1, &p.items[i], i, missing)
				missing = 0
			}
		}
		if missing > 0 {
			return false
		}
	}
	return true
}

// carve puts each items into count of the equal bins at an index, and sets these
// apart from the others.
func carve(bins []bin, at, count int, it *item, index, each int) []bin {
	if count == 0 {
		return bins
	}
	own := bins[at]
	own.pools = slices.Clone(own.pools)
	own.count = count
	own.take(it, index, each)
	bins[at].count -= count
	return append(bins, own)
}

// options are the bins with room for the item.
func (p *problem) options(bins []bin, index int) []option {
	it := &p.items[index]
	var options []option
	for b := range bins {
		slots := bins[b].slots(it, index)
		if slots == 0 || bins[b].count == 0 {
			continue
		}
		o := option{bin: &bins[b], at: b, slots: slots}
		if pool := bins[b].means[index]; pool >= 0 {
			o.left = bins[b].pools[pool] - slots*it.shape.Devices
		}
		for other := range p.items {
			if other != index && bins[b].means[other] != shut {
				o.others++
			}
		}
		options = append(options, o)
	}
	return options
}

// copyBins copies bins so that the copies can be filled.
func copyBins(bins []bin) []bin {
	copied := slices.Clone(bins)
	for i := range copied {
		copied[i].pools = slices.Clone(bins[i].pools)
	}
	return copied
}

// outcome is what a search came to.
type outcome uint8

const (
	// undecided: the search was too large to finish.
	undecided outcome = iota
	// found: everything fits.
	found
	// exhausted: no placement holds everything.
	exhausted
)

// The size of a search: bins and replicas that it takes on at all, and how many bins
// it looks at before it gives up, which takes a few hundredths of a second.
const (
	searchBins     = 64
	searchReplicas = 256
	searchSteps    = 1_000_000
)

// search tries all placements of a small problem.
func (p *problem) search() outcome {
	s := search{problem: p, failed: map[string]bool{}}
	replicas := 0
	for i := range p.items {
		replicas = capacity.Plus(replicas, p.items[i].count)
	}
	for i := range p.bins {
		if replicas > searchReplicas || p.bins[i].count > searchBins-len(s.open) {
			return undecided
		}
		for range p.bins[i].count {
			s.open = append(s.open, p.bins[i])
		}
	}
	s.open = copyBins(s.open)
	for i := range p.items {
		s.order = append(s.order, i)
	}
	// What has the fewest places comes first.
	slack := func(i int) float64 { return float64(s.room(i, 0)) / float64(p.items[i].count) }
	slices.SortStableFunc(s.order, func(a, b int) int {
		return cmp.Or(cmp.Compare(p.items[b].shape.Devices, p.items[a].shape.Devices), cmp.Compare(slack(a), slack(b)))
	})
	switch ok := s.next(0); {
	case ok:
		return found
	case s.steps > searchSteps:
		return undecided
	default:
		return exhausted
	}
}

// search is the working state of a search: items in an order, each spread over the
// bins from the first to the last.
type search struct {
	*problem
	order []int
	open  []bin
	steps int
	// failed are the states of the bins from which the items from a place of the order
	// on are known not to fit.
	failed map[string]bool
}

// room is how many of an item the bins from one on hold, if nothing else came.
func (s *search) room(index, from int) int {
	room := 0
	for b := from; b < len(s.open); b++ {
		room = capacity.Plus(room, s.open[b].slots(&s.items[index], index))
	}
	s.steps += len(s.open) - from
	return room
}

// next places the items from that place of the order on.
func (s *search) next(place int) bool {
	if place == len(s.order) {
		return true
	}
	for _, index := range s.order[place:] {
		if s.room(index, 0) < s.items[index].count {
			return false
		}
	}
	key := s.key(place)
	if s.failed[key] {
		return false
	}
	index := s.order[place]
	if s.spread(place, 0, s.items[index].count) {
		return true
	}
	if s.steps <= searchSteps {
		s.failed[key] = true
	}
	return false
}

// spread places so many of an item into the bins from one on, in every way, and goes
// on with the next item.
func (s *search) spread(place, from, missing int) bool {
	if missing == 0 {
		return s.next(place + 1)
	}
	index := s.order[place]
	if s.steps > searchSteps || s.room(index, from) < missing {
		return false
	}
	b, it := &s.open[from], &s.items[index]
	most := min(missing, b.slots(it, index), s.before(from, index))
	for k := most; k >= 0; k-- {
		b.take(it, index, k)
		b.taken = k
		ok := s.spread(place, from+1, missing-k)
		b.take(it, index, -k)
		if ok {
			return true
		}
	}
	return false
}

// before bounds how many of an item go into a bin by how many went into an equal one
// before it: of equal bins, only one order needs to be tried.
func (s *search) before(at, index int) int {
	if at == 0 {
		return math.MaxInt
	}
	last, b := &s.open[at-1], &s.open[at]
	last.take(&s.items[index], index, -last.taken)
	same := last.key() == b.key()
	last.take(&s.items[index], index, last.taken)
	if same {
		return last.taken
	}
	return math.MaxInt
}

// key is the state of the bins, in any order, before a place of the order.
func (s *search) key(place int) string {
	keys := make([]string, len(s.open))
	for b := range s.open {
		keys[b] = s.open[b].key()
	}
	slices.Sort(keys)
	all := binary.AppendVarint(nil, int64(place))
	for _, k := range keys {
		all = append(all, k...)
	}
	return string(all)
}

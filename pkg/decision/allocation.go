package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// oneMore is a need in requests per second that any single replica covers.
const oneMore capacity.Rate = 1e-3

// allocate turns what the model wants into replicas of its variants.
func allocate(r *round, m *model) {
	switch {
	case m.wants == wantMore:
		r.grow(m)
	case r.comeBack(m):
	case m.wants == wantLess:
		m.shrink()
	default:
		m.each(func(v *variant) { v.note(StageAllocation, ReasonSteady, "no change is wanted") })
	}
}

// grow buys the cheapest replicas that cover what is missing, and at least one, of
// what fits. A cluster that grows is asked for the rest as well, so that its node
// autoscaler can act.
func (r *round) grow(m *model) {
	need := max(m.missing, oneMore)
	first, reserves := r.growable(m)
	bought, short := r.buyFitting(m, first, need)
	// What waits in vain for a node is asked for already.
	waits := r.waitsInVain(m)
	if short > waits && len(reserves) > 0 {
		more, left := r.buyFitting(m, reserves, short-waits)
		for v, n := range more {
			bought[v] = n
		}
		short = left + waits
	}
	r.denyCrowded(m, first, bought, need)
	if !r.policy.Limited {
		short = r.buyBeyond(m, first, short, bought)
		short = waits + r.buyBeyond(m, reserves, short-waits, bought)
	}
	m.short = max(0, short)
	m.each(func(v *variant) { v.grown(m, bought[v]) })
}

// waitsInVain is the rate that the replicas would serve which are no supply because
// they wait in vain for a node.
func (r *round) waitsInVain(m *model) capacity.Rate {
	rate := capacity.Rate(0)
	m.each(func(v *variant) {
		if waiting := v.in.waiting() + v.absent; v.paused > 0 && waiting > 0 {
			rate += m.worth(v) * capacity.Rate(waiting)
		}
	})
	return rate
}

// worth is what one replica of the variant is reckoned with when replicas are added;
// while nothing is known of what any of them serves, all count as equal.
func (m *model) worth(v *variant) capacity.Rate {
	if v.serves == 0 {
		return 1
	}
	return v.serves * m.caution
}

// buyBeyond asks a cluster that grows for what does not fit now.
func (r *round) buyBeyond(m *model, candidates []*variant, need capacity.Rate, bought map[*variant]int) (short capacity.Rate) {
	if need <= 0 || len(candidates) == 0 {
		return max(0, need)
	}
	beyond, short := allocation.Cover(m.options(candidates, func(v *variant) int { return r.beyond(v, bought[v]) }), need)
	for i, v := range candidates {
		bought[v] += beyond[i]
		if slots := v.plan.Slots; slots != nil && bought[v] > slots.Count {
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, fmt.Sprintf("%s wanted, %d fit; the cluster must grow", plural(bought[v], "more replica", "more replicas"), slots.Count)})
		}
	}
	return short
}

// grown records what was bought of the variant.
func (v *variant) grown(m *model, n int) {
	switch {
	case n == 0 && v.paused > 0:
		v.note(StageAllocation, ReasonBackingOff, "%s", v.pausedDetail())
	case n == 0:
		v.note(StageAllocation, ReasonSteady, "other variants serve the demand for less, or nothing more fits")
	case v.serves == 0:
		v.step(StageAllocation, v.target+n, ReasonSaturated, "%s: %s, because what a replica serves is not known yet", m.load.detail, plural(n, "more replica", "more replicas"))
	default:
		v.step(StageAllocation, v.target+n, ReasonSaturated, "%s: %s for %.2f requests/s, of which a replica serves %.2f", m.load.detail, plural(n, "more replica", "more replicas"), m.required, v.serves)
	}
}

// growable lists the variants that may grow: first those whose replicas come up;
// the reserves, whose replicas get stuck or found no node lately, are asked only for
// what the others cannot serve. A cluster that does not grow has nothing more for a
// variant that found no node.
func (r *round) growable(m *model) (first, reserves []*variant) {
	m.each(func(v *variant) {
		switch {
		case v.paused > 0 && r.policy.Limited:
		case v.paused > 0 || v.stuck:
			reserves = append(reserves, v)
		default:
			first = append(first, v)
		}
	})
	return first, reserves
}

// denyCrowded remembers which variants would have been bought instead, or as well,
// had there been room.
func (r *round) denyCrowded(m *model, candidates []*variant, bought map[*variant]int, need capacity.Rate) {
	ideal, _ := allocation.Cover(m.options(candidates, func(v *variant) int { return r.beyond(v, 0) }), need)
	for i, v := range candidates {
		if less := ideal[i] - bought[v]; less > 0 && v.serves > 0 {
			if why := r.crowded(v); why != "" {
				r.deny(v, max(v.serves*capacity.Rate(less), r.old.Denied[v.key]), why)
			}
		}
	}
	m.each(func(v *variant) {
		// What was denied before is not forgotten because a little more is bought of
		// another variant meanwhile.
		if old := r.old.Denied[v.key]; old > 0 && bought[v] == 0 && r.next.Denied[v.key] == 0 {
			r.deny(v, old, r.crowded(v))
		}
	})
}

// headroom is how many replicas the variant's own bound still allows beyond those
// already bought; negative means no bound.
func (v *variant) headroom(bought int) int {
	if v.policy.Max < 0 {
		return -1
	}
	return max(0, v.policy.Max-v.target-bought)
}

// spareWorth is the worth of spare capacity as a share of what it would cost of the
// variant with the lowest cost per rate. Demand that triggers is likely to grow: of
// two purchases of nearly the same cost the one that leaves more in hand is better.
const spareWorth = 0.1

// options are the candidates with what they serve and cost, less the worth of what
// they serve. As the need is the same for all purchases, that values the spare.
func (m *model) options(candidates []*variant, limit func(*variant) int) []allocation.Option {
	worth := math.Inf(1)
	for _, v := range candidates {
		if v.serves > 0 {
			worth = min(worth, spareWorth*float64(v.in.Cost)/float64(v.serves*m.caution))
		}
	}
	list := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		list[i] = allocation.Option{Cost: v.in.Cost, Serves: m.worth(v), Limit: limit(v)}
		if v.serves == 0 {
			continue
		}
		list[i].Cost -= capacity.Cost(worth * float64(list[i].Serves))
	}
	return list
}

// buyFitting covers need with replicas that fit together, and takes their room.
// Variants share nodes, so what each of them could place alone is only where the
// search starts: a variant that could not place its share is bounded by what it
// could, and the search runs again.
func (r *round) buyFitting(m *model, candidates []*variant, need capacity.Rate) (map[*variant]int, capacity.Rate) {
	bound := map[*variant]int{}
	for _, v := range candidates {
		bound[v] = r.fitting(v)
	}
	bought := map[*variant]int{}
	for {
		buy, short := allocation.Cover(m.options(candidates, func(v *variant) int { return bound[v] }), need)
		undo, failed := r.placeAll(candidates, buy, bound)
		if !failed {
			for i, v := range candidates {
				bought[v] = buy[i]
			}
			return bought, short
		}
		undo()
	}
}

// placeAll tries the purchase out on the cluster, larger replicas first. When one
// does not fit it lowers that variant's bound and reports failure; undo takes
// everything off again.
func (r *round) placeAll(candidates []*variant, buy []int, bound map[*variant]int) (undo func(), failed bool) {
	type placed struct {
		v    *variant
		node int
	}
	var done []placed
	undo = func() {
		r.rooms = nil
		for _, p := range done {
			r.cluster.Remove(p.v.in.Request, p.node)
		}
	}
	var order []int
	for i, v := range candidates {
		if r.unknown(v) == nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(candidates[b].in.Request.Shape.Devices, candidates[a].in.Request.Shape.Devices)
	})
	for _, i := range order {
		v := candidates[i]
		for n := range buy[i] {
			r.rooms = nil
			node, ok := r.cluster.Place(v.in.Request)
			if !ok {
				bound[v] = n
				return undo, true
			}
			done = append(done, placed{v, node})
		}
	}
	return undo, false
}

// shrink removes replicas, the most expensive per rate first, as long as what
// stays serves the demand with something in hand and stays below the triggers.
func (m *model) shrink() {
	weight := m.weights()
	now, total := standing{}, 0
	for _, v := range m.variants {
		if v.exists() {
			now.ready += weight(v) * capacity.Rate(min(v.target, v.in.Ready))
			now.coming += weight(v) * capacity.Rate(min(v.target, v.supply))
			total += v.target
		}
	}
	left, after := now, map[*variant]int{}
	for _, v := range m.byUnitCost() {
		n := v.target
		if v.saturated {
			// Which replica goes is not ours to say; it might be the one with the queue.
			after[v] = n
			continue
		}
		for ; n > v.policy.Min && total > 1; n, total = n-1, total-1 {
			next := left
			if n <= v.in.Ready {
				next.ready -= weight(v)
			}
			if n <= v.supply {
				next.coming -= weight(v)
			}
			if !m.safe(now, next) {
				break
			}
			left = next
		}
		after[v] = n
	}
	m.each(func(v *variant) {
		n := after[v]
		if n == v.target {
			v.note(StageAllocation, ReasonSteady, "none can go: %.2f requests/s must be served, with headroom %.2f", m.required, m.atLeast)
			return
		}
		v.step(StageAllocation, n, ReasonSpareCapacity, "%s: %s for %.2f requests/s", m.load.detail, plural(n, "replica suffices", "replicas suffice"), m.required)
	})
}

// standing is what a model's replicas serve: those that are ready, and those with
// the ones that start.
type standing struct {
	ready, coming capacity.Rate
}

// weights is what one replica of each variant counts for when replicas are
// removed: the rate that it serves. While no such rate is known and nothing is
// asked for, all count the same.
func (m *model) weights() func(*variant) capacity.Rate {
	known := false
	for _, v := range m.variants {
		known = known || v.serves > 0
	}
	return func(v *variant) capacity.Rate {
		if !known && m.atLeast == 0 {
			return 1
		}
		return v.serves
	}
}

// byUnitCost lists the managed variants, the most expensive per rate first; ties by
// name, last first, as published.
func (m *model) byUnitCost() []*variant {
	var list []*variant
	m.each(func(v *variant) { list = append(list, v) })
	slices.SortStableFunc(list, func(a, b *variant) int {
		ua, ub := float64(a.in.Cost), float64(b.in.Cost)
		if a.serves > 0 && b.serves > 0 {
			ua, ub = a.unitCost(), b.unitCost()
		}
		return cmp.Or(cmp.Compare(ub, ua), cmp.Compare(b.in.Name, a.in.Name))
	})
	return list
}

// safe reports whether the supply may fall from now to after: it must still serve
// what is asked at least, and the load of the ready replicas that stay, which grows
// as they become fewer, must stay clear of the triggers. A replica that is saturated,
// or whose load is not known, has no spare to take over what another one did. No
// ready replica goes while fewer than two are known to have some.
func (m *model) safe(now, after standing) bool {
	if after.coming < m.atLeast {
		return false
	}
	if after.ready >= now.ready {
		return true
	}
	remain := after.ready - m.load.blind
	// Sums of rates are exact to a part in a billion at best.
	if m.load.eased < 2 || remain <= now.ready*1e-9 || after.ready < m.atLeast {
		return false
	}
	grown := float64((now.ready - m.load.blind) / remain)
	t := m.saturation
	return t.KVCacheThreshold-m.load.full*grown >= t.KVSpareTrigger &&
		t.QueueLengthThreshold-m.load.queue*grown >= t.QueueSpareTrigger
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

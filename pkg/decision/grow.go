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

// purchase is what one model buys.
type purchase struct {
	model *model
	// first are the variants whose replicas come up; reserves are asked only for what
	// those cannot serve.
	first, reserves []*variant
	// need is what is missing, and short what of it no replica that fits serves.
	need, short capacity.Rate
	bought      map[*variant]int
}

// growAll buys for all models that want more, the most important ones first. Where
// the room does not suffice for all of them, it is shared, those of the same priority
// fairly.
func (r *round) growAll(models []*model) {
	began := len(r.placed)
	all := make([]*purchase, len(models))
	crowded := false
	for i, m := range models {
		all[i] = r.buy(m, nil)
		crowded = crowded || all[i].short > 0 || r.tooFew(all[i])
	}
	if crowded && r.trial != nil {
		r.takeBack(began)
		shares := r.share(models)
		for i, m := range models {
			all[i] = r.buy(m, shares[i])
		}
		// Whole replicas may leave room that no share used.
		for i, m := range models {
			r.buyRest(m, all[i])
		}
	}
	for _, p := range all {
		r.tellCrowded(p)
		if !r.policy.Limited {
			r.askBeyond(p)
		}
		p.model.short = max(0, p.short)
		p.model.each(func(v *variant) { r.grown(p.model, v, p.bought[v]) })
	}
}

// buy takes the cheapest replicas that cover what is missing, and at least one, of
// what fits; at most gives each variant's share of the room, and is nil when there is
// enough for all.
func (r *round) buy(m *model, atMost map[*variant]int) *purchase {
	p := &purchase{model: m, need: max(m.need.missing, oneMore), bought: map[*variant]int{}}
	p.first, p.reserves = r.growable(m)
	p.short = r.buyFitting(p, p.first, p.need, atMost)
	// What waits in vain for a node is asked for already.
	if waits := r.waitsInVain(m); p.short > waits && len(p.reserves) > 0 {
		p.short = r.buyFitting(p, p.reserves, p.short-waits, atMost) + waits
	}
	return p
}

// buyRest buys of what is left when all have their shares.
func (r *round) buyRest(m *model, p *purchase) {
	if p.short > r.waitsInVain(m) {
		p.short = r.buyFitting(p, p.first, p.short, nil)
	}
}

// askBeyond asks a cluster that grows for the rest, so that its node autoscaler can
// act.
func (r *round) askBeyond(p *purchase) {
	m, waits := p.model, r.waitsInVain(p.model)
	p.short = r.buyBeyond(m, p.first, p.short, p.bought)
	// Those that are left alone are asked for already, or are tried again later.
	others := slices.DeleteFunc(slices.Clone(p.reserves), func(v *variant) bool { return v.fleet.paused > 0 })
	p.short = waits + r.buyBeyond(m, others, p.short-waits, p.bought)
}

// waitsInVain is the rate that the replicas would serve which are no supply because
// they wait in vain for a node.
func (r *round) waitsInVain(m *model) capacity.Rate {
	rate := capacity.Rate(0)
	m.each(func(v *variant) {
		if waiting := v.in.unscheduled() + v.fleet.count[stateNoPod]; v.fleet.paused > 0 && waiting > 0 {
			rate += m.worth(v) * capacity.Rate(waiting)
		}
	})
	return rate
}

// worth is what one replica of the variant is reckoned with when replicas are added.
func (m *model) worth(v *variant) capacity.Rate { return v.rate.serves() * m.demand.caution }

// perRate is the cost of serving one request per second.
func (m *model) perRate(v *variant) float64 { return float64(v.in.Cost) / float64(m.worth(v)) }

// buyBeyond asks a cluster that grows for what does not fit now.
func (r *round) buyBeyond(m *model, candidates []*variant, need capacity.Rate, bought map[*variant]int) (short capacity.Rate) {
	if need <= 0 || len(candidates) == 0 {
		return max(0, need)
	}
	beyond := allocation.Cheapest(m.options(candidates, func(v *variant) allocation.Option {
		return allocation.Option{Most: r.beyond(v, bought[v])}
	}), need)
	for i, v := range candidates {
		bought[v] += beyond.Replicas[i]
		if slots := v.plan.Slots; slots != nil && bought[v] > slots.Count {
			v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, fmt.Sprintf("%s wanted, %d fit; the cluster must grow", plural(bought[v], "more replica", "more replicas"), slots.Count)})
		}
	}
	return beyond.Unserved
}

// grown records what was bought of the variant.
func (r *round) grown(m *model, v *variant, n int) {
	switch {
	case n == 0:
		reason, detail := ReasonSteady, "other variants serve the demand for less"
		if m.short > 0 || v.rate.unfit() || v.fleet.paused > 0 {
			reason, detail = r.obstacle(v)
		}
		v.note(StageAllocation, reason, "%s", detail)
	case !m.rated:
		v.step(StageAllocation, v.target+n, m.need.reason, "%s: %s, because what a replica serves is not known yet", m.need.detail, plural(n, "more replica", "more replicas"))
	default:
		v.step(StageAllocation, v.target+n, m.need.reason, "%s: %s for %.2f requests/s, of which a replica serves %.2f", m.need.detail, plural(n, "more replica", "more replicas"), m.need.required, v.rate.serves())
	}
}

// growable lists the variants that may grow: first those whose replicas come up;
// the reserves, whose replicas get stuck or found no node lately, are asked only for
// what the others cannot serve. A cluster that does not grow has nothing more for a
// variant that found no node.
func (r *round) growable(m *model) (first, reserves []*variant) {
	m.each(func(v *variant) {
		switch {
		case v.fleet.paused > 0 && r.policy.Limited, v.rate.unfit():
		case v.fleet.paused > 0 || v.fleet.unhealthy:
			reserves = append(reserves, v)
		default:
			first = append(first, v)
		}
	})
	return first, reserves
}

// tooFew reports whether the purchase has fewer of a variant than it would without
// the limits of the room.
func (r *round) tooFew(p *purchase) bool { return len(r.missed(p)) > 0 }

// missed are the variants of which more would have been bought, had there been room.
func (r *round) missed(p *purchase) []*variant {
	if !slices.ContainsFunc(p.first, r.full) {
		return nil
	}
	ideal := allocation.Cheapest(p.model.options(p.first, func(v *variant) allocation.Option {
		return allocation.Option{Least: v.minimum.held, Most: r.beyond(v, 0)}
	}), p.need)
	var list []*variant
	for i, v := range p.first {
		if ideal.Replicas[i] > p.bought[v] && r.full(v) {
			list = append(list, v)
		}
	}
	return list
}

// tellCrowded says which variants lack room.
func (r *round) tellCrowded(p *purchase) {
	for _, v := range r.missed(p) {
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonNoSlots, r.crowded(v)})
	}
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
// they serve. As the need is the same for all purchases, that values the spare. The
// bounds are of what is bought.
func (m *model) options(candidates []*variant, bounds func(*variant) allocation.Option) []allocation.Option {
	worth := math.Inf(1)
	for _, v := range candidates {
		worth = min(worth, spareWorth*m.perRate(v))
	}
	list := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		list[i] = bounds(v)
		list[i].Serves = m.worth(v)
		list[i].Cost = v.in.Cost
		if m.rated {
			list[i].Cost -= capacity.Cost(worth * float64(list[i].Serves))
		}
	}
	return list
}

// buyFitting covers need with replicas that fit together, and takes their room.
// Variants share nodes, so what each of them could place alone is only where the
// search starts: a variant that could not place its share is bounded by what it
// could, and the search runs again. It returns what stays unserved.
func (r *round) buyFitting(p *purchase, candidates []*variant, need capacity.Rate, atMost map[*variant]int) capacity.Rate {
	if len(candidates) == 0 {
		return need
	}
	bound := make(map[*variant]int, len(candidates))
	for _, v := range candidates {
		bound[v] = r.fitting(v)
		if limit, shared := atMost[v]; shared && (bound[v] < 0 || limit < bound[v]) {
			bound[v] = limit
		}
		if bound[v] >= 0 {
			bound[v] = max(0, bound[v]-p.bought[v])
		}
	}
	for {
		buy := allocation.Cheapest(p.model.options(candidates, func(v *variant) allocation.Option {
			return allocation.Option{Least: max(0, v.minimum.held-p.bought[v]), Most: bound[v]}
		}), need)
		began := len(r.placed)
		if r.placeAll(p, candidates, buy.Replicas, bound) {
			for i, v := range candidates {
				p.bought[v] += buy.Replicas[i]
			}
			return buy.Unserved
		}
		r.takeBack(began)
	}
}

// placeAll tries the purchase out on the cluster, larger replicas first. When one
// does not fit it lowers that variant's bound and reports failure. The room of minima
// is taken already.
func (r *round) placeAll(p *purchase, candidates []*variant, buy []int, bound map[*variant]int) bool {
	for _, i := range p.model.placingOrder(candidates) {
		v := candidates[i]
		if r.unknown(v) != nil {
			continue
		}
		held := min(buy[i], max(0, v.minimum.held-p.bought[v]))
		for n := held; n < buy[i]; n++ {
			node, ok := r.trial.Place(v.in.Request)
			if !ok {
				bound[v] = n
				return false
			}
			r.placed = append(r.placed, placed{v, node})
		}
	}
	return true
}

// placingOrder is the order in which candidates take room: larger replicas first,
// which fit in fewer places, and of equal ones those that serve for less.
func (m *model) placingOrder(candidates []*variant) []int {
	devices := func(i int) int {
		if request := candidates[i].in.Request; request != nil {
			return request.Shape.Devices
		}
		return 0
	}
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(devices(b), devices(a)), cmp.Compare(m.perRate(candidates[a]), m.perRate(candidates[b])))
	})
	return order
}

// placed is a replica that was tried out on a node.
type placed struct {
	v    *variant
	node int
}

// takeBack takes off all that was tried out since.
func (r *round) takeBack(since int) {
	for _, p := range r.placed[since:] {
		r.trial.Remove(p.v.in.Request, p.node)
	}
	r.placed = r.placed[:since]
}

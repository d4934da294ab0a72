package decision

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// oneMore is a need in requests per second that any single replica covers.
const oneMore capacity.Rate = 1e-3

// spareWorth is the worth of spare capacity as a share of what it would cost of the
// variant with the lowest price per rate. Demand that triggers is likely to grow. With
// little worth, a load that rises in small steps is answered with one small replica after
// another, of a variant that is dear for what it serves. With the whole worth, a large
// replica is bought where a small one does.
const spareWorth = 0.7

// workBought is at how many choices a round looks for one purchase of a model, however often what
// it finds does not fit. It is what one search takes at most; what is bought after that suffices,
// too, and may not be the cheapest.
const workBought = 40_000

// purchase is what one model buys.
type purchase struct {
	model *model
	// first are the variants whose replicas come up; reserves are asked only for what
	// those cannot serve, and misfits, which do not keep the promise, for what neither can.
	first, reserves, misfits []*variant
	// need is what is missing, and short what of it no replica that may be added serves;
	// late is what none that keeps the promise serves.
	need, short, late capacity.Rate
	bought            map[*variant]int
	// unlimited is what would be bought of the first, had there been room; nil while nobody asked.
	unlimited []int
	// ideal is that of the answer, and dear what was not bought for its price.
	ideal map[*variant]int
	dear  map[*variant]tooDear
}

// growAll buys for all models that want more, the most important ones first. Where
// the room does not suffice for all of them, it is shared, those of the same priority
// fairly.
func (r *round) growAll(models []*model, found answer) {
	began := len(r.placed)
	all := make([]*purchase, len(models))
	crowded := false
	for i, m := range models {
		all[i] = r.buy(m, found.ideal, nil)
		crowded = crowded || all[i].short > 0 || len(r.missed(all[i])) > 0
	}
	if crowded && r.trial != nil {
		r.takeBack(began)
		shares := r.share(models)
		for i, m := range models {
			unlimited := all[i].unlimited
			all[i] = r.buy(m, found.ideal, shares[i])
			all[i].unlimited = unlimited
		}
		// Whole replicas may leave room that no share used.
		for _, p := range all {
			if p.short > p.model.waitsInVain() {
				p.short = r.buyFitting(p, p.first, p.short, nil)
			}
		}
	}
	for _, p := range all {
		for _, v := range r.missed(p) {
			v.fact(ReasonNoSlots, "%s", r.crowded(v))
		}
		if !r.policy.Limited {
			r.askBeyond(p)
		}
		found.lacks[p.model] = lack{short: max(0, p.short), late: max(0, p.late), any: found.lacks[p.model].any}
		p.model.each(func(v *variant) { r.grown(p, v) })
	}
}

// buy takes the cheapest replicas that cover what is missing, and at least one, of
// what fits; at most gives each variant's share of the room, and is nil when there is
// enough for all.
func (r *round) buy(m *model, ideal, atMost map[*variant]int) *purchase {
	p := &purchase{model: m, need: m.toBuy(), bought: map[*variant]int{}, ideal: ideal, dear: map[*variant]tooDear{}}
	p.first, p.reserves, p.misfits = r.growable(m)
	p.inTurn(p.need, p.reserves, func(candidates []*variant, need capacity.Rate) capacity.Rate {
		return r.buyFitting(p, candidates, need, atMost)
	})
	return p
}

// inTurn covers a need with the variants whose replicas come up, what is left of it with the
// reserves, and the rest with misfits; buy returns what stays unserved.
func (p *purchase) inTurn(need capacity.Rate, reserves []*variant, buy func([]*variant, capacity.Rate) capacity.Rate) {
	// What waits in vain is asked for already.
	waits := p.model.waitsInVain()
	p.late = waits + buy(reserves, buy(p.first, need)-waits)
	// To be served late is better than not at all.
	served := p.model.servedLate()
	p.short = served + buy(p.misfits, p.late-served)
}

// servedLate is the rate that the replicas serve which do not keep the promise.
func (m *model) servedLate() capacity.Rate {
	late := capacity.Rate(0)
	for _, v := range m.variants {
		if v.rate.unfit() {
			late += v.rate.trigger * capacity.Rate(v.fleet.supply)
		}
	}
	return late
}

// toBuy is the rate that is missing once minReplicas is met, and at least that of one
// replica.
func (m *model) toBuy() capacity.Rate {
	need := max(m.need.missing, oneMore)
	m.each(func(v *variant) { need -= v.rate.serves() * capacity.Rate(v.target-v.in.Current) })
	return need
}

// growable lists the variants that may grow: first those whose replicas come up;
// the reserves, whose replicas do not, or found no node lately, or whose metric nobody
// follows, are asked only for what the others cannot serve. A cluster that does not grow has nothing more for a
// variant that found no node. Misfits do not keep the promise.
func (r *round) growable(m *model) (first, reserves, misfits []*variant) {
	m.each(func(v *variant) {
		switch {
		case v.fleet.paused > 0 && (r.policy.Limited || v.rate.unfit()):
		case v.rate.unfit():
			misfits = append(misfits, v)
		case v.fleet.paused > 0 || v.fleet.unhealthy || v.unfollowed:
			reserves = append(reserves, v)
		default:
			first = append(first, v)
		}
	})
	return first, reserves, misfits
}

// waitsInVain is the rate that the replicas would serve which are no supply because
// they wait in vain for a node, or do not come up and nobody knows how long that takes.
func (m *model) waitsInVain() capacity.Rate {
	return m.served(func(v *variant) int {
		waiting := 0
		switch {
		case v.managed && v.fleet.paused > 0:
			waiting = v.in.unscheduled() + v.fleet.count[stateNoPod]
		case v.managed:
			// One came up, so that the variant is tried again; the others wait as before.
			waiting = v.fleet.count[stateUnschedulable]
		}
		if v.managed && v.in.Startup == 0 {
			waiting += v.fleet.count[stateOverdue]
		}
		return waiting
	})
}

// askBeyond asks a cluster that grows for the rest, so that its node autoscaler can
// act.
func (r *round) askBeyond(p *purchase) {
	// Those that are left alone are tried again later, unless they wait for nodes: what is asked
	// for already is no reason to ask for no more.
	others := slices.DeleteFunc(slices.Clone(p.reserves), func(v *variant) bool { return v.fleet.paused > 0 && v.fleet.count[stateUnschedulable] == 0 })
	p.inTurn(p.short, others, func(candidates []*variant, need capacity.Rate) capacity.Rate { return r.buyBeyond(p, candidates, need) })
}

// buyBeyond asks a cluster that grows for what does not fit now.
func (r *round) buyBeyond(p *purchase, candidates []*variant, need capacity.Rate) (short capacity.Rate) {
	if need <= 0 || len(candidates) == 0 {
		return need
	}
	short = r.buyMix(p, candidates, p.options(candidates, r.mayAdd), need, true)
	for _, v := range candidates {
		if slots := v.plan.Slots; slots != nil && p.bought[v] > slots.Count {
			v.fact(ReasonNoSlots, "%s wanted, %d fit; the cluster must grow", plural(p.bought[v], "more replica", "more replicas"), slots.Count)
		}
	}
	return short
}

// buyMix buys the cheapest mix of the options. It returns what stays unserved.
func (r *round) buyMix(p *purchase, candidates []*variant, options []allocation.Option, need capacity.Rate, beyond bool) capacity.Rate {
	buy := r.cheapestAllowed(candidates, options, need, func(v *variant) int { return v.target + p.bought[v] }, p.ideal, beyond,
		func(mix []int) { r.leaveDear(p, candidates, mix, need) })
	for i, v := range candidates {
		p.bought[v] += buy.Replicas[i]
	}
	return buy.Unserved
}

// grown records what was bought of the variant.
func (r *round) grown(p *purchase, v *variant) {
	m, n := p.model, p.bought[v]
	switch {
	case n > 0 && !m.rated:
		v.step(StageAllocation, v.target+n, m.need.reason, "%s: +%d; it is not known yet what a replica serves", m.need.detail, n)
	case n > 0:
		v.step(StageAllocation, v.target+n, m.need.reason, "%s: +%d for %s req/s, a replica serves %s", m.need.detail, n, perSecond(m.need.required), perSecond(v.rate.serves()))
	case p.dear[v].times > 0:
		v.note(StageAllocation, ReasonSteady, "not added: costs %.1f times as much per req/s as the others; worth it up to %s req/s, %s are required",
			p.dear[v].times, perSecond(p.dear[v].enough), perSecond(m.need.required))
	case p.short > 0 || v.rate.unfit() || v.fleet.paused > 0 || r.mayAdd(v) == 0:
		reason, detail := r.obstacle(v, p.ideal[v])
		v.note(StageAllocation, reason, "%s", detail)
	default:
		v.note(StageAllocation, ReasonSteady, "not added: other variants are cheaper")
	}
}

// missed are the variants of which more would have been bought, had there been room.
func (r *round) missed(p *purchase) []*variant {
	if !slices.ContainsFunc(p.first, r.full) {
		return nil
	}
	if p.unlimited == nil {
		p.unlimited = allocation.Cheapest(p.options(p.first, func(v *variant) int { return r.mayAdd(v) + p.bought[v] }), p.need).Replicas
	}
	var list []*variant
	for i, v := range p.first {
		if p.unlimited[i] > p.bought[v] && r.full(v) {
			list = append(list, v)
		}
	}
	return list
}

// options are the candidates with what they serve and cost, less the worth of what they
// serve, and how many more than bought may be added. As the need is the same for all
// purchases, the worth values the spare.
func (p *purchase) options(candidates []*variant, most func(*variant) int) []allocation.Option {
	worth := math.Inf(1)
	for _, v := range candidates {
		worth = min(worth, spareWorth*v.unitPrice())
	}
	if !p.model.rated || math.IsInf(worth, 1) {
		worth = 0
	}
	list := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		each := cmp.Or(v.rate.serves(), v.rate.trigger)
		list[i] = allocation.Option{Cost: v.price - capacity.Cost(worth*float64(each)), Serves: each, Most: max(0, most(v)-p.bought[v])}
	}
	return list
}

// buyFitting covers need with replicas that fit together, and takes their room. It returns
// what stays unserved.
func (r *round) buyFitting(p *purchase, candidates []*variant, need capacity.Rate, atMost map[*variant]int) capacity.Rate {
	if len(candidates) == 0 || need <= 0 {
		return need
	}
	options := p.options(candidates, func(v *variant) int {
		most := r.fitting(v)
		if limit, shared := atMost[v]; shared {
			most = min(most, limit)
		}
		return most
	})
	return r.buyMix(p, candidates, options, need, false)
}

// cheapestAllowed is the cheapest mix whose new replicas are allowed now and fit together,
// or may come to fit where they are asked for beyond what does; from is what they are added
// to, and leave takes out of a mix what is not wanted of it. It takes their room.
// Variants share nodes, so what each of them could place alone is only where the search
// starts: a variant that could not place its share, or that its behavior holds back, is
// bounded by what it could, and the search runs again: with what is left of workBought.
func (r *round) cheapestAllowed(candidates []*variant, options []allocation.Option, need capacity.Rate, from func(*variant) int, ideal map[*variant]int, beyond bool, leave func(mix []int)) allocation.Vector {
	work := allocation.Work(workBought)
	for {
		mix := work.Cheapest(options, need)
		leave(mix.Replicas)
		if r.holdBack(candidates, options, mix, from, ideal) {
			continue
		}
		began := len(r.placed)
		if r.placeAll(candidates, mix.Replicas, options, beyond) {
			return mix
		}
		r.takeBack(began)
	}
}

// holdBack lowers the bounds of the options of which more would be added than windows and
// tolerances of scaleUp allow now, where from is what they are added to; it reports whether
// any was. What is wanted without them is noted in ideal.
func (r *round) holdBack(candidates []*variant, options []allocation.Option, mix allocation.Vector, from func(*variant) int, ideal map[*variant]int) (held bool) {
	for i, v := range candidates {
		base := from(v) - options[i].Now
		wanted := base + mix.Replicas[i]
		if v.policy.Up.Window > 0 {
			ideal[v] = max(ideal[v], wanted)
		}
		// What no bound would have is what a tolerance looks at.
		unbounded := wanted
		if mix.Unserved > 0 && options[i].Serves > 0 {
			unbounded += int(min(mostReplicas, math.Ceil(float64(mix.Unserved/options[i].Serves))))
		}
		if most := max(r.heldUp(v, wanted, unbounded)-base, options[i].Least); most < mix.Replicas[i] {
			options[i].Most, held = most, true
		}
	}
	return held
}

// placeAll tries the new replicas of the mix out on the cluster, larger ones first; those
// that are asked for beyond what fits only count against quotas, which do not grow. When
// one does not fit it lowers that variant's bound and reports failure.
func (r *round) placeAll(candidates []*variant, mix []int, options []allocation.Option, beyond bool) bool {
	for _, i := range placingOrder(candidates) {
		v, now := candidates[i], options[i].Now
		if r.unknown(v) != nil {
			continue
		}
		if more := mix[i] - now; beyond && more > 0 {
			if allowed := r.allowed(v); allowed < more {
				options[i].Most = now + allowed
				return false
			}
			r.trial.Charge(v.in.Request, more)
			r.placed = append(r.placed, placed{v: v, charged: more})
			continue
		}
		for n := now; n < mix[i]; n++ {
			node, ok := r.trial.Place(v.in.Request)
			if !ok {
				options[i].Most = n
				return false
			}
			r.placed = append(r.placed, placed{v: v, node: node})
		}
	}
	return true
}

// placingOrder is the order in which candidates take room: larger replicas first,
// which fit in fewer places, and of equal ones those that serve for less.
func placingOrder(candidates []*variant) []int {
	devices := func(v *variant) int {
		if v.in.Request == nil {
			return 0
		}
		return v.in.Request.Shape.Devices
	}
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := candidates[i], candidates[j]
		return cmp.Or(cmp.Compare(devices(b), devices(a)), cmp.Compare(a.unitPrice(), b.unitPrice()))
	})
	return order
}

// placed is a replica that was tried out on a node, or some that were charged alone.
type placed struct {
	v             *variant
	node, charged int
}

// takeBack takes off all that was tried out since.
func (r *round) takeBack(since int) {
	for _, p := range r.placed[since:] {
		if p.charged > 0 {
			r.trial.Charge(p.v.in.Request, -p.charged)
		} else {
			r.trial.Remove(p.v.in.Request, p.node)
		}
	}
	r.placed = r.placed[:since]
}

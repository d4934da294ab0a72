package allocate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

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

// Purchase is what one model buys.
type Purchase struct {
	Model *limit.Model
	// first are the variants whose replicas come up; reserves are asked only for what
	// those cannot serve, and misfits, which do not keep the promise, for what neither can.
	first, reserves, misfits []*limit.Variant
	// Need is what is missing, and short what of it no replica that may be added serves;
	// late is what none that keeps the promise serves.
	Need, short, late capacity.Rate
	Bought            map[*limit.Variant]int
	// unlimited is what would be bought of the first, had there been room; nil while nobody asked.
	unlimited []int
	// ideal is that of the answer, and dear what was not bought for its price.
	ideal map[*limit.Variant]int
	Dear  map[*limit.Variant]TooDear
}

// growAll buys for all models that want more, the most important ones first. Where
// the room does not suffice for all of them, it is shared, those of the same priority
// fairly.
func growAll(r *limit.Round, models []*limit.Model, found Answer) {
	began := len(r.Placed)
	all := make([]*Purchase, len(models))
	crowded := false
	for i, m := range models {
		all[i] = buyFor(r, m, found.Ideal, nil)
		crowded = crowded || all[i].short > 0 || len(missedBy(r, all[i])) > 0
	}
	if crowded && r.Trial != nil {
		TakeBack(r, began)
		shares := shareRoom(r, models)
		for i, m := range models {
			unlimited := all[i].unlimited
			all[i] = buyFor(r, m, found.Ideal, shares[i])
			all[i].unlimited = unlimited
		}
		// Whole replicas may leave room that no share used.
		for _, p := range all {
			if p.short > waitsInVain(p.Model) {
				p.short = buyFitting(r, p, p.first, p.short, nil)
			}
		}
	}
	for _, p := range all {
		for _, v := range missedBy(r, p) {
			v.Fact(contract.ReasonNoSlots, r.Crowded(v))
		}
		if !r.Policy.Limited {
			askBeyond(r, p)
		}
		found.Lacks[p.Model] = Lack{Short: max(0, p.short), late: max(0, p.late), Any: found.Lacks[p.Model].Any}
		signal.Each(p.Model.Variants, func(v *limit.Variant) { RecordGrowth(r, p, v) })
	}
}

// buyFor takes the cheapest replicas that cover what is missing, and at least one, of
// what fits; at most gives each variant's share of the room, and is nil when there is
// enough for all.
func buyFor(r *limit.Round, m *limit.Model, ideal, atMost map[*limit.Variant]int) *Purchase {
	p := &Purchase{Model: m, Need: toBuy(m), Bought: map[*limit.Variant]int{}, ideal: ideal, Dear: map[*limit.Variant]TooDear{}}
	p.first, p.reserves, p.misfits = growable(r, m)
	p.inTurn(p.Need, p.reserves, func(candidates []*limit.Variant, need capacity.Rate) capacity.Rate {
		return buyFitting(r, p, candidates, need, atMost)
	})
	return p
}

// inTurn covers a need with the variants whose replicas come up, what is left of it with the
// reserves, and the rest with misfits; buy returns what stays unserved.
func (p *Purchase) inTurn(need capacity.Rate, reserves []*limit.Variant, buy func([]*limit.Variant, capacity.Rate) capacity.Rate) {
	// What waits in vain is asked for already.
	waits := waitsInVain(p.Model)
	p.late = waits + buy(reserves, buy(p.first, need)-waits)
	// To be served late is better than not at all.
	served := servedLate(p.Model)
	p.short = served + buy(p.misfits, p.late-served)
}

// servedLate is the rate that the replicas serve which do not keep the promise.
func servedLate(m *limit.Model) capacity.Rate {
	late := capacity.Rate(0)
	for _, v := range m.Variants {
		if v.Rate.Unfit() {
			late += v.Rate.Trigger * capacity.Rate(v.Fleet.Supply)
		}
	}
	return late
}

// toBuy is the rate that is missing once minReplicas is met, and at least that of one
// replica.
func toBuy(m *limit.Model) capacity.Rate {
	need := max(m.Need.Missing, rate.OneMore)
	signal.Each(m.Variants, func(v *limit.Variant) { need -= v.Rate.Serves() * capacity.Rate(v.Target-v.In.Current) })
	return need
}

// growable lists the variants that may grow: first those whose replicas come up;
// the reserves, whose replicas do not, or found no node lately, or whose metric nobody
// follows, are asked only for what the others cannot serve. A cluster that does not grow has nothing more for a
// variant that found no node. Misfits do not keep the promise.
func growable(r *limit.Round, m *limit.Model) (first, reserves, misfits []*limit.Variant) {
	signal.Each(m.Variants, func(v *limit.Variant) {
		switch {
		case v.Fleet.Paused > 0 && (r.Policy.Limited || v.Rate.Unfit()):
		case v.Rate.Unfit():
			misfits = append(misfits, v)
		case v.Fleet.Paused > 0 || v.Fleet.Unhealthy || v.Unfollowed:
			reserves = append(reserves, v)
		default:
			first = append(first, v)
		}
	})
	return first, reserves, misfits
}

// waitsInVain is the rate that the replicas would serve which are no supply because
// they wait in vain for a node, or do not come up and nobody knows how long that takes.
func waitsInVain(m *limit.Model) capacity.Rate {
	return rate.Served(m.Variants, func(v *limit.Variant) int {
		waiting := 0
		switch {
		case v.Managed && v.Fleet.Paused > 0:
			waiting = v.In.Unscheduled() + v.Fleet.Count[fleet.StateNoPod]
		case v.Managed:
			// One came up, so that the variant is tried again; the others wait as before.
			waiting = v.Fleet.Count[fleet.StateUnschedulable]
		}
		if v.Managed && v.In.Startup == 0 {
			waiting += v.Fleet.Count[fleet.StateOverdue]
		}
		return waiting
	})
}

// askBeyond asks a cluster that grows for the rest, so that its node autoscaler can
// act.
func askBeyond(r *limit.Round, p *Purchase) {
	// Those that are left alone are tried again later, unless they wait for nodes: what is asked
	// for already is no reason to ask for no more.
	others := slices.DeleteFunc(slices.Clone(p.reserves), func(v *limit.Variant) bool { return v.Fleet.Paused > 0 && v.Fleet.Count[fleet.StateUnschedulable] == 0 })
	p.inTurn(p.short, others, func(candidates []*limit.Variant, need capacity.Rate) capacity.Rate {
		return buyBeyond(r, p, candidates, need)
	})
}

// buyBeyond asks a cluster that grows for what does not fit now.
func buyBeyond(r *limit.Round, p *Purchase, candidates []*limit.Variant, need capacity.Rate) (short capacity.Rate) {
	if need <= 0 || len(candidates) == 0 {
		return need
	}
	short = buyMix(r, p, candidates, p.options(candidates, r.MayAdd), need, true)
	for _, v := range candidates {
		if slots := v.Plan.Slots; slots != nil && p.Bought[v] > slots.Count {
			v.Fact(contract.ReasonNoSlots, contract.SaysMustGrow.With(p.Bought[v], slots.Count))
		}
	}
	return short
}

// buyMix buys the cheapest mix of the options. It returns what stays unserved.
func buyMix(r *limit.Round, p *Purchase, candidates []*limit.Variant, options []allocation.Option, need capacity.Rate, beyond bool) capacity.Rate {
	buy := CheapestAllowed(r, candidates, options, need, func(v *limit.Variant) int { return v.Target + p.Bought[v] }, p.ideal, beyond, func(mix []int) { LeaveDear(r, p, candidates, mix, need) })
	for i, v := range candidates {
		p.Bought[v] += buy.Replicas[i]
	}
	return buy.Unserved
}

// RecordGrowth records what was bought of the variant.
func RecordGrowth(r *limit.Round, p *Purchase, v *limit.Variant) {
	m, n := p.Model, p.Bought[v]
	switch {
	case n > 0 && !m.Rated:
		v.Step(contract.StageAllocation, v.Target+n, m.Need.Reason, contract.SaysAddedUnrated.With(m.Need.Detail, n))
	case n > 0:
		v.Step(contract.StageAllocation, v.Target+n, m.Need.Reason, contract.SaysAdded.With(m.Need.Detail, n, m.Need.Required, v.Rate.Serves()))
	case p.Dear[v].Times > 0:
		says := contract.SaysTooDear
		if Unpriced(m.Variants) {
			says = contract.SaysTooLarge
		}
		v.Note(contract.StageAllocation, contract.ReasonSteady, says.With(p.Dear[v].Times, p.Dear[v].Enough, m.Need.Required))
	case p.short > 0 || v.Rate.Unfit() || v.Fleet.Paused > 0 || r.MayAdd(v) == 0:
		reason, detail := r.Obstacle(v, p.ideal[v])
		v.Note(contract.StageAllocation, reason, detail)
	default:
		v.Note(contract.StageAllocation, contract.ReasonSteady, contract.SaysOthersCheaper.With())
	}
}

// missedBy are the variants of which more would have been bought, had there been room.
func missedBy(r *limit.Round, p *Purchase) []*limit.Variant {
	if !slices.ContainsFunc(p.first, r.Full) {
		return nil
	}
	if p.unlimited == nil {
		p.unlimited = allocation.Cheapest(p.options(p.first, func(v *limit.Variant) int { return r.MayAdd(v) + p.Bought[v] }), p.Need).Replicas
	}
	var list []*limit.Variant
	for i, v := range p.first {
		if p.unlimited[i] > p.Bought[v] && r.Full(v) {
			list = append(list, v)
		}
	}
	return list
}

// options are the candidates with what they serve and cost, less the worth of what they
// serve, and how many more than bought may be added. As the need is the same for all
// purchases, the worth values the spare.
func (p *Purchase) options(candidates []*limit.Variant, most func(*limit.Variant) int) []allocation.Option {
	worth := math.Inf(1)
	for _, v := range candidates {
		worth = min(worth, spareWorth*v.UnitPrice())
	}
	if !p.Model.Rated || math.IsInf(worth, 1) {
		worth = 0
	}
	list := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		each := cmp.Or(v.Rate.Serves(), v.Rate.Trigger)
		list[i] = allocation.Option{Cost: v.Price - capacity.Cost(worth*float64(each)), Serves: each, Most: max(0, most(v)-p.Bought[v])}
	}
	return list
}

// buyFitting covers need with replicas that fit together, and takes their room. It returns
// what stays unserved.
func buyFitting(r *limit.Round, p *Purchase, candidates []*limit.Variant, need capacity.Rate, atMost map[*limit.Variant]int) capacity.Rate {
	if len(candidates) == 0 || need <= 0 {
		return need
	}
	options := p.options(candidates, func(v *limit.Variant) int {
		most := r.Fitting(v)
		if limit, shared := atMost[v]; shared {
			most = min(most, limit)
		}
		return most
	})
	return buyMix(r, p, candidates, options, need, false)
}

// CheapestAllowed is the cheapest mix whose new replicas are allowed now and fit together,
// or may come to fit where they are asked for beyond what does; from is what they are added
// to, and leave takes out of a mix what is not wanted of it. It takes their room.
// Variants share nodes, so what each of them could place alone is only where the search
// starts: a variant that could not place its share, or that its behavior holds back, is
// bounded by what it could, and the search runs again: with what is left of workBought.
func CheapestAllowed(r *limit.Round, candidates []*limit.Variant, options []allocation.Option, need capacity.Rate, from func(*limit.Variant) int, ideal map[*limit.Variant]int, beyond bool, leave func(mix []int)) allocation.Vector {
	work := allocation.Work(workBought)
	for {
		mix := work.Cheapest(options, need)
		leave(mix.Replicas)
		if holdBack(r, candidates, options, mix, from, ideal) {
			continue
		}
		began := len(r.Placed)
		if PlaceAll(r, candidates, mix.Replicas, options, beyond) {
			return mix
		}
		TakeBack(r, began)
	}
}

// holdBack lowers the bounds of the options of which more would be added than windows and
// tolerances of scaleUp allow now, where from is what they are added to; it reports whether
// any was. What is wanted without them is noted in ideal.
func holdBack(r *limit.Round, candidates []*limit.Variant, options []allocation.Option, mix allocation.Vector, from func(*limit.Variant) int, ideal map[*limit.Variant]int) (held bool) {
	for i, v := range candidates {
		base := from(v) - options[i].Now
		wanted := base + mix.Replicas[i]
		if v.Policy.Up.Window > 0 {
			ideal[v] = max(ideal[v], wanted)
		}
		// What no bound would have is what a tolerance looks at.
		unbounded := wanted
		if mix.Unserved > 0 && options[i].Serves > 0 {
			unbounded += int(min(limit.MostReplicas, math.Ceil(float64(mix.Unserved/options[i].Serves))))
		}
		if most := max(r.HeldUp(v, wanted, unbounded)-base, options[i].Least); most < mix.Replicas[i] {
			options[i].Most, held = most, true
		}
	}
	return held
}

// PlaceAll tries the new replicas of the mix out on the cluster, larger ones first; those
// that are asked for beyond what fits only count against quotas, which do not grow. When
// one does not fit it lowers that variant's bound and reports failure.
func PlaceAll(r *limit.Round, candidates []*limit.Variant, mix []int, options []allocation.Option, beyond bool) bool {
	for _, i := range placingOrder(candidates) {
		v, now := candidates[i], options[i].Now
		if v.Unknown() != nil {
			continue
		}
		if more := mix[i] - now; beyond && more > 0 {
			if allowed := r.Allowed(v); allowed < more {
				options[i].Most = now + allowed
				return false
			}
			r.Trial.Charge(v.In.Request, more)
			r.Placed = append(r.Placed, limit.Placed{V: v, Charged: more})
			continue
		}
		for n := now; n < mix[i]; n++ {
			node, ok := r.Trial.Place(v.In.Request)
			if !ok {
				options[i].Most = n
				return false
			}
			r.Placed = append(r.Placed, limit.Placed{V: v, Node: node})
		}
	}
	return true
}

// placingOrder is the order in which candidates take room: larger replicas first,
// which fit in fewer places, and of equal ones those that serve for less.
func placingOrder(candidates []*limit.Variant) []int {
	devices := func(v *limit.Variant) int {
		if v.In.Request == nil {
			return 0
		}
		return v.In.Request.Shape.Devices
	}
	order := make([]int, len(candidates))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := candidates[i], candidates[j]
		return cmp.Or(cmp.Compare(devices(b), devices(a)), cmp.Compare(a.UnitPrice(), b.UnitPrice()))
	})
	return order
}

// TakeBack takes off all that was tried out since.
func TakeBack(r *limit.Round, since int) {
	for _, p := range r.Placed[since:] {
		if p.Charged > 0 {
			r.Trial.Charge(p.V.In.Request, -p.Charged)
		} else {
			r.Trial.Remove(p.V.In.Request, p.Node)
		}
	}
	r.Placed = r.Placed[:since]
}

const (
	// DefaultLead is how long a replica is taken to start when none was seen.
	DefaultLead = time.Minute
)

// LeadOf is how long a new replica takes to serve: the longest of those variants, as seen. Where no
// start-up was seen it is no less than those that start have taken so far.
func LeadOf(r *limit.Round, variants []*limit.Variant) time.Duration {
	seen, longest := time.Duration(0), DefaultLead
	for _, v := range variants {
		seen = max(seen, v.In.Startup)
		if since := v.Fleet.Since; !since.IsZero() {
			longest = max(longest, r.Snapshot.Time.Sub(since))
		}
	}
	return cmp.Or(seen, longest)
}

// Growing are the variants that would grow if there came what is expected by the time when the
// slowest of all could serve; all, where none may. One that is never bought does not say how far
// to look ahead.
func Growing(r *limit.Round, m *limit.Model) []*limit.Variant {
	longest := LeadOf(r, m.Variants)
	if !slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return LeadOf(r, []*limit.Variant{v}) < longest }) {
		return m.Variants
	}
	first, reserves, misfits := growable(r, m)
	supply := rate.Served(m.Variants, func(v *limit.Variant) int { return v.Fleet.Supply })
	need := max(rate.OneMore, m.SizedFor(m.Demand.Expected(m.Demand.Risk, longest))-supply)
	for _, candidates := range [][]*limit.Variant{first, reserves, misfits} {
		most := r.MayAdd
		if r.Policy.Limited {
			most = r.Fitting
		}
		work := allocation.Work(WorkExplained)
		mix := work.Cheapest((&Purchase{Model: m}).options(candidates, most), need)
		var grow []*limit.Variant
		for i, v := range candidates {
			if mix.Replicas[i] > 0 {
				grow = append(grow, v)
			}
		}
		if len(grow) > 0 {
			return grow
		}
	}
	return m.Variants
}

// EnterRoom has a replica take the room that was made for it, once it fits there. Who wants none
// any more leaves the room to others.
func EnterRoom(r *limit.Round, m *limit.Model, found Answer) {
	signal.Each(m.Variants, func(v *limit.Variant) {
		kept := v.Nominated[:0]
		for _, made := range v.Nominated {
			few := v.Target < v.Policy.Min
			wants := few || lacksOne(r, m) || m.Need.Want == need.WantMore && !v.Rate.Unfit() && toBuy(m) > 0
			switch {
			case wants && (!made.Fits || v.Fleet.Paused > 0 || r.MayAdd(v) == 0 && !few):
				kept = append(kept, made)
			case wants:
				v.Step(contract.StageAllocation, v.Target+1, m.Need.Reason, contract.SaysUsesRoom.With(m.Need.Detail))
				found.Ideal[v] = v.Target
			default:
				r.Trial.Remove(v.In.Request, made.Index)
			}
		}
		v.Nominated = kept
	})
}

package decision

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// switchesPerRound bounds how many models switch variants in one round: saving is no
// emergency, and a new price must not turn a whole cluster over at once.
const switchesPerRound = 16

// switchLeast is the least saving, as a share of what the replicas cost that could stay,
// for which a model switches. Below it the needs of the next minutes decide, and these go
// both ways.
const switchLeast = 0.05

// replace starts replicas of variants that serve the same for less, where their
// start-up pays within the horizon and did so for as long as a scale-down waits, or at once
// where another model lacks the room of what they replace; the dearer ones go when the new
// ones serve and the scale-down's window allows it. It returns the mix that is gone to, which
// may take many rounds: it is judged by all that fit, and started as fast as scaleUp allows.
// It reports whether any start, which they do only where they may, and not while the model's
// replicas change already: that would be judged by what is about to be different. A round
// that cannot judge it has not found otherwise.
func (r *round) replace(m *model, ideal map[*variant]int, may bool) (mix map[*variant]int, begins bool) {
	if m.evidence != evidenceFull || r.policy.Horizon <= 0 || !m.rated && m.need.least > 0 {
		return nil, false
	}
	candidates, need := m.mix()
	began := len(r.placed)
	// They may show to serve a little less than they are taken to.
	need *= 1 + samePoint
	best := r.cheapestAllowed(candidates, r.swaps(m, candidates, r.eventually), need, func(v *variant) int { return v.target }, ideal, false, func([]int) {})
	change := changeTo(candidates, best.Replicas)
	mix = change.mix
	// Another model that lacks the room does not wait until a switch has paid.
	pays := m.pays(candidates, mix, &best) && (change.lacked || !r.goesBack(m, mix))
	if may = may && !m.changing(); may {
		m.next.Cheaper = time.Time{}
		if pays {
			m.next.Cheaper = r.since(m.old.Cheaper)
		}
	}
	// A saving waits; another model that lacks the room does not.
	lasts := pays && !m.next.Cheaper.IsZero() && (change.lacked || !slices.ContainsFunc(candidates, func(v *variant) bool {
		return r.snapshot.Time.Sub(m.next.Cheaper) < v.policy.Down.Window
	}))
	if !lasts || !may {
		r.takeBack(began)
	}
	if may && !pays {
		r.tellDearer(m, candidates, need)
	}
	if !lasts {
		return nil, false
	}
	return mix, may && r.start(m, candidates, &change)
}

// mixChange is a change to another mix of variants: what it costs per hour, what the replicas
// that are there do, and why it is made; lacked is set where another model lacks their room.
type mixChange struct {
	mix     map[*variant]int
	is, was capacity.Cost
	why     string
	lacked  bool
}

func changeTo(candidates []*variant, replicas []int) mixChange {
	c := mixChange{mix: make(map[*variant]int, len(candidates)), why: "cheaper mix"}
	for i, v := range candidates {
		c.mix[v] = replicas[i]
		c.is, c.was = c.is+v.in.Cost*capacity.Cost(replicas[i]), c.was+v.in.Cost*capacity.Cost(v.target)
		if v.scarceFor != nil && replicas[i] < v.target {
			c.why, c.lacked = fmt.Sprintf("%s needs the room of %s", v.scarceFor.as(v.key.Namespace), v.in.Name), true
		}
	}
	return c
}

// start starts as many of the mix as scaleUp allows now, and reports whether any.
func (r *round) start(m *model, candidates []*variant, c *mixChange) (begins bool) {
	beside := time.Duration(0)
	for _, v := range candidates {
		more := min(c.mix[v]-v.target, r.mayAdd(v))
		if more = r.heldUp(v, v.target+more, v.target+more) - v.target; more > 0 {
			v.step(StageAllocation, v.target+more, ReasonCheaperVariant, "+%s, %s: %.2f/h, was %.2f/h", plural(more, "replica", "replicas"), c.why, c.is, c.was)
			begins, beside = true, max(beside, m.beside(candidates, v))
		}
	}
	if begins {
		r.owe(m, candidates, c.mix)
		m.leave(Lowered{Load: m.work(), Until: r.snapshot.Time.Add(beside)}, with(c.mix))
	}
	return begins
}

// pays reports whether it is worth it to go to the mix, which may stay then.
func (m *model) pays(candidates []*variant, mix map[*variant]int, best *allocation.Vector) bool {
	cost := best.Cost + best.Start
	for _, v := range candidates {
		if mix[v] < v.target && v.tolerates(v.policy.Down, mix[v]) {
			cost += v.price * capacity.Cost(v.target-mix[v])
		}
	}
	return cost < m.kept(candidates)*(1-switchLeast) && m.stays(candidates, mix) && !m.tooFew(with(mix))
}

// kept is the least that the replicas which there are could be reduced to.
func (m *model) kept(candidates []*variant) capacity.Cost {
	left, sum := m.cheapestMix(nil), capacity.Cost(0)
	if !m.reaches(m.standing(with(nil)), left) {
		left = nil
	}
	for _, v := range candidates {
		sum += v.price * capacity.Cost(with(left)(v))
	}
	return sum
}

// stays reports whether the mix adds replicas, and whether the dearer ones may go, as far
// as is known today, once all of it serve. Where they may not, the scale-down would take
// the new ones instead.
func (m *model) stays(candidates []*variant, mix map[*variant]int) bool {
	left := m.standing(func(v *variant) int { return min(with(mix)(v), v.target) })
	then, adds := m.standing(func(v *variant) int { return v.target }), false
	for _, v := range candidates {
		if more := max(0, mix[v]-v.target); more > 0 {
			adds = true
			rate := v.rate.serves() * capacity.Rate(more)
			left.ready, left.coming, left.up, left.total = left.ready+rate, left.coming+rate, left.up+more, left.total+more
			// The load stays as it is now, spread over more replicas.
			then.coming, then.up, then.unsaturated = then.coming+rate, then.up+more, then.unsaturated+more
		}
	}
	return adds && m.safe(then, left)
}

// changing reports whether the model's replicas change already, or what is asked of them as
// long as a queue is served. What waits in vain changes nothing.
func (m *model) changing() bool {
	return m.need.queued > switchLeast*m.need.required || slices.ContainsFunc(m.variants, func(v *variant) bool {
		return v.rolling() || v.fleet.count[statePending] > 0 || v.in.Ready+len(v.in.Starting) > v.in.Current || v.target != v.in.Current
	})
}

// mix are the variants that may stand in for each other, and the rate that they must
// serve: what must stay after a scale-down, with what saturated replicas do not serve
// although they count for it, or what keeps them clear of the triggers when that is more.
func (m *model) mix() (candidates []*variant, need capacity.Rate) {
	outside := capacity.Rate(0)
	for _, v := range m.variants {
		switch {
		case !v.managed:
			outside += v.rate.serves() * capacity.Rate(v.fleet.supply)
		case v.managed && (v.target > 0 || !v.rate.unfit()):
			candidates = append(candidates, v)
		}
	}
	unfilled := m.clear(m.standing(func(v *variant) int { return v.target }))
	return candidates, max(m.need.least+m.need.idle-outside, unfilled-outside, oneMore)
}

// swaps are the candidates with what they cost to start: the new replicas run beside
// the old ones until they serve and the scale-down's window of these is over, which is
// spread over the horizon.
func (r *round) swaps(m *model, candidates []*variant, room func(*variant) int) []allocation.Option {
	options := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		beside := m.beside(candidates, v).Seconds() / r.policy.Horizon.Seconds()
		most := v.bounded(v.target)
		options[i] = allocation.Option{
			Cost: v.price, Serves: v.rate.serves(), Now: v.target, Least: m.staying(v, most), Most: most, Start: v.price * capacity.Cost(beside),
		}
		if v.fleet.paused == 0 && !v.fleet.unhealthy && !v.rate.unfit() {
			options[i].Most = v.target + room(v)
		}
	}
	return options
}

// beside is how long new replicas of a variant run beside those that they replace: until they
// serve, and for the longest time for which replicas are held that may go then.
func (m *model) beside(candidates []*variant, v *variant) time.Duration {
	longest := time.Duration(0)
	for _, o := range candidates {
		if o != v && m.staying(o, o.target) < o.target {
			longest = max(longest, o.policy.Down.Window)
		}
	}
	return cmp.Or(v.in.Startup, m.lead) + longest
}

// switching is the mix of a switch that is under way, whose replicas stay for about its load; nil
// without one.
func (r *round) switching(m *model) map[*variant]int {
	last := m.next.Lowered
	if !r.snapshot.Time.Before(last.Until) || !near(float64(m.work()), float64(last.Load), settledWithin) {
		return nil
	}
	mix := make(map[*variant]int, len(m.variants))
	m.each(func(v *variant) { mix[v] = v.next.Lowered })
	return mix
}

// tellDearer says which variants would serve for less and lack room.
func (r *round) tellDearer(m *model, candidates []*variant, need capacity.Rate) {
	if !slices.ContainsFunc(candidates, r.full) {
		return
	}
	ideal := allocation.Cheapest(r.swaps(m, candidates, r.mayAdd), need)
	for i, v := range candidates {
		if ideal.Replicas[i] > v.target && r.full(v) {
			v.fact(ReasonNoSlots, "%s", r.crowded(v))
		}
	}
}

package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// leastUnsaturated is how many replicas must be known to have some spare before a ready one
// goes, so that one stays that has.
const leastUnsaturated = 2

// mostStretch is how many times as much as now the ready replicas that stay may have to do, where
// nothing but their present load says what they serve.
const mostStretch = 2

// shrink removes what the cheapest mix does without, as long as what stays serves the
// demand with something in hand and stays below the triggers. Where that mix is not
// safe to go to, replicas go one by one, the dearest per rate first. Of a mix that replicas
// are started for, what is there stays.
func (r *round) shrink(m *model, keep map[*variant]int) {
	now := m.standing(func(v *variant) int { return v.target })
	mix := m.cheapestMix(keep)
	after := mix
	if !m.reaches(now, mix) {
		after = m.oneByOne(now, mix, keep != nil || m.starts())
	}
	m.each(func(v *variant) {
		n := after[v]
		if n == v.target {
			v.note(StageAllocation, ReasonSteady, "%s", m.staysFor(v))
			return
		}
		if v.scarceFor != nil && len(m.variants) > 1 {
			v.note(StageAllocation, ReasonSpareCapacity, "removed first: %s needs the room of this variant", v.scarceFor.as(v.key.Namespace))
		}
		v.step(StageAllocation, n, ReasonSpareCapacity, "%s: %s for %s req/s", m.need.detail, plural(n, "replica suffices", "replicas suffice"), perSecond(m.need.least))
	})
}

// staysFor says why the variant keeps its replicas.
func (m *model) staysFor(v *variant) string {
	switch {
	case v.target > 0 && m.tooFew(with(map[*variant]int{v: v.target - 1})):
		return fmt.Sprintf("no scale-down: fewer replicas did not suffice for %s req/s before", perSecond(m.carried()*m.next.TooFew.Load/m.work()))
	case m.need.least >= oneMore:
		return fmt.Sprintf("no scale-down: %s req/s of capacity are required", perSecond(m.need.least))
	case v.target == 0:
		return "no replica to remove"
	case v.target <= v.policy.Min:
		return fmt.Sprintf("no scale-down: minReplicas is %d", v.policy.Min)
	}
	return "no scale-down: the model keeps a replica that can serve"
}

// relieve lets misfits go while more is wanted that keeps the promise and cannot be added,
// the missing rate: those that the rest does not need to stay below the triggers.
func (r *round) relieve(m *model, missing capacity.Rate) {
	if missing <= 0 || m.evidence != evidenceFull || m.need.triggered || m.load.saturated > 0 || !m.demand.isCertain {
		return
	}
	carried, late := capacity.Rate(0), m.servedLate()
	for _, v := range m.variants {
		carried += v.rate.trigger * capacity.Rate(min(v.in.Ready, v.in.Current))
	}
	for _, v := range m.dearestFirst() {
		n, each := v.target, v.rate.trigger
		if !v.rate.unfit() || n > v.in.Current {
			continue
		}
		for least := m.staying(v, n); n > least && carried-each >= lowerHeadroom*m.certain() && late-each >= lowerHeadroom*missing; n-- {
			if m.tooFew(with(map[*variant]int{v: n - 1})) {
				break
			}
			carried, late = carried-each, late-each
		}
		if n < v.target {
			v.step(StageAllocation, n, ReasonSpareCapacity, "cannot meet the SLO: reduced to %d, those that stay carry the load", n)
		}
	}
}

// staying is how many of up to n replicas a scale-down leaves: its minimum, and as many as
// may be saturated, where any of the model is. Whoever chooses which one goes may take one
// of these, and then one that has room for its load stays in its place. Where nobody knows
// what a replica serves all stay: what a saturated one must be relieved of is then not
// known either. So do those of a variant that scaleDown leaves alone: the others may count
// on them.
func (m *model) staying(v *variant, n int) int {
	least := max(v.policy.Min, v.besideOdd(n))
	if m.load.saturated > 0 {
		least = max(least, v.in.Ready-v.load.unsaturated-v.load.dead)
	}
	if v.load.dead > 0 && !v.odd.first {
		least = n
	}
	if v.load.saturated > 0 && !m.rated || v.policy.Down.Select == SelectDisabled {
		least = n
	}
	return min(least, n)
}

// cheapestMix is the cheapest mix of replicas that exist which still serves what must
// stay, whether or not those that start serve already, and of which so many are kept; nil
// when they do not suffice.
func (m *model) cheapestMix(keep map[*variant]int) map[*variant]int {
	candidates, need := m.mix()
	options := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		most := v.bounded(v.target)
		if v.odd.first {
			most = max(0, most-v.load.dead)
		}
		options[i] = allocation.Option{Cost: v.price, Serves: v.rate.serves(), Now: v.target, Least: max(m.staying(v, most), min(keep[v], most)), Most: most}
	}
	best := allocation.Cheapest(options, need)
	if best.Unserved > 0 {
		return nil
	}
	return changeTo(candidates, best.Replicas).mix
}

// reaches reports whether it is safe to go to the mix at once.
func (m *model) reaches(now standing, mix map[*variant]int) bool {
	if mix == nil {
		return false
	}
	left := m.standing(with(mix))
	return left.total > 0 && m.safe(now, left) && !m.tooFew(with(mix))
}

// with is how many replicas each variant has in the mix: those that are not in it keep theirs.
func with(mix map[*variant]int) func(*variant) int {
	return func(v *variant) int {
		if n, in := mix[v]; in {
			return n
		}
		return v.target
	}
}

// oneByOne removes replicas, the dearest per rate first, as long as it is safe.
// What maxReplicas takes away anyway is not there to rely on. While replicas start, each
// variant keeps what the cheapest mix needs: the mix cannot be gone to only until they
// serve, and who gave any of it up meanwhile would start that again in the next round.
func (m *model) oneByOne(now standing, mix map[*variant]int, starts bool) map[*variant]int {
	left, after := make(map[*variant]int, len(m.variants)), make(map[*variant]int, len(m.variants))
	for _, v := range m.variants {
		left[v], after[v] = v.bounded(v.target), v.target
	}
	for _, v := range m.dearestFirst() {
		least := m.staying(v, left[v])
		if starts {
			least = max(least, mix[v])
		}
		for left[v] > least {
			left[v]--
			replicas := func(v *variant) int { return left[v] }
			next := m.standing(replicas)
			if next.total == 0 || !m.safe(now, next) || m.tooFew(replicas) {
				left[v]++
				break
			}
			after[v] = left[v]
		}
	}
	return after
}

// standing is what a model's replicas serve: those that are ready, and those with
// the ones that start; and how many they are, ready ones, those of them that are known to
// have some spare, those that are not ready, and in all.
type standing struct {
	ready, coming                    capacity.Rate
	up, unsaturated, notReady, total int
}

// standing is what the model's replicas would serve if each variant had so many.
func (m *model) standing(replicas func(*variant) int) standing {
	s := standing{unsaturated: m.load.unsaturated}
	for _, v := range m.variants {
		n := replicas(v)
		s.ready += v.rate.serves() * v.effective(min(n, v.in.Ready))
		s.up += v.working(min(n, v.in.Ready))
		s.coming += v.rate.serves() * v.effective(min(n, v.fleet.supply))
		s.notReady += max(0, n-v.in.Ready)
		s.total += n
	}
	return s
}

// dearestFirst lists the managed variants, the dearest per rate first; ties by name, last
// first, as published.
func (m *model) dearestFirst() []*variant {
	var list []*variant
	m.each(func(v *variant) { list = append(list, v) })
	slices.SortStableFunc(list, func(a, b *variant) int {
		return cmp.Or(cmp.Compare(b.unitPrice(), a.unitPrice()), cmp.Compare(b.in.Name, a.in.Name))
	})
	return list
}

// safe reports whether the supply may fall from now to after: it must still serve
// what is asked at least, and the load of the ready replicas that stay, which grows
// as they become fewer, must stay clear of the triggers. A replica that is saturated,
// or whose load is not known, has no spare to take over what another one did, and a
// saturated one counts for no more than it serves now. No ready replica goes while fewer
// than leastUnsaturated are known to have some spare, and beside a saturated one or one that nobody
// hears of none that starts.
func (m *model) safe(now, after standing) bool {
	least, idle := m.need.least, m.need.idle
	if after.coming >= now.coming {
		// Only what does not count goes: misfits.
		least = min(least, m.need.required)
	}
	if after.coming-idle < max(least, oneMore) || m.load.saturated > 0 && now.unsaturated < leastUnsaturated {
		return false
	}
	if after.notReady < now.notReady && m.unheard() {
		return false
	}
	if after.up >= now.up {
		return true
	}
	if now.unsaturated < leastUnsaturated || after.ready-m.unknownLoad() <= now.ready*precision || after.ready-idle < least {
		return false
	}
	return after.ready >= max(m.clear(now), m.asFar(now))*(1-precision)
}

// asFar is the least that the ready replicas must serve so that what is known of them from their
// present load is not stretched too far: what a replica serves that is full is anybody's guess
// while it is hardly asked and no profile tells.
func (m *model) asFar(now standing) capacity.Rate {
	guessed := slices.ContainsFunc(m.variants, func(v *variant) bool { return v.in.Ready > 0 && v.rate.guessed })
	if !guessed || m.used() == 0 {
		return 0
	}
	return now.ready / mostStretch
}

// clear is the least that the ready replicas must serve so that each stays clear of the
// triggers with the load that all have now. What the ready replicas serve whose load is not
// known, or who are saturated, takes nothing over.
func (m *model) clear(now standing) capacity.Rate {
	unknown := m.unknownLoad()
	return unknown + max(0, now.ready-unknown)*capacity.Rate(m.used())
}

// used is how much the replicas that are not saturated have in use, as a share of what the
// triggers allow.
func (m *model) used() float64 {
	t := m.saturation
	return max(share(m.load.saturation, t.KVCacheThreshold-t.KVSpareTrigger), share(m.load.queue, t.QueueLengthThreshold-t.QueueSpareTrigger))
}

// share is the share of the room that a load takes; infinite where there is none.
func share(load, room float64) float64 {
	switch {
	case room > 0:
		return load / room
	case room == 0 && load <= 0:
		return 0
	}
	return math.Inf(1)
}

// unheard reports whether the load of a ready replica, or where no gateway counts the
// arrivals what it serves, is not known.
func (m *model) unheard() bool {
	return m.load.saturated+m.load.unsaturated+m.load.dead < m.ready() ||
		slices.ContainsFunc(m.variants, func(v *variant) bool { return v.load.silent > 0 })
}

// unknownLoad is what the ready replicas serve that are not known to have some spare.
func (m *model) unknownLoad() capacity.Rate {
	return m.served(func(v *variant) int { return max(0, v.in.Ready-v.load.unsaturated-v.load.dead) })
}

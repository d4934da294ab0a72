package decision

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
)

// shrink removes what the cheapest mix does without, as long as what stays serves the
// demand with something in hand and stays below the triggers. Where that mix is not
// safe to go to, replicas go one by one, the most expensive per rate first.
func (r *round) shrink(m *model) {
	now := m.standing(func(v *variant) int { return v.target })
	mix := m.cheapestMix()
	after := mix
	if !m.reaches(now, mix) {
		after = m.oneByOne(now, mix)
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

// hot reports whether the replica is at or above a threshold.
func (r *round) hot(t Saturation, v *variant, p *Replica) bool {
	full, known := v.full(r, p)
	return known && full >= t.KVCacheThreshold ||
		r.usable(p.Waiting) && p.Waiting.Value >= t.QueueLengthThreshold
}

// fullness is what it means for a scale-down that replicas of a model are saturated.
type fullness struct {
	// any is set when one is; else the rest is not asked for.
	any bool
	// eased is how many are known not to be.
	eased int
	// blind is the rate that the others count for, and idling how much less they serve:
	// one that hangs serves nothing, however full it is.
	blind, idling capacity.Rate
}

// watchFull finds how many of each variant's replicas must stay because they are
// saturated, and what that means for the others. Beside a saturated replica one of which
// something is not known may be saturated too.
func (r *round) watchFull(m *model) {
	m.full = fullness{any: m.load.saturated > 0}
	if !m.full.any {
		return
	}
	for _, v := range m.variants {
		if !v.exists() {
			continue
		}
		v.hot = max(0, v.in.Ready-len(v.in.Replicas))
		for i := range v.in.Replicas {
			p := &v.in.Replicas[i]
			known := r.age(p.KVUse) == ageFresh && r.age(p.Waiting) == ageFresh && (v.batchLimit() == 0 || r.age(p.Running) == ageFresh)
			if known && !r.hot(m.saturation, v, p) {
				m.full.eased++
				continue
			}
			v.hot++
			served := capacity.Rate(0)
			if r.age(p.Served) == ageFresh {
				served = capacity.Rate(p.Served.Value)
			}
			m.full.idling += max(0, m.counts(v)-served)
		}
		m.full.blind += m.counts(v) * capacity.Rate(v.hot)
	}
}

// staying is how many of up to n replicas a scale-down leaves: its minimum, and as many as
// are saturated. Whoever chooses which one goes may take one of these, and then one that
// has room for its load stays in its place. Where nobody knows what a replica serves all
// stay: what a saturated one must be relieved of is then not known either.
func (v *variant) staying(n int) int {
	least := max(v.policy.Min, v.hot)
	if v.saturated && v.serves == 0 {
		least = n
	}
	return min(least, n)
}

// bounded is n, but no more than the variant's upper bound.
func (v *variant) bounded(n int) int {
	if v.policy.Max >= 0 {
		return min(n, v.policy.Max)
	}
	return n
}

// cheapestLeft is the cheapest mix of replicas that exist which still serves what must
// stay; nil when going there is not safe.
func (m *model) cheapestLeft(now standing) map[*variant]int {
	if mix := m.cheapestMix(); m.reaches(now, mix) {
		return mix
	}
	return nil
}

// cheapestMix is the same, whether or not those that start serve already; nil when
// those that exist do not suffice.
func (m *model) cheapestMix() map[*variant]int {
	candidates, need := m.mix()
	if need <= 0 {
		return nil
	}
	options := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		options[i] = allocation.Option{Cost: v.in.Cost, Serves: m.counts(v), Now: v.target, Least: v.staying(v.bounded(v.target)), Most: v.bounded(v.target)}
	}
	best := allocation.Cheapest(options, need)
	if best.Unserved > 0 {
		return nil
	}
	mix := make(map[*variant]int, len(candidates))
	for i, v := range candidates {
		mix[v] = best.Replicas[i]
	}
	m.each(func(v *variant) {
		if _, listed := mix[v]; !listed {
			mix[v] = v.target
		}
	})
	return mix
}

// reaches reports whether it is safe to go to the mix at once.
func (m *model) reaches(now standing, mix map[*variant]int) bool {
	if mix == nil {
		return false
	}
	left := m.standing(func(v *variant) int {
		if n, managed := mix[v]; managed {
			return n
		}
		return v.target
	})
	return left.total > 0 && m.safe(now, left)
}

// oneByOne removes replicas, the most expensive per rate first, as long as it is safe.
// What an upper bound takes away anyway is not there to rely on. A variant of which
// replicas start keeps what the cheapest mix needs: the mix cannot be gone to only until
// they serve, and who gave them up meanwhile would start them again in the next round.
func (m *model) oneByOne(now standing, mix map[*variant]int) map[*variant]int {
	left, after := m.standing(func(v *variant) int { return v.bounded(v.target) }), map[*variant]int{}
	for _, v := range m.byUnitCost() {
		n := v.bounded(v.target)
		least := v.staying(n)
		if v.supply > v.in.Ready {
			least = max(least, mix[v])
		}
		after[v] = v.target
		for ; n > least && left.total > 1; n-- {
			next := left
			next.total--
			if n <= v.in.Ready {
				next.ready -= m.counts(v)
			}
			if n <= v.supply {
				next.coming -= m.counts(v)
			}
			if !m.safe(now, next) {
				break
			}
			left, after[v] = next, n-1
		}
	}
	return after
}

// standing is what a model's replicas serve: those that are ready, and those with
// the ones that start; and how many they are.
type standing struct {
	ready, coming capacity.Rate
	total         int
}

// standing is what the model's replicas would serve if each variant had so many.
func (m *model) standing(replicas func(*variant) int) standing {
	var s standing
	for _, v := range m.variants {
		if v.exists() {
			n := replicas(v)
			s.ready += m.counts(v) * capacity.Rate(min(n, v.in.Ready))
			s.coming += m.counts(v) * capacity.Rate(min(n, v.supply))
			s.total += n
		}
	}
	return s
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
// or whose load is not known, has no spare to take over what another one did, and a
// saturated one counts for no more than it serves now. No ready replica goes while fewer
// than two are known to have some spare, and beside a saturated one none that starts.
func (m *model) safe(now, after standing) bool {
	eased, blind := m.load.eased, m.load.blind
	if m.full.any {
		eased, blind = min(eased, m.full.eased), max(blind, m.full.blind)
	}
	if after.coming-m.full.idling < max(m.atLeast, oneMore) || m.full.any && eased < 2 {
		return false
	}
	if after.ready >= now.ready {
		return true
	}
	remain := after.ready - blind
	// Sums of rates are exact to a part in a billion at best.
	if eased < 2 || remain <= now.ready*1e-9 || after.ready-m.full.idling < m.atLeast {
		return false
	}
	grown := float64((now.ready - blind) / remain)
	t := m.saturation
	return t.KVCacheThreshold-m.load.full*grown >= t.KVSpareTrigger &&
		t.QueueLengthThreshold-m.load.queue*grown >= t.QueueSpareTrigger
}

package allocate

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// leastUnsaturated is how many replicas must be known to have some spare before a ready one
// goes, so that one stays that has.
const leastUnsaturated = 2

// mostStretch is how many times as much as now the ready replicas that stay may have to do, where
// nothing but their present load says what they serve.
const mostStretch = 2

// ShrinkTo removes what the cheapest mix does without, as long as what stays serves the
// demand with something in hand and stays below the triggers. Where that mix is not
// safe to go to, replicas go one by one, the dearest per rate first. Of a mix that replicas
// are started for, what is there stays.
func ShrinkTo(r *limit.Round, m *limit.Model, keep map[*limit.Variant]int) {
	now := StandingOf(m, func(v *limit.Variant) int { return v.Target })
	mix := cheapestMix(m, keep)
	after := mix
	if !ReachesMix(m, now, mix) {
		after = OneByOne(m, now, mix, keep != nil || m.Starts())
	}
	signal.Each(m.Variants, func(v *limit.Variant) {
		n := after[v]
		switch {
		case n < v.Target:
		case heldByMinimum(m, v, now, after):
			v.Hold(contract.StageAllocation, contract.ReasonMinReplicas, contract.SaysAtMinimum.With(v.Policy.Min))
			return
		default:
			v.Note(contract.StageAllocation, contract.ReasonSteady, StaysFor(m, v))
			return
		}
		if v.ScarceFor != nil && len(m.Variants) > 1 {
			v.Note(contract.StageAllocation, contract.ReasonSpareCapacity, contract.SaysRemovedFirst.With(v.ScarceFor.As(v.Key.Namespace)))
		}
		v.Step(contract.StageAllocation, n, contract.ReasonSpareCapacity, contract.SaysSuffice.With(m.Need.Detail, n, m.Need.Least))
	})
}

// StaysFor says why the variant keeps its replicas.
func StaysFor(m *limit.Model, v *limit.Variant) contract.Finding {
	switch {
	case v.Target > 0 && TooFewLeft(m, With(map[*limit.Variant]int{v: v.Target - 1})):
		return contract.SaysTooFewBefore.With(m.Carried() * m.Next.TooFew.Load / m.Work())
	case v.Target == 0:
		return contract.SaysNoneToRemove.With()
	case m.Need.Least >= rate.OneMore:
		return contract.SaysCapacityRequired.With(m.Need.Least)
	case v.Target <= v.Policy.Min:
		return contract.SaysAtMinimum.With(v.Policy.Min)
	}
	return contract.SaysKeepsOneThatServes.With()
}

// heldByMinimum reports whether one more of the variant's replicas would go, were it not for
// minReplicas.
func heldByMinimum(m *limit.Model, v *limit.Variant, now Standing, after map[*limit.Variant]int) bool {
	if v.Target == 0 || v.Target != v.Policy.Min || v.Target != v.In.Current || needsKeeping(m, v, v.Target) == v.Target {
		return false
	}
	without := func(o *limit.Variant) int {
		if o == v {
			return v.Target - 1
		}
		return With(after)(o)
	}
	left := StandingOf(m, without)
	return left.Total > 0 && IsSafe(m, now, left) && !TooFewLeft(m, without)
}

// RelieveMisfits lets misfits go while more is wanted that keeps the promise and cannot be added,
// the missing rate: those that the rest does not need to stay below the triggers.
func RelieveMisfits(r *limit.Round, m *limit.Model, missing capacity.Rate) {
	if missing <= 0 || m.Evidence != signal.EvidenceFull || m.Need.Triggered || m.Load.Saturated > 0 || !m.Demand.IsCertain {
		return
	}
	carried, late := capacity.Rate(0), servedLate(m)
	for _, v := range m.Variants {
		carried += v.Rate.Trigger * capacity.Rate(min(v.In.Ready, v.In.Current))
	}
	for _, v := range dearestFirst(m) {
		n, each := v.Target, v.Rate.Trigger
		if !v.Rate.Unfit() || n > v.In.Current {
			continue
		}
		for least := stayingOf(m, v, n); n > least && carried-each >= need.LowerHeadroom*m.CertainArrivals() && late-each >= need.LowerHeadroom*missing; n-- {
			if TooFewLeft(m, With(map[*limit.Variant]int{v: n - 1})) {
				break
			}
			carried, late = carried-each, late-each
		}
		if n < v.Target {
			v.Step(contract.StageAllocation, n, contract.ReasonSpareCapacity, contract.SaysMisfitsReduced.With(n))
		}
	}
}

// stayingOf is how many of up to n replicas a scale-down leaves: its minimum, and as many as
// may be saturated, where any of the model is. Whoever chooses which one goes may take one
// of these, and then one that has room for its load stays in its place. Where nobody knows
// what a replica serves all stay: what a saturated one must be relieved of is then not
// known either. So do those of a variant that scaleDown leaves alone: the others may count
// on them.
func stayingOf(m *limit.Model, v *limit.Variant, n int) int {
	return min(n, max(v.Policy.Min, needsKeeping(m, v, n)))
}

// needsKeeping is the same without the minimum.
func needsKeeping(m *limit.Model, v *limit.Variant, n int) int {
	least := v.BesideOdd(n)
	if m.Load.Saturated > 0 {
		least = max(least, v.In.Ready-v.Load.Unsaturated-v.Load.Dead)
	}
	if v.Load.Dead > 0 && !v.Odd.First {
		least = n
	}
	if v.Load.Saturated > 0 && !m.Rated || v.Policy.Down.Select == contract.SelectDisabled {
		least = n
	}
	return min(least, n)
}

// cheapestMix is the cheapest mix of replicas that exist which still serves what must
// stay, whether or not those that start serve already, and of which so many are kept; nil
// when they do not suffice.
func cheapestMix(m *limit.Model, keep map[*limit.Variant]int) map[*limit.Variant]int {
	candidates, need := MixOf(m)
	options := make([]allocation.Option, len(candidates))
	for i, v := range candidates {
		most := v.Bounded(v.Target)
		if v.Odd.First {
			most = max(0, most-v.Load.Dead)
		}
		options[i] = allocation.Option{Cost: v.Price, Serves: v.Rate.Serves(), Now: v.Target, Least: max(stayingOf(m, v, most), min(keep[v], most)), Most: most}
	}
	best := allocation.Cheapest(options, need)
	if best.Unserved > 0 {
		return nil
	}
	return ChangeTo(candidates, best.Replicas).Mix
}

// ReachesMix reports whether it is safe to go to the mix at once.
func ReachesMix(m *limit.Model, now Standing, mix map[*limit.Variant]int) bool {
	if mix == nil {
		return false
	}
	left := StandingOf(m, With(mix))
	return left.Total > 0 && IsSafe(m, now, left) && !TooFewLeft(m, With(mix))
}

// With is how many replicas each variant has in the mix: those that are not in it keep theirs.
func With(mix map[*limit.Variant]int) func(*limit.Variant) int {
	return func(v *limit.Variant) int {
		if n, in := mix[v]; in {
			return n
		}
		return v.Target
	}
}

// OneByOne removes replicas, the dearest per rate first, as long as it is safe.
// What maxReplicas takes away anyway is not there to rely on. While replicas start, each
// variant keeps what the cheapest mix needs: the mix cannot be gone to only until they
// serve, and who gave any of it up meanwhile would start that again in the next round.
func OneByOne(m *limit.Model, now Standing, mix map[*limit.Variant]int, starts bool) map[*limit.Variant]int {
	left, after := make(map[*limit.Variant]int, len(m.Variants)), make(map[*limit.Variant]int, len(m.Variants))
	for _, v := range m.Variants {
		left[v], after[v] = v.Bounded(v.Target), v.Target
	}
	for _, v := range dearestFirst(m) {
		least := stayingOf(m, v, left[v])
		if starts {
			least = max(least, mix[v])
		}
		for left[v] > least {
			left[v]--
			replicas := func(v *limit.Variant) int { return left[v] }
			next := StandingOf(m, replicas)
			if next.Total == 0 || !IsSafe(m, now, next) || TooFewLeft(m, replicas) {
				left[v]++
				break
			}
			after[v] = left[v]
		}
	}
	return after
}

// Standing is what a model's replicas serve: those that are ready, and those with
// the ones that start; and how many they are, ready ones, those of them that are known to
// have some spare, those that are not ready, and in all.
type Standing struct {
	Ready, Coming                    capacity.Rate
	Up, Unsaturated, NotReady, Total int
}

// StandingOf is what the model's replicas would serve if each variant had so many.
func StandingOf(m *limit.Model, replicas func(*limit.Variant) int) Standing {
	s := Standing{Unsaturated: m.Load.Unsaturated}
	for _, v := range m.Variants {
		n := replicas(v)
		s.Ready += v.Rate.Serves() * v.Effective(min(n, v.In.Ready))
		s.Up += v.Working(min(n, v.In.Ready))
		s.Coming += v.Rate.Serves() * v.Effective(min(n, v.Fleet.Supply))
		s.NotReady += max(0, n-v.In.Ready)
		s.Total += n
	}
	return s
}

// dearestFirst lists the managed variants, the dearest per rate first; ties by name, last
// first, as published.
func dearestFirst(m *limit.Model) []*limit.Variant {
	var list []*limit.Variant
	signal.Each(m.Variants, func(v *limit.Variant) { list = append(list, v) })
	slices.SortStableFunc(list, func(a, b *limit.Variant) int {
		return cmp.Or(cmp.Compare(b.UnitPrice(), a.UnitPrice()), cmp.Compare(b.In.Name, a.In.Name))
	})
	return list
}

// IsSafe reports whether the supply may fall from now to after: it must still serve
// what is asked at least, and the load of the ready replicas that stay, which grows
// as they become fewer, must stay clear of the triggers. A replica that is saturated,
// or whose load is not known, has no spare to take over what another one did, and a
// saturated one counts for no more than it serves now. No ready replica goes while fewer
// than leastUnsaturated are known to have some spare, and beside a saturated one or one that nobody
// hears of none that starts.
func IsSafe(m *limit.Model, now, after Standing) bool {
	least, idle := m.Need.Least, m.Need.Idle
	if after.Coming >= now.Coming {
		// Only what does not count goes: misfits.
		least = min(least, m.Need.Required)
	}
	if after.Coming-idle < max(least, rate.OneMore) || m.Load.Saturated > 0 && now.Unsaturated < leastUnsaturated {
		return false
	}
	if after.NotReady < now.NotReady && unheard(m) {
		return false
	}
	if after.Up >= now.Up {
		return true
	}
	if now.Unsaturated < leastUnsaturated || after.Ready-unknownLoad(m) <= now.Ready*signal.Precision || after.Ready-idle < least {
		return false
	}
	return after.Ready >= max(clearOf(m, now), asFar(m, now))*(1-signal.Precision)
}

// asFar is the least that the ready replicas must serve so that what is known of them from their
// present load is not stretched too far: what a replica serves that is full is anybody's guess
// while it is hardly asked and no profile tells.
func asFar(m *limit.Model, now Standing) capacity.Rate {
	guessed := slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return v.In.Ready > 0 && v.Rate.Guessed })
	if !guessed || m.Used() == 0 {
		return 0
	}
	return now.Ready / mostStretch
}

// clearOf is the least that the ready replicas must serve so that each stays clear of the
// triggers with the load that all have now. What the ready replicas serve whose load is not
// known, or who are saturated, takes nothing over.
func clearOf(m *limit.Model, now Standing) capacity.Rate {
	unknown := unknownLoad(m)
	return unknown + max(0, now.Ready-unknown)*capacity.Rate(m.Used())
}

// unheard reports whether the load of a ready replica, or where no gateway counts the
// arrivals what it serves, is not known.
func unheard(m *limit.Model) bool {
	return m.Load.Saturated+m.Load.Unsaturated+m.Load.Dead < m.Ready() ||
		slices.ContainsFunc(m.Variants, func(v *limit.Variant) bool { return v.Load.Silent > 0 })
}

// unknownLoad is what the ready replicas serve that are not known to have some spare.
func unknownLoad(m *limit.Model) capacity.Rate {
	return rate.Served(m.Variants, func(v *limit.Variant) int { return max(0, v.In.Ready-v.Load.Unsaturated-v.Load.Dead) })
}

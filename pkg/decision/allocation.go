package decision

import (
	"cmp"
	"fmt"
	"slices"
)

// allocate turns what the models want into replicas of their variants. Minima come
// before anybody's growth, more important models before others, and what only saves
// comes last.
func (r *round) allocate(models []*model) {
	ordered := slices.Clone(models)
	slices.SortStableFunc(ordered, func(a, b *model) int { return cmp.Compare(a.plan.Promise.Priority, b.plan.Promise.Priority) })
	for _, m := range ordered {
		r.setAside(m)
	}
	r.growAll(slices.DeleteFunc(slices.Clone(ordered), func(m *model) bool { return m.need.want != wantMore }))
	for _, m := range ordered {
		switch {
		case m.need.want == wantMore:
			r.relieve(m)
		case m.need.want != wantLess:
			r.keepCheaper(m)
			m.each(func(v *variant) { v.note(StageAllocation, ReasonSteady, "no change is wanted") })
		case !r.replace(m):
			r.shrink(m)
		}
	}
	r.preempt(ordered)
}

// setAside takes the room of what the model's minima add, and of the replica that
// wakes it, before anybody grows.
func (r *round) setAside(m *model) {
	m.each(func(v *variant) { v.minimum = r.minimumOf(v) })
	if total(m) == 0 && m.floor() == 0 && (!r.mayRest(m) || m.called()) {
		m.keep, m.chosen = r.cheapestFitting(m, true), true
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

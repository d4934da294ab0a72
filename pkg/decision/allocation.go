package decision

import (
	"cmp"
	"slices"
	"time"
)

// allocate turns what the models want into replicas of their variants. Minima come
// before anybody's growth, more important models before others, and what only saves
// comes last.
func (r *round) allocate() {
	ordered := slices.Clone(r.models)
	slices.SortStableFunc(ordered, func(a, b *model) int { return cmp.Compare(a.promise.Priority, b.promise.Priority) })
	for _, m := range ordered {
		m.each(r.minimum)
		if m.total() == 0 && (!r.mayRest(m) || m.called()) {
			m.unkept = !r.keepOne(m)
		}
	}
	var growing []*model
	for _, m := range ordered {
		if m.need.want == wantMore {
			growing = append(growing, m)
		}
	}
	r.growAll(growing)
	switches := 0
	for _, m := range ordered {
		m.next.Cheaper = m.old.Cheaper
		switch m.need.want {
		case wantMore:
			m.next.Cheaper = time.Time{}
			r.relieve(m)
		case wantLess:
			if switches < switchesPerRound && r.replace(m) {
				switches++
			} else {
				r.shrink(m)
			}
		default:
			m.note(StageAllocation, ReasonSteady, "no change is wanted")
		}
	}
	r.preempt(ordered)
}

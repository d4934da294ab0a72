package decision

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// answer is what the allocation found beside the replicas of each variant.
type answer struct {
	// lacks is what models could not get.
	lacks map[*model]lack
	// ideal is what variants would have if no window of scaleUp held them.
	ideal map[*variant]int
	// giving are the replicas that give way to a more important model.
	giving map[*variant][]string
}

// lack is what one model could not get.
type lack struct {
	// short is the rate that could not be bought within the limits, and late what of it no
	// replica that keeps the promise could serve.
	short, late capacity.Rate
	// any is set when no variant may have the one replica that the model needs.
	any bool
}

// lacksOne reports whether the model has no replica and is to have one.
func (r *round) lacksOne(m *model) bool {
	return m.total() == 0 && r.awake(m)
}

// awake reports whether the model is to have a replica: one that may sleep has requests.
func (r *round) awake(m *model) bool { return !r.policy.IdleOf(m.key).Enabled || m.called() }

// allocate turns what the models want into replicas of their variants. Minima come
// before anybody's growth, more important models before others, and what only saves
// comes last.
func (r *round) allocate() answer {
	found := answer{lacks: map[*model]lack{}, ideal: map[*variant]int{}, giving: map[*variant][]string{}}
	ordered := slices.Clone(r.models)
	slices.SortStableFunc(ordered, func(a, b *model) int { return cmp.Compare(a.promise.Priority, b.promise.Priority) })
	acting := slices.DeleteFunc(slices.Clone(ordered), func(m *model) bool { return m.advisory })
	shown := slices.DeleteFunc(ordered, func(m *model) bool { return !m.advisory })
	r.allocateTo(acting, found)
	r.preempt(acting, found)
	// Who is only shown what it would get is given what they leave, and nobody gives way to it.
	r.allocateTo(shown, found)
	return found
}

// allocateTo does so for some of the models, the most important ones first.
func (r *round) allocateTo(ordered []*model, found answer) {
	for _, m := range ordered {
		r.enter(m, found)
		m.each(r.minimum)
		if r.lacksOne(m) {
			found.lacks[m] = lack{any: !r.keepOne(m)}
		}
	}
	r.growAll(slices.DeleteFunc(slices.Clone(ordered), func(m *model) bool { return m.need.want != wantMore }), found)
	r.remember(ordered, found)
	switches := 0
	for _, m := range ordered {
		m.next.Cheaper = m.old.Cheaper
		r.judgeSaving(m)
		switch m.need.want {
		case wantMore:
			m.next.Cheaper = time.Time{}
			r.relieve(m, found.lacks[m].late)
		case wantLess:
			mix, begins := r.replace(m, found.ideal, switches < switchesPerRound)
			if begins {
				switches++
			} else {
				if mix == nil {
					mix = r.switching(m)
				}
				r.shrink(m, mix)
			}
		default:
			m.note(StageAllocation, ReasonSteady, "no change is wanted")
		}
	}
}

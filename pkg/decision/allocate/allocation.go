package allocate

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/need"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// Answer is what the allocation found beside the replicas of each variant.
type Answer struct {
	// Lacks is what models could not get.
	Lacks map[*limit.Model]Lack
	// Ideal is what variants would have if no window of scaleUp held them.
	Ideal map[*limit.Variant]int
	// Giving are the replicas that give way to a more important model.
	Giving map[*limit.Variant][]string
}

// Lack is what one model could not get.
type Lack struct {
	// Short is the rate that could not be bought within the limits, and late what of it no
	// replica that keeps the promise could serve.
	Short, late capacity.Rate
	// Any is set when no variant may have the one replica that the model needs.
	Any bool
}

// lacksOne reports whether the model has no replica and is to have one.
func lacksOne(r *limit.Round, m *limit.Model) bool {
	return m.Total() == 0 && awake(r, m)
}

// awake reports whether the model is to have a replica: one that may sleep has requests.
func awake(r *limit.Round, m *limit.Model) bool { return !r.Policy.IdleOf(m.Key).Enabled || m.Called() }

// To does so for some of the models, the most important ones first.
func To(r *limit.Round, ordered []*limit.Model, found Answer) {
	for _, m := range ordered {
		EnterRoom(r, m, found)
		signal.Each(m.Variants, r.Minimum)
		if lacksOne(r, m) {
			found.Lacks[m] = Lack{Any: !KeepOne(r, m, contract.StageAllocation)}
		}
	}
	growAll(r, slices.DeleteFunc(slices.Clone(ordered), func(m *limit.Model) bool { return m.Need.Want != need.WantMore }), found)
	RememberLacks(r, ordered, found)
	switches := 0
	for _, m := range ordered {
		m.Next.Cheaper = m.Old.Cheaper
		switch m.Need.Want {
		case need.WantMore:
			m.Next.Cheaper = time.Time{}
			RelieveMisfits(r, m, found.Lacks[m].late)
		case need.WantLess:
			mix, begins := ReplaceMix(r, m, found.Ideal, switches < SwitchesPerRound)
			if begins {
				switches++
			} else {
				ShrinkTo(r, m, mix)
			}
		default:
			m.Note(contract.StageAllocation, contract.ReasonSteady, contract.SaysNoChangeWanted.With())
			if m.Advisory {
				signal.Each(m.Variants, (*limit.Variant).GoesOnAsking)
			}
		}
	}
}

// WorkExplained is at how many choices a round looks to find the next best mix of a model, and which
// of its variants would grow. In random clusters a quarter of it suffices for models with a few
// variants.
const WorkExplained = 4000

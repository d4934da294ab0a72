package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// lesson is what each mode of ours learns of the variants, and of how well they kept the
// promise, from the requests of an earlier time, with each start-up time.
type lesson map[subject]decision.Memory

// subject is a mode at its defaults, and a start-up time.
type subject struct {
	hybrid  bool
	startup time.Duration
}

func newLesson(o TrialOptions) (lesson, error) {
	earlier, err := NewTrial(o)
	if err != nil {
		return nil, fmt.Errorf("the requests to learn from: %w", err)
	}
	l := lesson{}
	for _, startup := range o.Startups {
		for _, hybrid := range []bool{true, false} {
			pupil := newOurs(earlier.scenario.untold(), hybrid)
			p := play{Trial: earlier, policy: policyHybrid, startup: startup}
			if done := p.with(pupil, p.initial()); done.err != nil {
				return nil, done.err
			}
			l[subject{hybrid, startup}] = learned(pupil.memory)
		}
	}
	return l, nil
}

// teach has one of ours know what it learned, and nothing that it was given. The lesson was
// at another time: the decision takes a memory that is later than now for that of a clock
// that came back, and forgets when things were.
func (l lesson) teach(pupil *ours, startup time.Duration) {
	pupil.scenario = pupil.scenario.untold()
	pupil.memory = l[subject{pupil.policy.Hybrid, startup}]
	pupil.memory.Time = at(math.MaxInt64)
}

// learned is the memory without what was seen of the load.
func learned(m decision.Memory) decision.Memory {
	models := make(map[decision.ModelKey]*decision.ModelMemory, len(m.Models))
	for key, of := range m.Models {
		models[key] = &decision.ModelMemory{Attained: of.Attained}
	}
	return decision.Memory{Variants: m.Variants, Models: models}
}

// untold is the scenario of which the autoscaler is given no profile.
func (s *Scenario) untold() *Scenario {
	changed := *s
	changed.Models = slices.Clone(s.Models)
	for m := range changed.Models {
		variants := slices.Clone(changed.Models[m].Variants)
		for v := range variants {
			variants[v].Given = serving.Profile{}
		}
		changed.Models[m].Variants = variants
	}
	return &changed
}

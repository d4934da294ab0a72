package lesson

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
)

// Lesson is what each mode of ours learns of the variants, and of how well they kept the
// promise, from the requests of an earlier time, with each start-up time.
type Lesson map[subject]decision.Memory

// subject is a mode at its defaults, and a start-up time.
type subject struct {
	hybrid  bool
	startup time.Duration
}

// Learn plays the earlier time, of which ours are told nothing.
func Learn(o replay.TrialOptions) (Lesson, error) {
	o.Before = func(bool, time.Duration) decision.Memory { return decision.Memory{} }
	earlier, err := replay.NewTrial(o)
	if err != nil {
		return nil, fmt.Errorf("the requests to learn from: %w", err)
	}
	l := Lesson{}
	for _, startup := range o.Startups {
		for _, hybrid := range []bool{true, false} {
			policy := "capacity-only"
			if hybrid {
				policy = "hybrid"
			}
			_, _, err := earlier.Play(replay.Play{Policy: policy, Startup: startup, After: func(m decision.Memory) { l[subject{hybrid, startup}] = learnt(m) }})
			if err != nil {
				return nil, err
			}
		}
	}
	return l, nil
}

// Of is what a mode begins with. The lesson was at another time: the decision takes a memory
// that is later than now for that of a clock that came back, and forgets when things were.
func (l Lesson) Of(hybrid bool, startup time.Duration) decision.Memory {
	m := l[subject{hybrid, startup}]
	m.Time = time.Unix(0, 0).UTC().Add(math.MaxInt64)
	return m
}

// learnt is the memory without what was seen of the load.
func learnt(m decision.Memory) decision.Memory {
	models := make(map[decision.ModelKey]*decision.ModelMemory, len(m.Models))
	for key, of := range m.Models {
		models[key] = &decision.ModelMemory{Attained: of.Attained}
	}
	return decision.Memory{Variants: m.Variants, Models: models}
}

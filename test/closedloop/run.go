package closedloop

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Times of the rounds: a full one each interval, a fast one in between, and one more when
// a pod came up or found no node.
const (
	fullEvery = time.Minute
	fastEvery = decision.FastInterval
)

// run plays a scenario with a decision to its end, and checks everything; or to where
// one check fails that is looked for.
func run(s *Scenario, decide Decider, until Check) *world {
	w := newWorld(s, decide)
	for w.now < s.end() && (until == "" || !w.failed(until)) {
		w.advance()
		switch {
		case w.now < fullEvery:
			// The metrics' first window: the manager starts with the first full round.
		case w.now%fullEvery == 0:
			w.decideRound(decision.RoundFull)
		case w.now%fastEvery == 0:
			w.decideRound(decision.RoundFast)
		case w.changed:
			w.decideRound(decision.RoundEvent)
		}
	}
	if w.now >= s.end() {
		w.checkSettled()
	}
	return w
}

// failed says whether a check failed.
func (w *world) failed(check Check) bool {
	for _, f := range w.story.failures {
		if f.check == check {
			return true
		}
	}
	return false
}

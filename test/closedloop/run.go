package closedloop

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Rounds come as in the manager (package round): full and fast ones, and one more for what it
// watches. Once nothing has changed for the time of rest, a fast round comes only every two
// minutes, between two full ones: the others would see what those before them saw, and the
// scenarios would take three times as long.
const (
	fullEvery = time.Minute
	rest      = 3 * time.Minute
	restEvery = 2 * time.Minute
)

// round is which round comes now, or none.
func (w *world) round() (decision.Round, bool) {
	if w.now < fullEvery {
		// The metrics' first window: the manager starts with the first full round.
		return "", false
	}
	now := epoch.Add(w.now)
	kind, wait := w.clock.Next(now, fullEvery)
	if wait > 0 {
		return "", false
	}
	w.clock.Begin(kind, now)
	if kind == decision.RoundFast && w.now > w.disturbed+rest && w.now%restEvery != restEvery/4 {
		return "", false
	}
	w.clock.Looked()
	return kind, true
}

// run plays a scenario with a decision to its end, and checks everything; or to where
// one check fails that is looked for.
func run(s *Scenario, decide Decider, until Check) *world {
	w := newWorld(s, decide)
	for w.now < s.end() && (until == "" || !w.failed(until)) {
		w.advance()
		if kind, ok := w.round(); ok {
			w.decideRound(kind)
		}
	}
	if w.now >= s.end() {
		w.checkAtEnd()
	}
	return w
}

// checkAtEnd checks what has settled. A shortage counts that lasts longer than mostShort.
func (w *world) checkAtEnd() {
	before, until := w.story.failures, w.now+mostShort
	for w.checkSettled(); w.failed(CheckShort) && w.now < until; w.checkSettled() {
		w.story.failures = before
		for next := w.now + fullEvery; w.now < next; {
			w.advance()
			if kind, ok := w.round(); ok {
				w.decideRound(kind)
			}
		}
		before = w.story.failures
	}
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

package controller

import (
	"sync/atomic"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// eventSpacing is the least time between two event rounds.
	eventSpacing = 5 * time.Second
	// urgentSpacing is the same for what a user waits for: an object or a target
	// that comes or goes.
	urgentSpacing = time.Second
)

// urgency says how long an event may wait for company.
type urgency int

const (
	calm urgency = 0
	soon urgency = 1
	// urgent has the bit of soon, so that of several urgencies, joined by or, the greatest is left.
	urgent urgency = 3
)

// schedule says which round is due when. It is a value without a clock.
type schedule struct {
	// lastFull is when the last full round began, lastTimed when the last full or
	// fast one did, lastAny when the last one of all did.
	lastFull, lastTimed, lastAny time.Time
	pending                      urgency
}

// event notes that something happened that a round should look at.
func (s *schedule) event(u urgency) { s.pending = max(s.pending, u) }

// next is the round that is due first, and how long it may wait.
func (s *schedule) next(now time.Time, interval time.Duration) (decision.Round, time.Duration) {
	if s.lastFull.IsZero() {
		return decision.RoundFull, 0
	}
	round, wait := decision.RoundFull, until(s.lastFull.Add(interval), now)
	if fast := until(s.lastTimed.Add(decision.FastInterval), now); fast < wait {
		round, wait = decision.RoundFast, fast
	}
	if event, pending := s.nextEvent(now); pending && event < wait {
		round, wait = decision.RoundEvent, event
	}
	return round, wait
}

// nextEvent is how long the next event round may wait, if one is pending.
func (s *schedule) nextEvent(now time.Time) (time.Duration, bool) {
	spacing := eventSpacing
	if s.pending == urgent {
		spacing = urgentSpacing
	}
	return until(s.lastAny.Add(spacing), now), s.pending != calm
}

func until(due, now time.Time) time.Duration { return max(0, due.Sub(now)) }

// begin notes that a round begins. A full or fast one reads metrics first, which may
// take long; events wait for none of that, and stay pending until looked.
func (s *schedule) begin(round decision.Round, now time.Time) {
	s.lastAny = now
	if round == decision.RoundEvent {
		return
	}
	s.lastTimed = now
	if round == decision.RoundFull {
		s.lastFull = now
	}
}

// looked notes that the cluster is observed now: every round looks at everything, so it
// answers the events before it.
func (s *schedule) looked() { s.pending = calm }

// trigger carries events from the watches to the loop. Events that come while the
// loop is busy become one.
type trigger struct {
	pending atomic.Int32
	wake    chan struct{}
}

func newTrigger() *trigger { return &trigger{wake: make(chan struct{}, 1)} }

// poke never blocks.
func (t *trigger) poke(u urgency) {
	t.pending.Or(int32(u))
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// take returns the greatest urgency since it was last called.
func (t *trigger) take() urgency { return urgency(t.pending.Swap(int32(calm))) }

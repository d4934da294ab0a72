package round

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// EventSpacing is the least time between the beginning of any round and that of an
	// event round.
	EventSpacing = 5 * time.Second
	// UrgentSpacing is the same for what a user waits for: an object or a target
	// that comes or goes.
	UrgentSpacing = time.Second
)

// Urgency says how long an event may wait for company.
type Urgency int

const (
	// Calm is no event.
	Calm Urgency = 0
	// Soon keeps EventSpacing.
	Soon Urgency = 1
	// Urgent keeps UrgentSpacing. It has the bit of Soon, so that of several urgencies,
	// joined by or, the greatest is left.
	Urgent Urgency = 3
)

// Clock says which round is due when: a full one every interval, a fast one
// decision.FastInterval after the last full or fast one, and one for the events since the
// last look. The zero Clock has a full round due at once.
type Clock struct {
	// lastFull is when the last full round began, lastTimed when the last full or
	// fast one did, lastAny when the last one of all did.
	lastFull, lastTimed, lastAny time.Time
	pending                      Urgency
}

// Event notes that something happened that a round should look at.
func (c *Clock) Event(u Urgency) { c.pending = max(c.pending, u) }

// Next is the round that is due first, and how long it may wait. Of several that are overdue
// it is the one that may do most.
func (c *Clock) Next(now time.Time, interval time.Duration) (decision.Round, time.Duration) {
	if c.lastFull.IsZero() {
		return decision.RoundFull, 0
	}
	round, wait := decision.RoundFull, until(c.lastFull.Add(interval), now)
	if fast := until(c.lastTimed.Add(decision.FastInterval), now); fast < wait {
		round, wait = decision.RoundFast, fast
	}
	if event, pending := c.NextEvent(now); pending && event < wait {
		round, wait = decision.RoundEvent, event
	}
	return round, wait
}

// NextEvent is how long the next event round may wait, if an event is pending.
func (c *Clock) NextEvent(now time.Time) (wait time.Duration, pending bool) {
	spacing := EventSpacing
	if c.pending == Urgent {
		spacing = UrgentSpacing
	}
	return until(c.lastAny.Add(spacing), now), c.pending != Calm
}

func until(due, now time.Time) time.Duration { return max(0, due.Sub(now)) }

// Begin notes that a round begins. A full or fast one reads metrics first, which may
// take long; events wait for none of that, and stay pending until Looked.
func (c *Clock) Begin(round decision.Round, now time.Time) {
	c.lastAny = now
	if round == decision.RoundEvent {
		return
	}
	c.lastTimed = now
	if round == decision.RoundFull {
		c.lastFull = now
	}
}

// Looked notes that the cluster is observed now: every round looks at everything, so it
// answers the events before it.
func (c *Clock) Looked() { c.pending = Calm }

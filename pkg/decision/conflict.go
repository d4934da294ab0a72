package decision

import (
	"fmt"
	"slices"
	"time"
)

const (
	// changesFought is how many changes by somebody else within a window are a fight
	// and no start from another number.
	changesFought = 2
	// leastConflictBackoff and mostConflictBackoff bound how long a target is left to the
	// other one; each time that it happens again within the longer, twice as long.
	leastConflictBackoff = 5 * time.Minute
	mostConflictBackoff  = time.Hour
)

// Conflict is what is known of somebody else who changes a target's replicas.
type Conflict struct {
	// Times are those of the changes, oldest first.
	Times []time.Time
	// Until is how long the target is left to the other one, and Backoff how long that
	// was to be.
	Until   time.Time
	Backoff time.Duration
}

// later reports whether anything of it was seen later than now.
func (c Conflict) later(now time.Time) bool {
	return c.Until.Add(-c.Backoff).After(now) || slices.ContainsFunc(c.Times, func(t time.Time) bool { return t.After(now) })
}

// watchConflict finds changes of the target's replicas that were not asked for
// here. One is a new starting point. More than one within a window is a fight, which
// nobody wins: nothing is written for a while.
func (r *round) watchConflict(v *variant) {
	if v.in.Target != TargetFound {
		// Whoever decides there is known, and over when it is gone.
		return
	}
	c, now := v.old.Conflict, r.snapshot.Time
	c.Times = within(c.Times, now, v.window())
	if before, changed := v.changedByOthers(); changed {
		v.externallyChanged = true
		c.Times = append(c.Times, now)
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonReplicasChanged, fmt.Sprintf("%s changed the replicas from %d to %d; none is removed within the scale-down window", v.writer(), before, v.in.Current)})
	}
	if len(c.Times) >= changesFought && !now.Before(c.Until) {
		c.Backoff = min(max(2*c.Backoff, leastConflictBackoff), mostConflictBackoff)
		c.Until, c.Times = now.Add(c.Backoff), nil
	}
	if len(c.Times) == 0 && now.Sub(c.Until) > mostConflictBackoff {
		return
	}
	v.next.Conflict = c
	if now.Before(c.Until) {
		v.refuse(ReasonReplicasOverwritten, fmt.Sprintf("%s changes the replicas again and again, so nothing is written for %s: leave them to one of the two, or set spec.actuation to Metric",
			v.writer(), c.Until.Sub(now).Round(time.Second)))
	}
}

// changedByOthers reports whether the target asks for another number than it was last
// seen with, which was not asked for here, and what it was before.
func (v *variant) changedByOthers() (before int, changed bool) {
	last, known := v.old.before()
	// Whoever follows the metric makes changes of his own.
	return last.Replicas, known && v.policy.Actuation == ActuationScale && last.Replicas != v.in.Current && last.Desired != v.in.Current
}

// window is the time within which changes by somebody else are a fight.
func (v *variant) window() time.Duration { return max(v.policy.Down.Window, leastConflictBackoff) }

// writer names who else changed the replicas.
func (v *variant) writer() string {
	if v.in.Writer == "" {
		return "something else"
	}
	return "field manager " + v.in.Writer
}

// within are the times that are not older than the window.
func within(times []time.Time, now time.Time, window time.Duration) []time.Time {
	var kept []time.Time
	for _, t := range times {
		if now.Sub(t) <= window {
			kept = append(kept, t)
		}
	}
	return kept
}

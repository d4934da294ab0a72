package decision

import (
	"fmt"
	"slices"
	"time"
)

const (
	// leastConflictBackoff and mostConflictBackoff bound how long a target is left to the
	// other one; each time that it happens again within the longer, twice as long.
	leastConflictBackoff = 5 * time.Minute
	mostConflictBackoff  = time.Hour
)

// Conflict is what is known of somebody else who changes a target's replicas.
type Conflict struct {
	// Changes are what others did within the conflict window, oldest first.
	Changes []Change
	// Until is how long the target is left to the other one, and Backoff how long that
	// was to be.
	Until   time.Time
	Backoff time.Duration
}

// Change is a number of replicas that somebody else set.
type Change struct {
	// Time is when it was seen, and Writer the field manager, empty where it is not known.
	Time     time.Time
	Writer   string
	Replicas int
}

// fights reports whether a change is one of a fight: the same writer set the same number
// before, or it is not the first one of the window since the last fight.
func (c Conflict) fights(now Change, window time.Duration) bool {
	return slices.ContainsFunc(c.Changes, func(o Change) bool {
		same := o.Writer == now.Writer && o.Replicas == now.Replicas
		return same || o.Time.After(c.Until) && now.Time.Sub(o.Time) <= window
	})
}

// conflictOf finds changes of the target's replicas that were not asked for here. One is
// a new starting point. A fight nobody wins: nothing is written for a while.
func (r *round) conflictOf(v *variant) (c Conflict, changed bool) {
	if v.in.Target != TargetFound {
		// Whoever decides there is known, and over when it is gone.
		return Conflict{}, false
	}
	c, now := v.old.Conflict, r.snapshot.Time
	c.Changes = slices.DeleteFunc(slices.Clone(c.Changes), func(o Change) bool { return now.Sub(o.Time) > r.policy.ConflictWindow })
	last, known := v.old.before()
	before := last.Replicas
	if v.old.Written {
		before = last.Desired
	}
	// Whoever follows the metric makes changes of his own. A write that failed may have
	// succeeded.
	if changed = known && v.policy.Actuation == ActuationScale && before != v.in.Current && last.Desired != v.in.Current; changed {
		one := Change{Time: now, Writer: v.in.Writer, Replicas: v.in.Current}
		if c.fights(one, max(v.policy.Down.Window, leastConflictBackoff)) && !now.Before(c.Until) {
			c.Backoff = min(max(again*c.Backoff, leastConflictBackoff), mostConflictBackoff)
			c.Until = now.Add(c.Backoff)
		}
		c.Changes = append(c.Changes, one)
		v.fact(ReasonReplicasChanged, "%s changed the replicas from %d to %d; none is removed within the scale-down window", v.writer(), before, v.in.Current)
	}
	if len(c.Changes) == 0 && now.Sub(c.Until) > mostConflictBackoff {
		return Conflict{}, changed
	}
	if now.Before(c.Until) {
		v.refuse(ReasonReplicasOverwritten, fmt.Sprintf("%s keeps changing the replicas: no writes until %s UTC; stop it, or set actuation to Off",
			v.writer(), c.Until.UTC().Format(time.TimeOnly)))
	}
	return c, changed
}

// writer names who else changed the replicas.
func (v *variant) writer() string {
	if v.in.Writer == "" {
		return "something else"
	}
	return "field manager " + v.in.Writer
}

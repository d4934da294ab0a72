package decision

import (
	"fmt"
	"time"
)

const (
	// overwritesFought is how many changes by somebody else within a window are a fight
	// and no start from another number.
	overwritesFought = 2
	// leastTruce and mostTruce bound how long a target is left to the other one; each
	// time that it happens again within mostTruce, twice as long.
	leastTruce = 5 * time.Minute
	mostTruce  = time.Hour
)

// Overwriting is what is known of somebody else who changes a target's replicas.
type Overwriting struct {
	// Times are those of the changes, oldest first.
	Times []time.Time
	// Until is how long the target is left to the other one, and Truce how long that
	// was to be.
	Until time.Time
	Truce time.Duration
}

// watchOverwriting finds changes of the target's replicas that were not asked for
// here. One is a new starting point. More than one within a window is a fight, which
// nobody wins: nothing is written for a while.
func (r *round) watchOverwriting(v *variant) {
	if v.in.Target != TargetFound {
		// Whoever decides there is known, and over when it is gone.
		return
	}
	o, now := r.old.Overwriting[v.key], r.snapshot.Time
	o.Times = within(o.Times, now, v.window())
	if before, changed := r.changedByOthers(v); changed {
		v.foreign = true
		o.Times = append(o.Times, now)
		v.plan.Facts = append(v.plan.Facts, Fact{ReasonReplicasChanged, fmt.Sprintf("%s changed the replicas from %d to %d; none is removed within the scale-down window", v.writer(), before, v.in.Current)})
	}
	if len(o.Times) >= overwritesFought && !now.Before(o.Until) {
		o.Truce = min(max(2*o.Truce, leastTruce), mostTruce)
		o.Until, o.Times = now.Add(o.Truce), nil
	}
	if len(o.Times) == 0 && now.Sub(o.Until) > mostTruce {
		return
	}
	r.next.Overwriting[v.key] = o
	if now.Before(o.Until) {
		v.managed = false
		v.settle(ReasonReplicasOverwritten, fmt.Sprintf("%s changes the replicas again and again, so nothing is written for %s: leave them to one of the two, or set spec.actuation to Metric",
			v.writer(), o.Until.Sub(now).Round(time.Second)))
	}
}

// changedByOthers reports whether the target asks for another number than it was last
// seen with, which was not asked for here, and what it was before.
func (r *round) changedByOthers(v *variant) (before int, changed bool) {
	before, seen := r.old.Replicas[v.key]
	asked, ours := r.old.Asked[v.key]
	// Whoever follows the metric makes changes of his own.
	return before, v.policy.Actuation == ActuationScale && seen && ours && before != v.in.Current && asked != v.in.Current
}

// window is the time within which changes by somebody else are a fight.
func (v *variant) window() time.Duration { return max(v.policy.Down.Window, leastTruce) }

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

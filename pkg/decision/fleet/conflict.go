package fleet

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

const (
	// leastConflictBackoff and mostConflictBackoff bound how long a target is left to the
	// other one; each time that it happens again within the longer, twice as long.
	leastConflictBackoff = 5 * time.Minute
	mostConflictBackoff  = time.Hour
)

// Fights reports whether a change is one of a fight: the same writer set the same number
// before, or it is not the first one of the window since the last fight.
func Fights(c contract.Conflict, now contract.Change, window time.Duration) bool {
	return slices.ContainsFunc(c.Changes, func(o contract.Change) bool {
		same := o.Writer == now.Writer && o.Replicas == now.Replicas
		return same || o.Time.After(c.Until) && now.Time.Sub(o.Time) <= window
	})
}

// conflictOf finds changes of the target's replicas that were not asked for here. One is
// a new starting point. A fight nobody wins: nothing is written for a while.
func (v *Variant) conflictOf() (c contract.Conflict, changed bool) {
	if v.In.Target != contract.TargetFound {
		// Whoever decides there is known, and over when it is gone.
		return contract.Conflict{}, false
	}
	c, now := v.Old.Conflict, v.Round.Snapshot.Time
	c.Changes = slices.DeleteFunc(slices.Clone(c.Changes), func(o contract.Change) bool { return now.Sub(o.Time) > v.Round.Policy.ConflictWindow })
	last, known := v.Old.Before()
	before := last.Replicas
	if v.Old.Written {
		before = last.Desired
	}
	// Whoever follows the metric makes changes of his own. A write that failed may have
	// succeeded.
	if changed = known && v.Policy.Actuation == contract.ActuationScale && before != v.In.Current && last.Desired != v.In.Current; changed {
		one := contract.Change{Time: now, Writer: v.In.Writer, Replicas: v.In.Current}
		if Fights(c, one, max(v.Policy.Down.Window, leastConflictBackoff)) && !now.Before(c.Until) {
			c.Backoff = min(max(signal.Again*c.Backoff, leastConflictBackoff), mostConflictBackoff)
			c.Until = now.Add(c.Backoff)
		}
		c.Changes = append(c.Changes, one)
		v.Fact(contract.ReasonReplicasChanged, contract.SaysChangedBy.With(v.writer(), before, v.In.Current))
	}
	if len(c.Changes) == 0 && now.Sub(c.Until) > mostConflictBackoff {
		return contract.Conflict{}, changed
	}
	if now.Before(c.Until) {
		v.refuse(contract.ReasonReplicasOverwritten, contract.SaysKeepsChanging.With(v.writer(), c.Until))
	}
	return c, changed
}

// writer names who else changed the replicas.
func (v *Variant) writer() contract.Finding {
	if v.In.Writer == "" {
		return contract.SaysSomethingElse.With()
	}
	return contract.SaysFieldManager.With(v.In.Writer)
}

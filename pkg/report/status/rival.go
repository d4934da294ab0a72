package status

import (
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

const (
	// rivalry is how long after one another two writes of another manager show that it goes
	// on writing, and how long after the last one that is over.
	rivalry = time.Hour
	// truce is how long a status rests meanwhile after it was written.
	truce = 5 * time.Minute
)

// Rivals follow whether another manager writes the statuses of the same objects: each of two
// finds its own status gone and would write it again, for ever. The zero value knows of none.
type Rivals struct{ of map[types.UID]*rival }

type rival struct {
	// version is that of the object whose status was compared last, and ours the status that
	// was written here last; nil where that is not known.
	version string
	ours    *v1alpha1.VariantAutoscalingStatus
	// began is when one was begun last and wrote the same of one that was written. Undone is
	// when the other manager wrote over it, the last two times, and found when that was found
	// to be a conflict; zero without one.
	began, wrote, found time.Time
	undone              [2]time.Time
}

// Begin tells that a status is being written: until it is, nobody knows what ours is.
func (r *Rivals) Begin(uid types.UID, at time.Time) {
	if r.of == nil {
		r.of = map[types.UID]*rival{}
	}
	if r.of[uid] == nil {
		r.of[uid] = &rival{}
	}
	r.of[uid].ours, r.of[uid].began = nil, at
}

// Wrote tells of an object whose status was begun, and is written: as the API server has it.
func (r *Rivals) Wrote(object *v1alpha1.VariantAutoscaling) {
	w, ours := r.of[object.UID], object.Status
	w.version, w.ours, w.wrote = object.ResourceVersion, &ours, w.began
}

// Look compares the status of an object with ours. It returns a fact while another manager
// writes it, too.
func (r *Rivals) Look(object *v1alpha1.VariantAutoscaling, now time.Time) (decision.Fact, bool) {
	w := r.of[object.UID]
	if w == nil {
		return decision.Fact{}, false
	}
	if w.ours != nil && w.version != object.ResourceVersion {
		stands := object.Status
		if w.version = object.ResourceVersion; equality.Semantic.DeepEqual(w.ours, &stands) {
			w.ours = &stands // what the cache holds is held once
		} else {
			w.ours, w.undone = nil, [2]time.Time{w.undone[1], now}
		}
	}
	if w.undone[1].Sub(w.undone[0]) > rivalry || now.Sub(w.undone[1]) > rivalry {
		w.found = time.Time{}
		return decision.Fact{}, false
	}
	if w.found.IsZero() {
		w.found = now
	}
	return decision.Fact{Reason: v1alpha1.ReasonStatusOverwritten, Detail: decision.Words(fmt.Sprintf(
		"another manager keeps writing this status: this one writes it every %g minutes; end one, or give each a controller instance", truce.Minutes()))}, true
}

// Rests reports whether the status of an object is left as it is for a while, and not made the next
// one: the conflict stands in it. One over the replicas does not wait to be told.
func (r *Rivals) Rests(object *v1alpha1.VariantAutoscaling, next *v1alpha1.VariantAutoscalingStatus, now time.Time) bool {
	w := r.of[object.UID]
	if w == nil || w.found.IsZero() || w.wrote.Before(w.found) || now.Sub(w.wrote) >= truce {
		return false
	}
	return overReplicas(&object.Status) || !overReplicas(next)
}

// overReplicas reports whether a status tells of a conflict over the replicas.
func overReplicas(s *v1alpha1.VariantAutoscalingStatus) bool {
	c := apimeta.FindStatusCondition(s.Conditions, v1alpha1.ConditionConflict)
	return c != nil && c.Reason == string(decision.ReasonReplicasOverwritten)
}

// Keep drops what is known of all objects but these.
func (r *Rivals) Keep(there map[types.UID]bool) {
	maps.DeleteFunc(r.of, func(uid types.UID, _ *rival) bool { return !there[uid] })
}

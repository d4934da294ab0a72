package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// reporter shows plans. Each view of a plan has a file of its own.
type reporter struct {
	statuses *statuses
	recorder events.EventRecorder
	overlay  *overlay
	metrics  *metrics.Metrics
	// known are the variants of the last round. Failures are what last went wrong
	// with scaling each of them.
	known    []decision.Key
	failures map[decision.Key]string
	net      safetyNet
	rivals   status.Rivals
}

// findRivals warns of other managers that write the statuses of the same objects.
func (r *reporter) findRivals(seen *observation) {
	for _, v := range seen.variants {
		if f, found := r.rivals.Look(r.overlay.variants.over(v.object), seen.snapshot.Time); found {
			v.warnings = append(v.warnings, f)
		}
	}
}

// report shows the plan everywhere. One that stands in for a decision that failed comes with
// the reason why: of the statuses only the conditions change that say so. Its error joins all
// that went wrong in the round; what could not be written is tried again in the next one.
func (r *reporter) report(
	ctx context.Context, plan *decision.Plan, seen *observation, outcomes map[decision.Key]outcome, why error,
) error {
	r.metrics.Show(plan, &metrics.Round{
		Snapshot: seen.snapshot, Believed: seen.believed, Stale: seen.policy.Freshness.Stale, Unlisted: seen.unlisted,
		ID: func(key decision.Key) string { return seen.variants[key].ID },
	})
	errs := append(r.collect(), why, seen.metricsErr, r.tellUndecoded(ctx, seen))
	var changes []*statusChange
	resting := map[types.UID]*v1alpha1.VariantAutoscalingStatus{}
	plan.Each(func(p *decision.VariantPlan) {
		v := seen.variants[p.Key]
		r.net.follow(ctx, p)
		o, asked := outcomes[p.Key]
		if asked {
			errs = append(errs, o.err)
			r.tellScaling(p, v, o)
		}
		if f, ok := p.Fact(decision.ReasonReplicasChanged); ok {
			tell(r.recorder, v.object, corev1.EventTypeNormal, string(f.Reason), actionObserve, status.Brief(f.Detail))
		}
		base := r.overlay.variants.over(v.object)
		stands, owed := r.statuses.owed[base.UID]
		if !owed {
			stands = &base.Status
		}
		var next v1alpha1.VariantAutoscalingStatus
		if why != nil || v.target.unread {
			next = status.Undecided(stands, p, &v.Variant)
		} else {
			next = status.Render(stands, p, &v.Variant, plan.Time, asked && o.err == nil)
		}
		switch {
		case r.rivals.Rests(base, &next, plan.Time):
			resting[base.UID] = &next
		case owed || !status.Same(stands, &next, plan.Round):
			r.rivals.Begin(base.UID, plan.Time)
			changes = append(changes, &statusChange{base: base, status: next})
		}
	})
	// The conditions of statuses that take longer than a round may wait are told of in the next one.
	r.statuses.begin(ctx, changes)
	maps.Copy(r.statuses.owed, resting)
	if r.statuses.done(ctx) {
		errs = append(errs, r.collect()...)
	}
	r.forget(seen)
	klog.FromContext(ctx).V(2).Info("Round", "kind", plan.Round, "models", len(plan.Models), "variants", len(seen.variants),
		"scaled", len(outcomes), "statuses", len(changes), "statusesOwed", len(r.statuses.owed))
	return errors.Join(errs...)
}

// collect takes note of the statuses that were written, and tells of the conditions that
// changed with them.
func (r *reporter) collect() (errs []error) {
	for _, c := range r.statuses.collect() {
		errs = append(errs, c.err)
		if c.written != nil {
			r.overlay.variants[c.written.UID] = c.written
			r.rivals.Wrote(c.written)
			conditionEvents(r.recorder, c.written, c.base.Status.Conditions, c.status.Conditions)
		}
	}
	return errs
}

// tellScaling tells of a write, or of a failure that is new. A missing permission
// and a missing target are told of by their conditions.
func (r *reporter) tellScaling(p *decision.VariantPlan, v *variant, o outcome) {
	if o.err == nil {
		delete(r.failures, p.Key)
		r.metrics.Scaled(p)
		scaleEvent(r.recorder, v.object, p)
		if o.unmarked != nil {
			tell(r.recorder, v.object, corev1.EventTypeWarning, eventVictimsNotMarked, actionScale,
				"pod-deletion-cost not set; Kubernetes picks pods: "+status.First(o.unmarked))
		}
		return
	}
	if apierrors.IsForbidden(o.err) || apierrors.IsNotFound(o.err) || r.failures[p.Key] == o.err.Error() {
		return
	}
	r.failures[p.Key] = o.err.Error()
	tell(r.recorder, v.object, corev1.EventTypeWarning, eventScalingFailed, actionScale, o.err.Error())
}

// tellUndecoded tells of each object that could not be read, once.
func (r *reporter) tellUndecoded(ctx context.Context, seen *observation) error {
	var errs []error
	for _, object := range seen.undecoded {
		key := decision.Key{Namespace: object.Namespace, Name: object.Name}
		err := fmt.Errorf("VariantAutoscaling %s/%s cannot be read: %s", key.Namespace, key.Name, object.Annotations[v1alpha1.AnnotationUndecodable])
		if errs = append(errs, err); r.failures[key] != err.Error() {
			r.failures[key] = err.Error()
			klog.FromContext(ctx).Error(err, "The object is left out; all others are handled")
			tell(r.recorder, object, corev1.EventTypeWarning, v1alpha1.ReasonInvalidConfiguration, actionObserve, err.Error())
		}
	}
	return errors.Join(errs...)
}

// forget drops what is kept of objects that are gone.
func (r *reporter) forget(seen *observation) {
	for _, key := range r.known {
		if seen.variants[key] == nil {
			r.metrics.Gone(key)
			delete(r.failures, key)
			delete(r.net, key)
		}
	}
	r.known = slices.Collect(maps.Keys(seen.variants))
	r.rivals.Keep(r.overlay.forget(seen))
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/controller/metrics"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

// reporter shows plans.
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
		Policy: seen.policy, Priced: seen.priced(),
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
			tell(r.recorder, v.object, corev1.EventTypeNormal, string(f.Reason), actionObserve, status.Brief(sentence.Of(f.Detail)))
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
			delete(r.net, key)
		}
	}
	maps.DeleteFunc(r.failures, func(key decision.Key, _ string) bool {
		return seen.variants[key] == nil && !slices.ContainsFunc(seen.undecoded, func(o *v1alpha1.VariantAutoscaling) bool {
			return key == decision.Key{Namespace: o.Namespace, Name: o.Name}
		})
	})
	r.known = slices.Collect(maps.Keys(seen.variants))
	r.rivals.Keep(r.overlay.forget(seen))
}

// The reasons of events that no condition has.
const (
	eventScaledUp         = "ScaledUp"
	eventScaledDown       = "ScaledDown"
	eventScaledToZero     = "ScaledToZero"
	eventScalingFailed    = "ScalingFailed"
	eventVictimsNotMarked = "VictimsNotMarked"
)

// The actions of events: what the controller was doing.
const (
	actionScale   = "Scale"
	actionObserve = "Observe"
)

// telling are the conditions whose changes are worth an event, with the reasons that
// are a warning. Coming back from one of those is worth a normal event.
var telling = []struct {
	kind     string
	warnings []string
}{
	{v1alpha1.ConditionTargetResolved, []string{v1alpha1.ReasonTargetNotFound, v1alpha1.ReasonTargetNotScalable, string(decision.ReasonTargetForbidden)}},
	{v1alpha1.ConditionMetricsAvailable, []string{string(decision.ReasonMetricsMissing), string(decision.ReasonMetricsStale), v1alpha1.ReasonPrometheusError}},
	{v1alpha1.ConditionCapacityKnown, []string{
		string(decision.ReasonShapeUnknown), string(decision.ReasonCapacityUnknown),
		v1alpha1.ReasonAcceleratorCountDiffers, v1alpha1.ReasonAcceleratorNotSelected,
	}},
	{v1alpha1.ConditionScalingLimited, []string{
		string(decision.ReasonRolloutPaused), string(decision.ReasonNoSlots), string(decision.ReasonStartupOverdue), string(decision.ReasonPreempted),
	}},
	{v1alpha1.ConditionOptimizationReady, []string{
		v1alpha1.ReasonInvalidConfiguration, v1alpha1.ReasonServiceClassUnclear, v1alpha1.ReasonNamespaceConfigUnread, v1alpha1.ReasonModelNameDiffers, v1alpha1.ReasonNameTaken, v1alpha1.ReasonWakesTooLate,
		string(decision.ReasonReplicaDiffers), string(decision.ReasonQueueDead), string(decision.ReasonGatewayCountsPart), string(decision.ReasonReplicasCountPart),
	}},
	{v1alpha1.ConditionConflict, []string{v1alpha1.ReasonAutoscalerOnTarget, v1alpha1.ReasonTargetShared, string(decision.ReasonReplicasOverwritten), v1alpha1.ReasonStatusOverwritten}},
}

// conditionEvents tells of conditions that became bad, or good again. An unchanged
// condition is told of once, whoever leads.
func conditionEvents(recorder events.EventRecorder, object *v1alpha1.VariantAutoscaling, before, after []metav1.Condition) {
	for _, w := range telling {
		was, is := apimeta.FindStatusCondition(before, w.kind), apimeta.FindStatusCondition(after, w.kind)
		if is == nil || was != nil && was.Reason == is.Reason {
			continue
		}
		note := is.Message
		if w.kind == v1alpha1.ConditionScalingLimited {
			// It is an account. Of an error the end may be what matters.
			note = status.Brief(note)
		}
		switch {
		case slices.Contains(w.warnings, is.Reason):
			tell(recorder, object, corev1.EventTypeWarning, is.Reason, actionObserve, note)
		case was != nil && slices.Contains(w.warnings, was.Reason):
			tell(recorder, object, corev1.EventTypeNormal, is.Reason, actionObserve, note)
		}
	}
}

// scaleEvent tells of a write of the target's replicas.
func scaleEvent(recorder events.EventRecorder, object *v1alpha1.VariantAutoscaling, p *decision.VariantPlan) {
	reason := eventScaledUp
	switch {
	case *p.Desired == 0:
		reason = eventScaledToZero
	case *p.Desired < p.Current:
		reason = eventScaledDown
	}
	tell(recorder, object, corev1.EventTypeNormal, reason, actionScale, status.Brief(fmt.Sprintf("replicas from %d to %d: %s", p.Current, *p.Desired, sentence.Of(p.Message))))
}

func tell(recorder events.EventRecorder, object *v1alpha1.VariantAutoscaling, kind, reason, action, note string) {
	recorder.Eventf(object, nil, kind, reason, action, "%s", status.Note(note))
}

// detailed is the verbosity from which the log has the inputs and scores of decisions.
const detailed = 4

// logDetail logs what a round decided by, and what it made of that: one line for each
// model, variant and replica.
func logDetail(ctx context.Context, plan *decision.Plan, seen *observation) {
	log := klog.FromContext(ctx).V(detailed)
	if !log.Enabled() {
		return
	}
	for _, m := range seen.snapshot.Models {
		log.Info("Inputs of a model", "model", m.ID, "namespace", m.Namespace, "furtherNames", len(m.Names), "arrival", number64(m.Arrival), "queue", number64(m.Queue))
		for _, v := range m.Variants {
			name := klog.KRef(m.Namespace, v.Name)
			log.Info("Inputs of a variant", "variant", name, "current", v.Current, "ready", v.Ready, "starting", len(v.Starting), "cost", v.Cost, "startup", v.Startup)
			for _, r := range v.Replicas {
				log.Info("Inputs of a replica", "variant", name, "pod", r.Name, "kvUse", number64(r.KVUse), "waiting", number64(r.Waiting), "running", number64(r.Running),
					"served", number64(r.Served), "ttft", number64(r.TTFT), "itl", number64(r.ITL))
			}
		}
	}
	for _, m := range plan.Models {
		if m.Demand != nil {
			log.Info("Scores of a model", "model", m.ID, "namespace", m.Namespace, "arrival", m.Demand.Arrival, "forecast", m.Demand.Forecast, "backlog", m.Demand.Backlog,
				"triggered", m.Triggered, "sized", m.Sized, "serviceClass", m.Promise.Class)
		}
		for _, p := range m.Variants {
			log.Info("Scores of a variant", "variant", klog.KRef(p.Key.Namespace, p.Key.Name), "servesEach", p.ServesEach, "slots", slotsOf(&p), "desired", desiredOf(&p),
				"reason", p.Reason, "steps", stepsOf(&p))
		}
	}
}

// number64 is the value of a sample, or that it is unknown.
func number64(s decision.Sample) any {
	if !s.Present {
		return "unknown"
	}
	return s.Value
}

func slotsOf(p *decision.VariantPlan) any {
	if p.Slots == nil {
		return "unknown"
	}
	return p.Slots.Count
}

func desiredOf(p *decision.VariantPlan) any {
	if p.Desired == nil {
		return "none"
	}
	return *p.Desired
}

// loggedStep is a step in the words in which it is told.
type loggedStep struct {
	Stage         decision.Stage
	Before, After int
	Reason        decision.Reason
	Detail        string
}

func stepsOf(p *decision.VariantPlan) []loggedStep {
	steps := make([]loggedStep, len(p.Steps))
	for i, s := range p.Steps {
		steps[i] = loggedStep{s.Stage, s.Before, s.After, s.Reason, sentence.Of(s.Detail)}
	}
	return steps
}

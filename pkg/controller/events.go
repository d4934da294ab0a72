package controller

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/status"
)

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
	{v1alpha1.ConditionOptimizationReady, []string{v1alpha1.ReasonInvalidConfiguration, v1alpha1.ReasonServiceClassUnclear, v1alpha1.ReasonNamespaceConfigUnread, v1alpha1.ReasonModelNameDiffers}},
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
	tell(recorder, object, corev1.EventTypeNormal, reason, actionScale, status.Brief(fmt.Sprintf("replicas from %d to %d: %s", p.Current, *p.Desired, p.Message)))
}

func tell(recorder events.EventRecorder, object *v1alpha1.VariantAutoscaling, kind, reason, action, note string) {
	recorder.Eventf(object, nil, kind, reason, action, "%s", status.Note(note))
}

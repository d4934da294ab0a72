package status

import (
	"fmt"
	"slices"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report/sentence"
)

// finding is one condition as the plan shows it; a finding without a status means
// that nothing is known about it, and the condition is not there.
type finding struct {
	status metav1.ConditionStatus
	reason string
	detail string
}

func yes[R ~string](reason R, detail string) finding {
	return finding{metav1.ConditionTrue, string(reason), detail}
}

func no[R ~string](reason R, detail string) finding {
	return finding{metav1.ConditionFalse, string(reason), detail}
}

// Conditions are the conditions that show the plan. Their times of transition
// come from those that stand.
func Conditions(old []metav1.Condition, p *decision.VariantPlan, v *Variant) []metav1.Condition {
	return setConditions(old, v, []claim{
		{v1alpha1.ConditionReady, ready(p, v)},
		{v1alpha1.ConditionTargetResolved, targetResolved(p)},
		{v1alpha1.ConditionMetricsAvailable, metricsAvailable(p)},
		{v1alpha1.ConditionOptimizationReady, optimizationReady(p)},
		{v1alpha1.ConditionCapacityKnown, capacityKnown(p, v)},
		{v1alpha1.ConditionScalingLimited, scalingLimited(old, p)},
		{v1alpha1.ConditionConflict, conflict(p)},
	})
}

// claim is what is found of one condition.
type claim struct {
	kind    string
	finding finding
}

// setConditions are the conditions with what was found of some of them.
func setConditions(old []metav1.Condition, v *Variant, claims []claim) []metav1.Condition {
	conditions := slices.Clone(old)
	for _, c := range claims {
		if c.finding.status == "" {
			apimeta.RemoveStatusCondition(&conditions, c.kind)
			continue
		}
		apimeta.SetStatusCondition(&conditions, metav1.Condition{
			Type:               c.kind,
			Status:             c.finding.status,
			Reason:             c.finding.reason,
			Message:            Note(c.finding.detail),
			ObservedGeneration: v.Generation,
		})
	}
	return conditions
}

// tookPart reports whether the decision looked at the variant.
func tookPart(p *decision.VariantPlan) bool { return len(p.Steps) > 0 }

// tolerable is what a variant can live with once it was decided on: a shape that is
// guessed, room that nobody counts, or a write that failed and is tried again.
var tolerable = []decision.Reason{decision.ReasonShapeUnknown, decision.ReasonCapacityUnknown, v1alpha1.ReasonOptimizationFailed}

// ready is the worst of what keeps the variant from being autoscaled. A replica that serves is
// the first sign that all of it works, so a variant that should serve and does not is not ready.
func ready(p *decision.VariantPlan, v *Variant) finding {
	for _, bad := range []struct {
		fact   decision.Reason
		reason string
	}{
		{v1alpha1.ReasonInvalidConfiguration, v1alpha1.ReasonInvalidConfiguration},
		{v1alpha1.ReasonTargetNotScalable, v1alpha1.ReasonTargetNotScalable},
		{decision.ReasonTargetMissing, v1alpha1.ReasonDeploymentNotFound},
		{decision.ReasonTargetForbidden, string(decision.ReasonTargetForbidden)},
		{v1alpha1.ReasonAutoscalerOnTarget, string(decision.ReasonConflict)},
		{v1alpha1.ReasonTargetShared, string(decision.ReasonConflict)},
		{decision.ReasonReplicasOverwritten, string(decision.ReasonConflict)},
		{decision.ReasonShapeUnknown, string(decision.ReasonShapeUnknown)},
		{decision.ReasonCapacityUnknown, string(decision.ReasonCapacityUnknown)},
		{v1alpha1.ReasonOptimizationFailed, v1alpha1.ReasonOptimizationFailed},
		{v1alpha1.ReasonPrometheusError, v1alpha1.ReasonMetricsUnavailable},
		{decision.ReasonMetricsMissing, v1alpha1.ReasonMetricsUnavailable},
		{decision.ReasonMetricsStale, v1alpha1.ReasonMetricsUnavailable},
	} {
		if f, ok := p.Fact(bad.fact); ok && (!slices.Contains(tolerable, bad.fact) || !tookPart(p)) {
			return no(bad.reason, sentence.Of(f.Detail))
		}
	}
	if tookPart(p) && p.Ready == 0 && p.Current > 0 {
		if f, ok := p.Fact(hindrances...); ok {
			return no(f.Reason, sentence.Of(f.Detail))
		}
		return no(v1alpha1.ReasonNoReplicaServes, serveless(p, v))
	}
	return yes(v1alpha1.ReasonReady, sentence.Of(p.Message))
}

// serveless says where the replicas are of which none serves yet.
func serveless(p *decision.VariantPlan, v *Variant) string {
	text := fmt.Sprintf("none of %d replicas serves yet", p.Current)
	if p.Unschedulable == 0 {
		return text
	}
	text += fmt.Sprintf("; %d without a node", p.Unschedulable)
	if p.Slots != nil {
		text += "; " + room(p, v)
	}
	return text
}

func targetResolved(p *decision.VariantPlan) finding {
	if f, ok := p.Fact(decision.ReasonTargetMissing); ok {
		return no(v1alpha1.ReasonTargetNotFound, sentence.Of(f.Detail))
	}
	if f, ok := p.Fact(v1alpha1.ReasonTargetNotScalable, decision.ReasonTargetForbidden); ok {
		return no(f.Reason, sentence.Of(f.Detail))
	}
	return yes(v1alpha1.ReasonTargetFound, "the scale target exists and may be scaled")
}

func metricsAvailable(p *decision.VariantPlan) finding {
	if f, ok := p.Fact(v1alpha1.ReasonPrometheusError, decision.ReasonMetricsMissing, decision.ReasonMetricsStale, decision.ReasonMetricsPartial); ok {
		return no(f.Reason, sentence.Of(f.Detail))
	}
	if f, ok := p.Fact(decision.ReasonMetricsFound); ok {
		return yes(f.Reason, sentence.Of(f.Detail))
	}
	switch {
	case !tookPart(p):
		return finding{}
	case p.Reason == decision.ReasonWake:
		return yes(v1alpha1.ReasonScaleFromZero, sentence.Of(p.Message))
	}
	return yes(decision.ReasonMetricsFound, "no replica serves yet, so there is nothing to measure")
}

func optimizationReady(p *decision.VariantPlan) finding {
	if f, ok := p.Fact(v1alpha1.ReasonInvalidConfiguration, v1alpha1.ReasonOptimizationFailed); ok {
		return no(f.Reason, sentence.Of(f.Detail))
	}
	doubt := doubtOf(p)
	if !tookPart(p) {
		return no(v1alpha1.ReasonSkippedProcessing, beside(sentence.Of(p.Message), doubt.detail))
	}
	if f, ok := p.Fact(v1alpha1.ReasonPrometheusError, decision.ReasonMetricsMissing, decision.ReasonMetricsStale); ok {
		return no(v1alpha1.ReasonMetricsUnavailable, beside(sentence.Of(f.Detail), doubt.detail))
	}
	if doubt.detail != "" {
		return doubt
	}
	if p.Reason == decision.ReasonWake {
		return yes(v1alpha1.ReasonScaleFromZeroMode, sentence.Of(p.Message))
	}
	if f, ok := p.Fact(v1alpha1.ReasonOptimizationSucceeded, v1alpha1.ReasonSaturationSafetyOverride); ok {
		return yes(f.Reason, sentence.Of(f.Detail))
	}
	why := "decided by saturation and observed rates"
	for _, s := range p.Steps {
		if s.Stage == decision.StageSupply && s.Reason == decision.ReasonSLO {
			why = sentence.Of(s.Detail)
		}
	}
	return yes(v1alpha1.ReasonSaturationOnlyMode, why)
}

// doubtOf is what somebody should correct although it keeps the variant from nothing.
func doubtOf(p *decision.VariantPlan) (doubt finding) {
	for _, reason := range []decision.Reason{
		v1alpha1.ReasonNamespaceConfigUnread, v1alpha1.ReasonServiceClassUnclear, v1alpha1.ReasonModelNameDiffers, v1alpha1.ReasonNameTaken, v1alpha1.ReasonWakesTooLate,
		decision.ReasonReplicaDiffers, decision.ReasonQueueDead, decision.ReasonGatewayCountsPart, decision.ReasonReplicasCountPart,
		v1alpha1.ReasonPriceUnknown,
		v1alpha1.ReasonGatewayNotTrusted, // the last one: strangers can cause it
	} {
		f, ok := p.Fact(reason)
		switch {
		case ok && doubt.detail == "":
			doubt = yes(f.Reason, sentence.Of(f.Detail))
		case ok:
			doubt.detail = beside(doubt.detail, sentence.Of(f.Detail))
		}
	}
	return doubt
}

// beside is a text and what is to be said beside it, if anything.
func beside(text, more string) string {
	if more == "" {
		return text
	}
	return text + "; " + more
}

// capacityKnown says how many more replicas fit, or why nobody knows. What is wrong
// with the variant's own words about its devices stands before the number.
func capacityKnown(p *decision.VariantPlan, v *Variant) finding {
	shape, odd := p.Fact(decision.ReasonShapeUnknown)
	if f, ok := p.Fact(decision.ReasonCapacityUnknown); ok {
		return no(f.Reason, beside(sentence.Of(f.Detail), sentence.Of(shape.Detail)))
	}
	if odd {
		return no(shape.Reason, sentence.Of(shape.Detail))
	}
	if p.Slots == nil {
		return finding{}
	}
	reason, detail := v1alpha1.ReasonCapacityExact, room(p, v)
	if p.Slots.Bound != "" {
		reason = v1alpha1.ReasonCapacityUpperBound
	}
	for _, warning := range []decision.Reason{v1alpha1.ReasonAcceleratorCountDiffers, v1alpha1.ReasonAcceleratorNotSelected} {
		if f, ok := p.Fact(warning); ok {
			reason, detail = string(warning), sentence.Of(f.Detail)+"; "+detail
		}
	}
	return yes(reason, detail)
}

// room says how many more replicas fit: "8xH100: 0 more fit (largest hole 1)".
func room(p *decision.VariantPlan, v *Variant) string {
	text := fmt.Sprintf("%d more fit", p.Slots.Count)
	if p.Slots.Bound != "" {
		text = fmt.Sprintf("up to %d more fit; not modelled: %s", p.Slots.Count, p.Slots.Bound)
	}
	if v.Shape != nil {
		text = fmt.Sprintf("%s: %s", placement.Wants(*v.Shape, v.Other), text)
	}
	if p.Slots.Count == 0 && p.LargestHole != nil {
		text += fmt.Sprintf(" (largest hole %d)", *p.LargestHole)
	}
	return text
}

// limits are the reasons by which something else than the load settled the replicas.
var limits = []decision.Reason{
	decision.ReasonMinReplicas, decision.ReasonMaxReplicas, decision.ReasonStabilized, decision.ReasonRateLimited, decision.ReasonWithinTolerance,
	decision.ReasonRollingUpdate,
}

// hindrances are the facts that keep replicas that are asked for from coming.
var hindrances = []decision.Reason{decision.ReasonRolloutPaused, decision.ReasonNoSlots, decision.ReasonStartupOverdue, decision.ReasonPreempted}

func scalingLimited(old []metav1.Condition, p *decision.VariantPlan) finding {
	if !tookPart(p) {
		return finding{}
	}
	if f, ok := p.Fact(hindrances...); ok {
		return yes(f.Reason, sentence.Of(f.Detail))
	}
	if slices.Contains(limits, p.Reason) {
		return yes(p.Reason, sentence.Of(p.Message))
	}
	if last := apimeta.FindStatusCondition(old, v1alpha1.ConditionScalingLimited); last != nil && p.Reason == decision.ReasonRoundMayNotLower {
		return finding{last.Status, last.Reason, last.Message}
	}
	if p.Has(v1alpha1.ReasonPrometheusError, decision.ReasonMetricsMissing, decision.ReasonMetricsStale) {
		return no(v1alpha1.ReasonNotLimited, "nothing limits the replicas, and without metrics they are held")
	}
	if p.Reason == decision.ReasonBelowThresholds {
		return no(v1alpha1.ReasonNotLimited, "nothing limits the replicas, and no saturation threshold is passed")
	}
	return no(v1alpha1.ReasonNotLimited, "the replicas are what the load needs")
}

func conflict(p *decision.VariantPlan) finding {
	if f, ok := p.Fact(v1alpha1.ReasonAutoscalerOnTarget, v1alpha1.ReasonTargetShared, decision.ReasonReplicasOverwritten, v1alpha1.ReasonStatusOverwritten); ok {
		return yes(f.Reason, sentence.Of(f.Detail))
	}
	if p.Has(decision.ReasonTargetMissing, v1alpha1.ReasonTargetNotScalable, decision.ReasonTargetForbidden) {
		return finding{}
	}
	return no(v1alpha1.ReasonNoConflict, "nothing else decides the replicas of the target")
}

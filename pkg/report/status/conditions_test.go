package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// settled is the plan of a variant that the decision looked at: 2 replicas, and 3
// are wanted.
func settled(change ...func(*decision.VariantPlan)) *decision.VariantPlan {
	p := &decision.VariantPlan{
		Key: decision.Key{Namespace: "n", Name: "v"}, Accelerator: "H100", Current: 2, Ready: 2, Desired: ptr.To(3),
		Slots:  &decision.Slots{Count: 4},
		Steps:  []decision.Step{{Stage: decision.StageRequirement, Before: 2, After: 3, Reason: decision.ReasonSaturated, Detail: decision.Words("80 % full")}},
		Reason: decision.ReasonSaturated, Message: decision.Words("80 % full"),
		Facts: []decision.Fact{{Reason: decision.ReasonMetricsFound, Detail: decision.Words("2 of 2")}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// unsettled is the plan of a variant that took no part, for this reason.
func unsettled(reason decision.Reason, facts ...decision.Reason) *decision.VariantPlan {
	p := &decision.VariantPlan{Key: decision.Key{Namespace: "n", Name: "v"}, Reason: reason, Message: decision.Words("why")}
	for _, f := range facts {
		p.Facts = append(p.Facts, decision.Fact{Reason: f, Detail: decision.Words("which " + string(f))})
	}
	return p
}

func facts(reasons ...decision.Reason) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) {
		p.Facts = nil
		for _, reason := range reasons {
			p.Facts = append(p.Facts, decision.Fact{Reason: reason, Detail: decision.Words("which " + string(reason))})
		}
	}
}

func because(reason decision.Reason) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) { p.Reason = reason }
}

// unserved is where none of the replicas that are asked for serves: one starts, one has no node.
func unserved(p *decision.VariantPlan) { p.Ready, p.Starting, p.Unschedulable = 0, 2, 1 }

func asleep(p *decision.VariantPlan) { p.Current, p.Starting, p.Unschedulable = 0, 0, 0 }

// seventh is a variant whose object is at generation 7.
var seventh = &Variant{Generation: 7}

// Prometheus or an admission webhook may answer with a page of text. A message that is too long
// would keep the whole status from being written.
func TestMessagesOfConditionsAreBounded(t *testing.T) {
	p := settled(facts(decision.ReasonMetricsMissing))
	p.Facts = append(p.Facts, decision.Fact{Reason: v1alpha1.ReasonPrometheusError, Detail: decision.Words(strings.Repeat("store, ", 9000))})
	for _, c := range Conditions(nil, p, &Variant{}) {
		assert.LessOrEqual(t, len(c.Message), mostNote, c.Type)
	}
}

func TestConditions(t *testing.T) {
	// The columns: Ready, TargetResolved, MetricsAvailable, OptimizationReady,
	// CapacityKnown, ScalingLimited, Conflict.
	cases := []struct {
		name string
		plan *decision.VariantPlan
		want string
	}{
		{"all is well", settled(), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NotLimited | NoConflict"},
		{"an upper bound", settled(func(p *decision.VariantPlan) { p.Slots.Bound = "volumes" }), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityUpperBound | NotLimited | NoConflict"},
		{"nodes unknown", settled(func(p *decision.VariantPlan) { p.Slots = nil }, facts(decision.ReasonMetricsFound, decision.ReasonCapacityUnknown)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityUnknown | NotLimited | NoConflict"},
		{"a shape that is guessed", settled(func(p *decision.VariantPlan) { p.Slots = nil }, facts(decision.ReasonMetricsFound, decision.ReasonCapacityUnknown, decision.ReasonShapeUnknown)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityUnknown | NotLimited | NoConflict"},
		{"another number of devices", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonAcceleratorCountDiffers)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | AcceleratorCountDiffers | NotLimited | NoConflict"},
		{"no nodes named", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonAcceleratorNotSelected)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | AcceleratorNotSelected | NotLimited | NoConflict"},
		{"nothing serves yet", settled(facts()), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NotLimited | NoConflict"},
		{"none serves yet", settled(facts(), unserved), "NoReplicaServes | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NotLimited | NoConflict"},
		{"none serves, and none fits", settled(facts(decision.ReasonNoSlots), unserved), "NoSlots | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NoSlots | NoConflict"},
		{"none serves, and the first one is late", settled(facts(decision.ReasonStartupOverdue), unserved), "StartupOverdue | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | StartupOverdue | NoConflict"},
		{"none serves, and the rollout is paused", settled(facts(decision.ReasonRolloutPaused), unserved), "RolloutPaused | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | RolloutPaused | NoConflict"},
		{"none serves, for a more important model", settled(facts(decision.ReasonPreempted), unserved), "Preempted | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | Preempted | NoConflict"},
		{"asleep", settled(facts(), unserved, asleep), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NotLimited | NoConflict"},
		{"wakes", settled(facts(), because(decision.ReasonWake)), "Ready | TargetFound | ScaleFromZero | ScaleFromZeroMode | CapacityExact | NotLimited | NoConflict"},
		{"some metrics missing", settled(facts(decision.ReasonMetricsPartial)), "Ready | TargetFound | MetricsPartial | SaturationOnlyMode | CapacityExact | NotLimited | NoConflict"},
		{"all metrics missing", settled(facts(decision.ReasonMetricsMissing)), "MetricsUnavailable | TargetFound | MetricsMissing | MetricsUnavailable | CapacityExact | NotLimited | NoConflict"},
		{"metrics old", settled(facts(decision.ReasonMetricsStale)), "MetricsUnavailable | TargetFound | MetricsStale | MetricsUnavailable | CapacityExact | NotLimited | NoConflict"},
		{"no metrics because Prometheus fails", settled(facts(decision.ReasonMetricsMissing, v1alpha1.ReasonPrometheusError)), "MetricsUnavailable | TargetFound | PrometheusError | MetricsUnavailable | CapacityExact | NotLimited | NoConflict"},
		{"no room", settled(facts(decision.ReasonMetricsFound, decision.ReasonNoSlots)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | NoSlots | NoConflict"},
		{"stabilised", settled(because(decision.ReasonStabilized)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | Stabilized | NoConflict"},
		{"at its maximum", settled(because(decision.ReasonMaxReplicas)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | MaxReplicas | NoConflict"},
		{"written over again and again", unsettled(decision.ReasonReplicasOverwritten, decision.ReasonReplicasOverwritten), "Conflict | TargetFound | - | SkippedProcessing | - | - | ReplicasOverwritten"},
		{"pods are replaced", settled(because(decision.ReasonRollingUpdate)), "Ready | TargetFound | MetricsFound | SaturationOnlyMode | CapacityExact | RollingUpdate | NoConflict"},
		{"sized for the promise", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonOptimizationSucceeded)), "Ready | TargetFound | MetricsFound | OptimizationSucceeded | CapacityExact | NotLimited | NoConflict"},
		{"saturated in spite of the promise", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonSaturationSafetyOverride)), "Ready | TargetFound | MetricsFound | SaturationSafetyOverride | CapacityExact | NotLimited | NoConflict"},
		{"the promise is not known", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonServiceClassUnclear)), "Ready | TargetFound | MetricsFound | ServiceClassUnclear | CapacityExact | NotLimited | NoConflict"},
		{"the promise is not known, and there are no metrics", settled(facts(decision.ReasonMetricsMissing, v1alpha1.ReasonServiceClassUnclear)), "MetricsUnavailable | TargetFound | MetricsMissing | MetricsUnavailable | CapacityExact | NotLimited | NoConflict"},
		{"the server calls the model otherwise", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonModelNameDiffers)), "Ready | TargetFound | MetricsFound | ModelNameDiffers | CapacityExact | NotLimited | NoConflict"},
		{"a replica is unlike the others", settled(facts(decision.ReasonMetricsFound, decision.ReasonReplicaDiffers)), "Ready | TargetFound | MetricsFound | ReplicaDiffers | CapacityExact | NotLimited | NoConflict"},
		{"a further name is another model's", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonNameTaken)), "Ready | TargetFound | MetricsFound | NameTaken | CapacityExact | NotLimited | NoConflict"},
		{"the gateway counts a part", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonOptimizationSucceeded, decision.ReasonGatewayCountsPart)), "Ready | TargetFound | MetricsFound | GatewayCountsPart | CapacityExact | NotLimited | NoConflict"},
		{"the replicas count a part", settled(facts(decision.ReasonMetricsFound, decision.ReasonReplicasCountPart)), "Ready | TargetFound | MetricsFound | ReplicasCountPart | CapacityExact | NotLimited | NoConflict"},
		{"nobody serves a queue", settled(facts(decision.ReasonMetricsFound, decision.ReasonQueueDead)), "Ready | TargetFound | MetricsFound | QueueDead | CapacityExact | NotLimited | NoConflict"},
		{"the decision failed", unsettled(v1alpha1.ReasonOptimizationFailed, v1alpha1.ReasonOptimizationFailed), "OptimizationFailed | TargetFound | - | OptimizationFailed | - | - | NoConflict"},
		{"writing is forbidden", settled(facts(decision.ReasonMetricsFound, decision.ReasonTargetForbidden)), "TargetForbidden | TargetForbidden | MetricsFound | SaturationOnlyMode | CapacityExact | NotLimited | -"},
		{"writing failed", settled(facts(decision.ReasonMetricsFound, v1alpha1.ReasonOptimizationFailed)), "Ready | TargetFound | MetricsFound | OptimizationFailed | CapacityExact | NotLimited | NoConflict"},
		{"target missing", unsettled(decision.ReasonTargetMissing, decision.ReasonTargetMissing), "DeploymentNotFound | TargetNotFound | - | SkippedProcessing | - | - | -"},
		{"target not scalable", unsettled(decision.ReasonTargetMissing, v1alpha1.ReasonTargetNotScalable), "TargetNotScalable | TargetNotScalable | - | SkippedProcessing | - | - | -"},
		{"target may not be read", unsettled(decision.ReasonTargetForbidden, decision.ReasonTargetForbidden), "TargetForbidden | TargetForbidden | - | SkippedProcessing | - | - | -"},
		{"an autoscaler on the target", unsettled(decision.ReasonConflict, v1alpha1.ReasonAutoscalerOnTarget), "Conflict | TargetFound | - | SkippedProcessing | - | - | AutoscalerOnTarget"},
		{"a shared target", unsettled(decision.ReasonConflict, v1alpha1.ReasonTargetShared), "Conflict | TargetFound | - | SkippedProcessing | - | - | TargetShared"},
		{"held while nobody knows what fits", unsettled(decision.ReasonCapacityUnknown, decision.ReasonCapacityUnknown), "CapacityUnknown | TargetFound | - | SkippedProcessing | CapacityUnknown | - | NoConflict"},
		{"shape unknown", unsettled(decision.ReasonShapeUnknown, decision.ReasonShapeUnknown), "ShapeUnknown | TargetFound | - | SkippedProcessing | ShapeUnknown | - | NoConflict"},
		{"a wrong field", unsettled(decision.ReasonSteady, v1alpha1.ReasonInvalidConfiguration), "InvalidConfiguration | TargetFound | - | InvalidConfiguration | - | - | NoConflict"},
		{"switched off", unsettled(decision.ReasonSteady), "Ready | TargetFound | - | SkippedProcessing | - | - | NoConflict"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			conditions := Conditions(nil, c.plan, seventh)
			assert.Equal(t, c.want, reasonsOf(conditions))
			for _, condition := range conditions {
				assert.EqualValues(t, 7, condition.ObservedGeneration)
				assert.NotEmpty(t, condition.Message, condition.Type)
				assert.True(t, isPublished(condition), "%s %s %s is a published reason", condition.Type, condition.Status, condition.Reason)
			}
		})
	}
}

var kinds = []string{
	v1alpha1.ConditionReady, v1alpha1.ConditionTargetResolved, v1alpha1.ConditionMetricsAvailable, v1alpha1.ConditionOptimizationReady,
	v1alpha1.ConditionCapacityKnown, v1alpha1.ConditionScalingLimited, v1alpha1.ConditionConflict,
}

// Who promised a latency is told why it did not decide.
func TestWhySaturationAloneDecides(t *testing.T) {
	message := func(steps ...decision.Step) string {
		plan := settled(func(p *decision.VariantPlan) { p.Steps = append(p.Steps, steps...) })
		return apimeta.FindStatusCondition(Conditions(nil, plan, seventh), v1alpha1.ConditionOptimizationReady).Message
	}
	const why = "hybrid mode is off: saturation alone decides"
	assert.Equal(t, why, message(decision.Step{Stage: decision.StageSupply, Reason: decision.ReasonSLO, Detail: decision.Words(why)}))
	assert.Equal(t, "decided by saturation and observed rates", message())
}

// What should be corrected is said in any case, whatever else there is to say.
func TestDoubtsInWords(t *testing.T) {
	class, name := decision.Reason(v1alpha1.ReasonServiceClassUnclear), decision.Reason(v1alpha1.ReasonModelNameDiffers)
	cases := []struct {
		name string
		plan *decision.VariantPlan
		want string
	}{
		{"one", settled(facts(decision.ReasonMetricsFound, name)), "ModelNameDiffers: which ModelNameDiffers"},
		{"two", settled(facts(decision.ReasonMetricsFound, name, class)), "ServiceClassUnclear: which ServiceClassUnclear; which ModelNameDiffers"},
		{"beside missing metrics", settled(facts(decision.ReasonMetricsMissing, class)), "MetricsUnavailable: which MetricsMissing; which ServiceClassUnclear"},
		{"where nothing is decided", unsettled(decision.ReasonSteady, class), "SkippedProcessing: why; which ServiceClassUnclear"},
		{"beside a field that cannot be used", unsettled(decision.ReasonSteady, v1alpha1.ReasonInvalidConfiguration, class), "InvalidConfiguration: which InvalidConfiguration"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := optimizationReady(c.plan)
			assert.Equal(t, c.want, f.reason+": "+f.detail)
		})
	}
}

func TestCapacityInWords(t *testing.T) {
	v := &Variant{Shape: &capacity.Shape{Accelerator: "H100", Devices: 8, Pods: 1}}
	cases := []struct {
		name string
		plan *decision.VariantPlan
		want string
	}{
		{"some fit", settled(), "8xH100: 4 more fit"},
		{"none fits", settled(func(p *decision.VariantPlan) { p.Slots.Count, p.LargestHole = 0, ptr.To(1) }), "8xH100: 0 more fit (largest hole 1)"},
		{"an upper bound", settled(func(p *decision.VariantPlan) { p.Slots.Bound = "volumes" }), "8xH100: up to 4 more fit; not modelled: volumes"},
		{"a warning before the number", settled(facts(v1alpha1.ReasonAcceleratorCountDiffers)), "which AcceleratorCountDiffers; 8xH100: 4 more fit"},
		{"two warnings", settled(facts(v1alpha1.ReasonAcceleratorCountDiffers, v1alpha1.ReasonAcceleratorNotSelected)), "which AcceleratorNotSelected; which AcceleratorCountDiffers; 8xH100: 4 more fit"},
		{"unknown twice over", settled(facts(decision.ReasonShapeUnknown, decision.ReasonCapacityUnknown)), "which CapacityUnknown; which ShapeUnknown"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { assert.Equal(t, c.want, capacityKnown(c.plan, v).detail) })
	}
}

// What is said of readiness and of limits fits the numbers beside it.
func TestReadinessAndLimitsInWords(t *testing.T) {
	full := func(p *decision.VariantPlan) { p.Slots.Count, p.LargestHole = 0, ptr.To(1) }
	cases := []struct {
		name, kind string
		plan       *decision.VariantPlan
		want       string
	}{
		{"both start", v1alpha1.ConditionReady, settled(facts(), unserved, func(p *decision.VariantPlan) { p.Unschedulable = 0 }), "none of 2 replicas serves yet"},
		{"one starts and one waits", v1alpha1.ConditionReady, settled(facts(), unserved), "none of 2 replicas serves yet; 1 without a node; 4 more fit"},
		{"none can come", v1alpha1.ConditionReady, settled(facts(), unserved, full), "none of 2 replicas serves yet; 1 without a node; 0 more fit (largest hole 1)"},
		{"some serve", v1alpha1.ConditionReady, settled(), "80 % full"},
		{"held in an outage", v1alpha1.ConditionScalingLimited, settled(facts(decision.ReasonMetricsMissing)), "nothing limits the replicas, and without metrics they are held"},
		{"by the load", v1alpha1.ConditionScalingLimited, settled(), "the replicas are what the load needs"},
		{"below the thresholds", v1alpha1.ConditionScalingLimited, settled(because(decision.ReasonBelowThresholds)), "nothing limits the replicas, and no saturation threshold is passed"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, apimeta.FindStatusCondition(Conditions(nil, c.plan, seventh), c.kind).Message)
		})
	}
}

func reasonsOf(conditions []metav1.Condition) string {
	var reasons []string
	for _, kind := range kinds {
		reason := "-"
		if c := apimeta.FindStatusCondition(conditions, kind); c != nil {
			reason = c.Reason
		}
		reasons = append(reasons, reason)
	}
	return strings.Join(reasons, " | ")
}

func isPublished(c metav1.Condition) bool {
	for _, r := range v1alpha1.Reasons() {
		if r.Condition == c.Type && r.Status == c.Status && r.Name == c.Reason {
			return true
		}
	}
	return false
}

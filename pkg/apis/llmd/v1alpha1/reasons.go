package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types of conditions. Conflict and ScalingLimited are bad news when True, the
// others when False.
const (
	ConditionReady             = "Ready"
	ConditionTargetResolved    = "TargetResolved"
	ConditionMetricsAvailable  = "MetricsAvailable"
	ConditionOptimizationReady = "OptimizationReady"
	ConditionCapacityKnown     = "CapacityKnown"
	ConditionScalingLimited    = "ScalingLimited"
	ConditionConflict          = "Conflict"
)

// The reasons of conditions that are not also reasons of the decision, which are
// constants of package decision. Reasons says what each of both means.
const (
	ReasonReady                    = "Ready"
	ReasonDeploymentNotFound       = "DeploymentNotFound"
	ReasonInvalidConfiguration     = "InvalidConfiguration"
	ReasonMetricsUnavailable       = "MetricsUnavailable"
	ReasonNoReplicaServes          = "NoReplicaServes"
	ReasonTargetFound              = "TargetFound"
	ReasonTargetNotFound           = "TargetNotFound"
	ReasonTargetNotScalable        = "TargetNotScalable"
	ReasonScaleFromZero            = "ScaleFromZero"
	ReasonPrometheusError          = "PrometheusError"
	ReasonOptimizationSucceeded    = "OptimizationSucceeded"
	ReasonSaturationOnlyMode       = "SaturationOnlyMode"
	ReasonSaturationSafetyOverride = "SaturationSafetyOverride"
	ReasonScaleFromZeroMode        = "ScaleFromZeroMode"
	ReasonOptimizationFailed       = "OptimizationFailed"
	ReasonSkippedProcessing        = "SkippedProcessing"
	ReasonServiceClassUnclear      = "ServiceClassUnclear"
	ReasonNamespaceConfigUnread    = "NamespaceConfigUnread"
	ReasonWakesTooLate             = "WakesTooLate"
	ReasonModelNameDiffers         = "ModelNameDiffers"
	ReasonNameTaken                = "NameTaken"
	ReasonGatewayNotTrusted        = "GatewayNotTrusted"
	ReasonCapacityExact            = "CapacityExact"
	ReasonCapacityUpperBound       = "CapacityUpperBound"
	ReasonPriceUnknown             = "PriceUnknown"
	ReasonAcceleratorCountDiffers  = "AcceleratorCountDiffers"
	ReasonAcceleratorNotSelected   = "AcceleratorNotSelected"
	ReasonNotLimited               = "NotLimited"
	ReasonNoConflict               = "NoConflict"
	ReasonAutoscalerOnTarget       = "AutoscalerOnTarget"
	ReasonTargetShared             = "TargetShared"
	ReasonStatusOverwritten        = "StatusOverwritten"
)

// Reason is one reason and what it means.
//
// +kubebuilder:object:generate=false
type Reason struct {
	// Condition is the type of the condition that the reason belongs to; empty for
	// the reasons of status.decision alone.
	Condition string
	// Status is the status of the condition with that reason; empty without one.
	Status metav1.ConditionStatus
	Name   string
	// Meaning is one sentence for people.
	Meaning string
}

// Reasons are all reasons that a VariantAutoscaling object can show. The set is
// closed: clients may rely on the names. Those of package decision are written out,
// because the scheduler links this package and must not link the brain.
func Reasons() []Reason { return append(conditionReasons(), decisionReasons()...) }

// conditionReasons are those of the conditions.
func conditionReasons() []Reason {
	const yes, no = metav1.ConditionTrue, metav1.ConditionFalse
	return []Reason{
		{ConditionReady, yes, ReasonReady, "The variant is being autoscaled: it can be decided on, and a replica serves, or none is asked for."},
		{ConditionReady, no, ReasonDeploymentNotFound, "The scale target does not exist, or is being deleted; work resumes when it appears."},
		{ConditionReady, no, ReasonTargetNotScalable, "The kind of the scale target is unknown to the cluster or has no scale subresource."},
		{ConditionReady, no, "TargetForbidden", "The autoscaler may not read or scale the target; the message names the missing permission."},
		{ConditionReady, no, "Conflict", "Something else decides the replicas of the target, so nothing is written."},
		{ConditionReady, no, "ShapeUnknown", "The accelerator of the variant, or the number of devices per replica, is unknown, or a replica is of several pods, so the replicas are held."},
		{ConditionReady, no, "CapacityUnknown", "How many more replicas fit is not known, so the replicas are held, as limited mode or spec.onUnknownCapacity says."},
		{ConditionReady, no, ReasonMetricsUnavailable, "There are no usable metrics, so the replicas are held."},
		{ConditionReady, no, ReasonNoReplicaServes, "Replicas are asked for and none serves, so nothing can be measured; the message says how many there are and how many have no node."},
		{ConditionReady, no, "NoSlots", "No replica serves, and none fits on the cluster."},
		{ConditionReady, no, "StartupOverdue", "No replica serves, and a starting one was not ready by its deadline."},
		{ConditionReady, no, "RolloutPaused", "No replica serves, and the Deployment was paused before it made its first pods."},
		{ConditionReady, no, "Preempted", "No replica serves, and a more important model, or an equally important one that has less of what it needs, takes the room."},
		{ConditionReady, no, ReasonOptimizationFailed, "The last decision failed, so the replicas are held; the message says why."},
		{ConditionReady, no, ReasonInvalidConfiguration, "The object holds a value that cannot be used; the message names the field."},

		{ConditionTargetResolved, yes, ReasonTargetFound, "The scale target exists and may be scaled."},
		{ConditionTargetResolved, no, ReasonTargetNotFound, "The scale target does not exist, or is being deleted."},
		{ConditionTargetResolved, no, ReasonTargetNotScalable, "The kind of the scale target is unknown to the cluster or has no scale subresource."},
		{ConditionTargetResolved, no, "TargetForbidden", "The autoscaler may not read or scale the target; the message names the missing permission."},

		{ConditionMetricsAvailable, yes, "MetricsFound", "At least 80 % of the serving replicas have fresh metrics."},
		{ConditionMetricsAvailable, yes, ReasonScaleFromZero, "Requests wait at the gateway and nothing serves yet."},
		{ConditionMetricsAvailable, no, "MetricsMissing", "No replica has metrics."},
		{ConditionMetricsAvailable, no, "MetricsPartial", "Some serving replicas have no metrics, or no gateway shows the queue of a model that may sleep, so no replica is removed."},
		{ConditionMetricsAvailable, no, "MetricsStale", "The metrics are too old to act on."},
		{ConditionMetricsAvailable, no, ReasonPrometheusError, "Prometheus did not answer or refused the queries."},

		{ConditionOptimizationReady, yes, ReasonOptimizationSucceeded, "The last decision used the latency model and the service class."},
		{ConditionOptimizationReady, yes, ReasonSaturationOnlyMode, "The last decision used saturation and observed rates alone; where the model has an SLO, the message says why."},
		{ConditionOptimizationReady, yes, ReasonSaturationSafetyOverride, "Saturation asked for more replicas than the latency model, and won."},
		{ConditionOptimizationReady, yes, ReasonServiceClassUnclear, "It is unclear which service class counts for the model, so the last decision used saturation and observed rates alone; the message says why."},
		{ConditionOptimizationReady, yes, ReasonNamespaceConfigUnread, "The ConfigMaps in the namespace could not be read, so those in the manager's namespace count; the message names the missing permission."},
		{ConditionOptimizationReady, yes, ReasonModelNameDiffers, "The model server of the pod template has another model name than spec.modelID, which counts; the message has both names."},
		{ConditionOptimizationReady, yes, ReasonNameTaken, "A name in spec.alsoServes is the modelID of another model of the namespace, or is listed by one, so it is ignored; the message has the name."},
		{ConditionOptimizationReady, yes, ReasonGatewayNotTrusted, "A gateway in another namespace shows the model, and the administrator does not trust it to count for others, so it is ignored; the message names the setting."},
		{ConditionOptimizationReady, yes, ReasonWakesTooLate, "The model may scale to zero, and a replica starts more slowly than the gateway lets a request wait, so the requests that wake the model fail; the message has both times."},
		{ConditionOptimizationReady, yes, "ReplicaDiffers", "A replica takes much longer for the same requests than the others of its variant, or answers with nearly nothing; it counts for what it does, and goes first."},
		{ConditionOptimizationReady, yes, "GatewayCountsPart", "More requests reach the replicas than the gateway counts for the model, so what the replicas show counts; the message has both rates."},
		{ConditionOptimizationReady, yes, "ReplicasCountPart", "The replicas show fewer requests than the gateway counts although none is full, so what the replicas show counts; the message has both rates."},
		{ConditionOptimizationReady, yes, "QueueDead", "Nothing happens to requests that wait or are in service, so they count neither as demand nor, in their replicas, as supply; the message names the replicas."},
		{ConditionOptimizationReady, yes, ReasonPriceUnknown, "The model has several variants, and what a replica of this one costs is not known, so it counts by the memory of its devices; the message says where to set the price."},
		{ConditionOptimizationReady, yes, ReasonScaleFromZeroMode, "The last decision woke the model because requests wait."},
		{ConditionOptimizationReady, no, ReasonOptimizationFailed, "The last decision failed; the message says why."},
		{ConditionOptimizationReady, no, ReasonMetricsUnavailable, "There are no usable metrics, so the replicas are held."},
		{ConditionOptimizationReady, no, ReasonInvalidConfiguration, "The object holds a value that cannot be used; the message names the field."},
		{ConditionOptimizationReady, no, ReasonSkippedProcessing, "The variant took no part in the last decision; the condition Ready says why."},

		{ConditionCapacityKnown, yes, ReasonCapacityExact, "The number of replicas that still fit is exact."},
		{ConditionCapacityKnown, yes, ReasonCapacityUpperBound, "The number of replicas that still fit is an upper bound; the message names what was not modelled."},
		{ConditionCapacityKnown, yes, ReasonAcceleratorCountDiffers, "The pod template asks for another number of devices than spec.acceleratorCount; the template counts."},
		{ConditionCapacityKnown, yes, ReasonAcceleratorNotSelected, "The pod template does not select nodes of its accelerator, so a node autoscaler cannot tell which nodes to add."},
		{ConditionCapacityKnown, no, "CapacityUnknown", "How many more replicas fit is not known; the message names the missing permission, or what is not modelled."},
		{ConditionCapacityKnown, no, "ShapeUnknown", "What one replica takes is unknown."},

		{ConditionScalingLimited, no, ReasonNotLimited, "Nothing but the load settled the replicas, or they are held without metrics; the message says which."},
		{ConditionScalingLimited, yes, "NoSlots", "Fewer replicas fit on the cluster than the load needs."},
		{ConditionScalingLimited, yes, "StartupOverdue", "A starting replica was not ready by its deadline, so it no longer counts as supply."},
		{ConditionScalingLimited, yes, "RolloutPaused", "The Deployment was paused before it made its first pods, so none come."},
		{ConditionScalingLimited, yes, "Preempted", "A more important model needs the room, or an equally important one that has less of what it needs, so this variant loses replicas; the message names that model."},
		{ConditionScalingLimited, yes, "MinReplicas", "minReplicas keeps more replicas than the load needs."},
		{ConditionScalingLimited, yes, "MaxReplicas", "maxReplicas allows fewer replicas than the load needs."},
		{ConditionScalingLimited, yes, "Stabilized", "A recommendation within the stabilization window keeps the replicas."},
		{ConditionScalingLimited, yes, "RateLimited", "A policy of spec.behavior, or the limit of growth, slows the change."},
		{ConditionScalingLimited, yes, "WithinTolerance", "The change is smaller than the tolerance in spec.behavior."},
		{ConditionScalingLimited, yes, "RollingUpdate", "No replica is removed during a rolling update."},

		{ConditionConflict, no, ReasonNoConflict, "Nothing else decides the replicas of the target."},
		{ConditionConflict, yes, ReasonAutoscalerOnTarget, "A HorizontalPodAutoscaler or a ScaledObject has the same target."},
		{ConditionConflict, yes, ReasonTargetShared, "Another VariantAutoscaling object has the same target."},
		{ConditionConflict, yes, "ReplicasOverwritten", "Something else keeps changing the replicas; the message names it and the time until which nothing is written."},
		{ConditionConflict, yes, ReasonStatusOverwritten, "Another manager handles the same object and keeps writing its status, so it is written every five minutes at most."},
	}
}

// decisionReasons are those of status.decision alone.
func decisionReasons() []Reason {
	return []Reason{
		{"", "", "Steady", "The load needs the replicas that there are."},
		{"", "", "BelowThresholds", "More requests are expected than the replicas are taken to serve, but saturation alone decides, and no threshold is passed yet."},
		{"", "", "RateUnknown", "What one replica serves was not seen yet, so replicas are added one at a time."},
		{"", "", "Saturated", "A saturation threshold was passed, and replicas are added."},
		{"", "", "StartingSuffices", "A saturation threshold was passed, and the replicas that are starting will carry the load."},
		{"", "", "SpareCapacity", "Fewer replicas carry the load."},
		{"", "", "Borrowed", "Nothing is known of the variant yet, so the figures of another variant of its model are used."},
		{"", "", "CheaperVariant", "The variant replaces replicas of another one: it serves the same load for so much less that its start-up pays off, or another model needs the room of those replicas."},
		{"", "", "SLO", "The SLO needs more replicas than saturation asks for."},
		{"", "", "Backlog", "Requests wait or waited lately, or replicas just began to serve, so no replica is removed yet."},
		{"", "", "Idle", "The model had no requests for its retention period, so it may scale to zero."},
		{"", "", "BackingOff", "The variant's replicas recently found no node or did not start, so other variants are preferred until the back-off ends."},
		{"", "", "Wake", "Requests wait and nothing serves."},
		{"", "", "KeepOne", "A model keeps one replica on its cheapest variant that fits."},
		{"", "", "RoundMayNotLower", "Only a full round may remove replicas."},
		{"", "", "Preempted", "A more important model lacks room, or an equally important one has less of what it needs, so this model loses a replica."},
		{"", "", "ReplicasChanged", "Something else changed the replicas once; none is removed within the scale-down window."},
		{"", "", "TargetMissing", "The scale target does not exist or cannot be scaled; the condition TargetResolved says which."},
	}
}

package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VariantAutoscaling is one variant of a model: one way to serve it, on one type
// and number of accelerators, behind one scale target.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=variantautoscalings,singular=variantautoscaling,shortName=va,scope=Namespaced
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.modelID`,description="The model that clients ask for"
// +kubebuilder:printcolumn:name="VariantID",type=string,JSONPath=`.status.currentAlloc.variantID`,description="The variant: model, accelerator and number of accelerators"
// +kubebuilder:printcolumn:name="Accelerator",type=string,JSONPath=`.status.currentAlloc.accelerator`,description="The accelerator that was resolved for the variant"
// +kubebuilder:printcolumn:name="CurrentReplicas",type=integer,JSONPath=`.status.currentAlloc.numReplicas`,description="The replicas that the scale target asks for; not all of them may serve yet"
// +kubebuilder:printcolumn:name="Optimized",type=integer,JSONPath=`.status.desiredOptimizedAlloc.numReplicas`,description="The replicas that the last decision wants"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="Whether the variant is being autoscaled"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Actuation",type=string,priority=1,JSONPath=`.spec.actuation`,description="What is done with decisions: Scale, Metric or Off"
// +kubebuilder:printcolumn:name="Min",type=integer,priority=1,JSONPath=`.spec.minReplicas`,description="The least number of replicas"
// +kubebuilder:printcolumn:name="Max",type=integer,priority=1,JSONPath=`.spec.maxReplicas`,description="The greatest number of replicas"
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.decision.reason`,description="The reason of the last decision"
type VariantAutoscaling struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants.
	// +required
	Spec VariantAutoscalingSpec `json:"spec"`
	// Status is what the autoscaler saw and decided.
	// +optional
	Status VariantAutoscalingStatus `json:"status,omitempty"`
}

// VariantAutoscalingList is a list of VariantAutoscaling objects.
//
// +kubebuilder:object:root=true
type VariantAutoscalingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []VariantAutoscaling `json:"items"`
}

// VariantAutoscalingSpec describes one variant and what the autoscaler may do
// with it.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas is above maxReplicas: lower minReplicas or raise maxReplicas",fieldPath=".minReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.variantID) || !has(self.accelerator) || !has(self.acceleratorCount) || (self.variantID.startsWith(self.modelID + '-' + self.accelerator + '-') && self.variantID.substring(size(self.modelID) + size(self.accelerator) + 2).matches('^[1-9][0-9]{0,9}$') && int(self.variantID.substring(size(self.modelID) + size(self.accelerator) + 2)) == self.acceleratorCount)",messageExpression="'variantID must be ' + self.modelID + '-' + self.accelerator + '- and the acceleratorCount: correct it, or leave variantID out'",message="variantID must be {modelID}-{accelerator}-{acceleratorCount}: correct it, or leave variantID out",fieldPath=".variantID"
type VariantAutoscalingSpec struct {
	// ScaleTargetRef names the object whose replicas serve the variant. It is in the
	// same namespace and of any kind with a scale subresource.
	// +required
	ScaleTargetRef ScaleTargetReference `json:"scaleTargetRef"`

	// ModelID is the name by which clients ask for the model.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="modelID must have no control characters and no invisible ones"
	ModelID string `json:"modelID"`

	// AlsoServes are further names by which clients ask the same servers: LoRA adapters and
	// aliases. What a gateway counts under them counts for the model, and a request for one
	// of them wakes it. A name that is a modelID of the namespace stays that model's, and one
	// that two models of the namespace list counts for neither. The adapters that vLLM shows in
	// its metrics are found without this list, once they were asked for.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[^\p{Cc}\p{Cf}\p{Zl}\p{Zp}]*$`
	AlsoServes []string `json:"alsoServes,omitempty"`

	// VariantID names the variant in the form
	// {modelID}-{accelerator}-{acceleratorCount}.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.matches('^.+-[A-Za-z0-9_-]+-[1-9][0-9]*$')",message="variantID must have the form {modelID}-{accelerator}-{acceleratorCount}, such as meta/llama-3.1-8b-H100-1: correct it, or leave variantID out"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="variantID must have no control characters and no invisible ones"
	VariantID string `json:"variantID,omitempty"`

	// Accelerator is the type of device that one replica runs on, such as H100.
	// Without it the type is taken from the label
	// inference.optimization/acceleratorName, the selectors of the pod template, or
	// the nodes that its pods run on, in that order.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="accelerator must have no control characters and no invisible ones"
	Accelerator string `json:"accelerator,omitempty"`

	// AcceleratorCount is the number of devices of one replica. It is used in the
	// variant's ID, and for kinds without a known pod template. Otherwise the device
	// request of the template counts.
	// +optional
	// +kubebuilder:validation:Minimum=1
	AcceleratorCount *int32 `json:"acceleratorCount,omitempty"`

	// VariantCost is the price of one replica per hour, a decimal number in quotes.
	// All variants of a cluster are priced in the same currency. Without it the
	// price is the unit cost of the accelerator (ConfigMap accelerator-unit-costs) times
	// the devices of a replica. Where there is none a replica counts by the memory of its
	// devices, 10.0 for 80 GiB, and 10.0 without devices.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?$')",message="variantCost must be a decimal number without sign, exponent or unit, such as \"4.5\""
	VariantCost string `json:"variantCost,omitempty"`

	// SLOClassRef names the service class (ConfigMap service-classes-config) whose
	// priority and SLO (targets for TTFT and ITL) count. Without it, the most important
	// class that lists the model counts.
	// +optional
	SLOClassRef *SLOClassReference `json:"sloClassRef,omitempty"`

	// VariantProfile is the measured latency model of one replica.
	// +optional
	VariantProfile *VariantProfile `json:"variantProfile,omitempty"`

	// MinReplicas is the least number of replicas.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the greatest number of replicas. Without it there is no bound.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// Behavior limits the speed of changes, in the words of the
	// HorizontalPodAutoscaler.
	// +optional
	Behavior *Behavior `json:"behavior,omitempty"`

	// Actuation says what is done with a decision: Scale writes the target's scale
	// subresource; Metric only publishes the metric, for a HorizontalPodAutoscaler
	// or KEDA to act on; Off only computes and shows. In YAML "Off" needs its quotes.
	// +optional
	// +kubebuilder:default=Scale
	Actuation Actuation `json:"actuation,omitempty"`

	// OnUnknownCapacity says what happens while it is unknown whether more replicas
	// fit, because nodes or pods may not be read or the devices are not modelled.
	// Allow decides as if they fit. Hold keeps the replicas as they are, within
	// maxReplicas, because a removed replica could not come back. Without it, replicas
	// are held in limited mode and where the shape of a replica is unknown, and
	// allowed otherwise.
	// +optional
	OnUnknownCapacity UnknownCapacity `json:"onUnknownCapacity,omitempty"`

	// Victims says who chooses the replicas to remove when a Deployment or ReplicaSet
	// is scaled down. Packing (the default) writes
	// controller.kubernetes.io/pod-deletion-cost on the pods whose devices open the
	// most room, just before the scale is lowered. Kubernetes leaves the choice to the
	// ReplicaSet controller.
	// +optional
	// +kubebuilder:default=Packing
	Victims VictimChoice `json:"victims,omitempty"`
}

// UnknownCapacity says what happens while nobody knows whether more replicas fit.
//
// +kubebuilder:validation:Enum=Allow;Hold
type UnknownCapacity string

// The answers to unknown capacity.
const (
	UnknownCapacityAllow UnknownCapacity = "Allow"
	UnknownCapacityHold  UnknownCapacity = "Hold"
)

// VictimChoice says who chooses the replicas that go.
//
// +kubebuilder:validation:Enum=Packing;Kubernetes
type VictimChoice string

// The ways to choose.
const (
	VictimsPacking    VictimChoice = "Packing"
	VictimsKubernetes VictimChoice = "Kubernetes"
)

// ScaleTargetReference names an object with a scale subresource.
type ScaleTargetReference struct {
	// APIVersion is the group and version of the target.
	// +optional
	// +kubebuilder:default="apps/v1"
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?$|^$')",message="apiVersion must be a group and a version, such as apps/v1 or leaderworkerset.x-k8s.io/v1"
	APIVersion string `json:"apiVersion,omitempty"`

	// Kind is the kind of the target.
	// +optional
	// +kubebuilder:default=Deployment
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z][A-Za-z0-9]*$|^$')",message="kind must be the kind of the target as its manifest writes it, such as Deployment or LeaderWorkerSet"
	Kind string `json:"kind,omitempty"`

	// Name is the name of the target.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="the target's name must have no control characters and no invisible ones"
	Name string `json:"name"`
}

// SLOClassReference names a service class and the entry in it.
type SLOClassReference struct {
	// Name is the name of the service class; case does not matter.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="the name of the service class must have no control characters and no invisible ones"
	Name string `json:"name"`

	// Key is the entry of the class that counts. Without it the entry for the model
	// is meant.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Cc}\\\\p{Cf}\\\\p{Zl}\\\\p{Zp}]')",message="the key must have no control characters and no invisible ones"
	Key string `json:"key,omitempty"`
}

// VariantProfile is the published latency model of one replica: with n requests
// in service a token takes alpha + beta*n milliseconds, and the prefill of prompts
// of i tokens takes gamma + delta*i*n milliseconds.
type VariantProfile struct {
	// PerfParms are the parameters of the model.
	// +optional
	PerfParms *PerfParms `json:"perfParms,omitempty"`

	// MaxBatchSize is the largest number of requests in service at once.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxBatchSize *int32 `json:"maxBatchSize,omitempty"`
}

// PerfParms are the parameters of the latency model.
type PerfParms struct {
	// DecodeParms describe the time per further token.
	// +optional
	DecodeParms *DecodeParms `json:"decodeParms,omitempty"`
	// PrefillParms describe the time to the first token.
	// +optional
	PrefillParms *PrefillParms `json:"prefillParms,omitempty"`
}

// DecodeParms describe the time per further token, alpha + beta*n.
//
// +kubebuilder:validation:MinProperties=1
type DecodeParms struct {
	// Alpha is the time of a batch without requests, in milliseconds.
	// +optional
	Alpha ParameterMilliseconds `json:"alpha,omitempty"`
	// Beta is the time that each request adds, in milliseconds.
	// +optional
	Beta ParameterMilliseconds `json:"beta,omitempty"`
}

// PrefillParms describe the time to the first token, gamma + delta*i*n.
//
// +kubebuilder:validation:MinProperties=1
type PrefillParms struct {
	// Gamma is the time of a prefill without tokens, in milliseconds.
	// +optional
	Gamma ParameterMilliseconds `json:"gamma,omitempty"`
	// Delta is the time that each prompt token of each request adds, in
	// milliseconds.
	// +optional
	Delta ParameterMilliseconds `json:"delta,omitempty"`
}

// ParameterMilliseconds is a number of milliseconds in quotes.
//
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?$')",message="a profile parameter must be a number of milliseconds in quotes, without sign or unit, such as \"7.47\" or \"3.4e-4\""
type ParameterMilliseconds string

// Actuation says what is done with a decision.
//
// +kubebuilder:validation:Enum=Scale;Metric;Off
type Actuation string

// The ways to act on a decision.
const (
	// ActuationScale writes the target's scale subresource.
	ActuationScale Actuation = "Scale"
	// ActuationMetric only publishes the metric.
	ActuationMetric Actuation = "Metric"
	// ActuationOff only computes and shows.
	ActuationOff Actuation = "Off"
)

// Behavior limits the speed of changes in each direction.
type Behavior struct {
	// ScaleUp limits how replicas are added. Without it there is no window, no
	// policy and no tolerance.
	// +optional
	ScaleUp *ScalingRules `json:"scaleUp,omitempty"`
	// ScaleDown limits how replicas are removed. Without it there is no policy and
	// no tolerance, and the window is 300 seconds. In hybrid mode it is 300 seconds only
	// for loads that are likely to jump back within it, and one start-up for others.
	// +optional
	ScaleDown *ScalingRules `json:"scaleDown,omitempty"`
}

// ScalingRules limit the speed of changes in one direction.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tolerance) || (string(self.tolerance).matches('^([0-9]{1,9}([.][0-9]{0,9})?|[.][0-9]{1,9})[num]?$') && isQuantity(string(self.tolerance)) && quantity(string(self.tolerance)).compareTo(quantity('0')) >= 0 && quantity(string(self.tolerance)).isLessThan(quantity('1')))",message="tolerance must be a fraction of at least 0 and below 1, without an exponent: write \"0.1\" for ten per cent",fieldPath=".tolerance"
type ScalingRules struct {
	// StabilizationWindowSeconds is how far back recommendations count: the
	// smallest of them on the way up, the largest on the way down.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=3600
	StabilizationWindowSeconds *int32 `json:"stabilizationWindowSeconds,omitempty"`

	// SelectPolicy says which policy counts when several apply: the one that allows
	// the largest change (Max, the default), the smallest (Min), or no change in
	// this direction at all (Disabled).
	// +optional
	SelectPolicy *SelectPolicy `json:"selectPolicy,omitempty"`

	// Policies bound the change within a period. Without any, scaling down has no bound,
	// and scaling up has that of the manager (WVA_GROWTH_LIMIT_REPLICAS).
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Policies []ScalingPolicy `json:"policies,omitempty"`

	// Tolerance is the relative difference between the current and the wanted
	// replicas up to which nothing changes, a fraction in quotes, such as "0.1".
	// +optional
	Tolerance *resource.Quantity `json:"tolerance,omitempty"`
}

// SelectPolicy says which of several policies counts.
//
// +kubebuilder:validation:Enum=Max;Min;Disabled
type SelectPolicy string

// The ways to select a policy.
const (
	SelectMax      SelectPolicy = "Max"
	SelectMin      SelectPolicy = "Min"
	SelectDisabled SelectPolicy = "Disabled"
)

// ScalingPolicy bounds the change within a period.
type ScalingPolicy struct {
	// Type says whether Value counts replicas (Pods) or per cent of the replicas at
	// the start of the period (Percent).
	// +required
	Type ScalingPolicyType `json:"type"`
	// Value is the largest change within the period.
	// +required
	// +kubebuilder:validation:Minimum=1
	Value int32 `json:"value"`
	// PeriodSeconds is the length of the period.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1800
	PeriodSeconds int32 `json:"periodSeconds"`
}

// ScalingPolicyType says what the value of a policy counts.
//
// +kubebuilder:validation:Enum=Pods;Percent
type ScalingPolicyType string

// The types of policies.
const (
	PodsPolicy    ScalingPolicyType = "Pods"
	PercentPolicy ScalingPolicyType = "Percent"
)

// Older reports whether a was there before b; of two from the same second the first
// by name was. It settles which of two objects a shared target belongs to.
func Older(a, b *VariantAutoscaling) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}

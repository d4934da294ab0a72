package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VariantAutoscalingStatus is what the autoscaler saw and decided. Load and
// latencies are not here: they live in Prometheus. A field that is absent is
// unknown, never zero.
type VariantAutoscalingStatus struct {
	// CurrentAlloc is what the scale target of the variant asks for now.
	// +optional
	CurrentAlloc *CurrentAlloc `json:"currentAlloc,omitempty"`
	// DesiredOptimizedAlloc is what the last decision wants.
	// +optional
	DesiredOptimizedAlloc *DesiredAlloc `json:"desiredOptimizedAlloc,omitempty"`
	// Actuation says what became of the last decision.
	// +optional
	Actuation *ActuationStatus `json:"actuation,omitempty"`
	// Placement says what one replica takes and how many find a place.
	// +optional
	Placement *Placement `json:"placement,omitempty"`
	// Decision says how the last decision came about.
	// +optional
	Decision *Decision `json:"decision,omitempty"`
	// ServiceClass is the name of the service class whose SLO counts for the model:
	// that of spec.sloClassRef, else the most important one that lists the model.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	ServiceClass string `json:"serviceClass,omitempty"`
	// Conditions are Ready, TargetResolved, MetricsAvailable, OptimizationReady,
	// CapacityKnown, ScalingLimited and Conflict.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// CurrentAlloc is what the scale target of the variant asks for now.
type CurrentAlloc struct {
	// VariantID is the resolved {modelID}-{accelerator}-{acceleratorCount}.
	// +optional
	VariantID string `json:"variantID,omitempty"`
	// Accelerator is the resolved type of device.
	// +optional
	Accelerator string `json:"accelerator,omitempty"`
	// NumReplicas is the number of replicas that the target asks for (its spec.replicas).
	// Some of them may not serve yet: status.placement.pending counts those.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumReplicas *int32 `json:"numReplicas,omitempty"`
}

// DesiredAlloc is what a decision wants.
type DesiredAlloc struct {
	// LastRunTime is the time of the decision.
	// +optional
	LastRunTime *metav1.Time `json:"lastRunTime,omitempty"`
	// Accelerator is the type of device of the replicas.
	// +optional
	Accelerator string `json:"accelerator,omitempty"`
	// NumReplicas is the number of replicas.
	// +optional
	// +kubebuilder:validation:Minimum=0
	NumReplicas *int32 `json:"numReplicas,omitempty"`
}

// ActuationStatus says what became of a decision.
type ActuationStatus struct {
	// Applied says that the target asks for the replicas that the last decision
	// wants.
	// +optional
	Applied bool `json:"applied"`
	// LastScaleTime is when the autoscaler last changed the target's replicas.
	// +optional
	LastScaleTime *metav1.Time `json:"lastScaleTime,omitempty"`
}

// Placement says what one replica takes and how many find a place.
type Placement struct {
	// ObservedGeneration is the generation of the object that the shape was resolved
	// for. The scheduler uses the shape while it is the object's.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Shape is what one replica takes, as it was resolved.
	// +optional
	Shape *Shape `json:"shape,omitempty"`
	// Slots is how many more replicas fit on the cluster, beside those that were asked
	// for before the round. What the round itself adds, to this variant and to others,
	// is taken off in the next round. Every full round writes it. The rounds between
	// write it only when something else changes too, when it becomes zero or more than
	// zero, or when it moved by more than a quarter. The metric wva_variant_free_slots
	// is always that of the last round.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Slots *int32 `json:"slots,omitempty"`
	// SlotsBound names the constraint that was not modelled and makes Slots an
	// upper bound. Without it Slots is exact.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	SlotsBound string `json:"slotsBound,omitempty"`
	// Pending is the number of replicas that exist and do not serve yet.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Pending *int32 `json:"pending,omitempty"`
	// Unschedulable is the number of pending replicas for which the scheduler found no
	// node. Replicas that it has not tried yet, or that are gated, only count as
	// pending.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unschedulable *int32 `json:"unschedulable,omitempty"`
	// Unplaced is the number of wanted replicas that do not fit now.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Unplaced *int32 `json:"unplaced,omitempty"`
}

// Shape is what one replica takes.
type Shape struct {
	// Accelerator is the type of every device of the replica.
	// +optional
	Accelerator string `json:"accelerator,omitempty"`
	// DeviceMemoryGiB is the memory of each device, where the variant asks for one.
	// +optional
	// +kubebuilder:validation:Minimum=0
	DeviceMemoryGiB int32 `json:"deviceMemoryGiB,omitempty"`
	// Form is the way that the devices are built in (SXM4, PCIE, NVL, ...), where the
	// variant asks for one.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Form string `json:"form,omitempty"`
	// Devices is the number of devices per pod.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Devices *int32 `json:"devices,omitempty"`
	// Pods is the number of pods per replica.
	// +optional
	// +kubebuilder:validation:Minimum=1
	Pods *int32 `json:"pods,omitempty"`
	// CPU is the CPU request per pod.
	// +optional
	CPU *resource.Quantity `json:"cpu,omitempty"`
	// Memory is the memory request per pod.
	// +optional
	Memory *resource.Quantity `json:"memory,omitempty"`
}

// Decision says how a decision came about.
type Decision struct {
	// Reason is the reason of the step that settled the number of replicas.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Message says the same for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Steps are what each stage made of the number of replicas, in order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Steps []DecisionStep `json:"steps,omitempty"`
	// Binds says what the number of replicas comes from, as the stage of the decision and
	// its detail: the last limit that changed it, such as maxReplicas, the room on the
	// cluster or spec.behavior, else the demand. Without the field the demand is not known,
	// or the variant took no part in the decision.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Binds string `json:"binds,omitempty"`
	// Alternative is the next best mix of replicas of the model's variants, with its price; where
	// a price is not known, with its devices.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Alternative string `json:"alternative,omitempty"`
}

// DecisionStep is what one stage made of the number of replicas.
type DecisionStep struct {
	// Stage is the name of the stage.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Stage string `json:"stage"`
	// Before is the number that the stage was given.
	// +required
	Before int32 `json:"before"`
	// After is the number that it passed on.
	// +required
	After int32 `json:"after"`
	// Reason is one of a closed set of reasons.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
	// Detail says with numbers why.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Detail string `json:"detail,omitempty"`
}

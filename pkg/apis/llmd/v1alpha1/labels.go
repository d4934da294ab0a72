package v1alpha1

// Labels of a VariantAutoscaling object.
const (
	// LabelAcceleratorName gives the accelerator of a variant whose spec does not
	// name one.
	LabelAcceleratorName = "inference.optimization/acceleratorName"
	// LabelControllerInstance gives the object to the controller instance of that
	// name alone; a controller without an instance skips it.
	LabelControllerInstance = "wva.llmd.ai/controller-instance"
)

// Annotations of a VariantAutoscaling object.
const (
	// AnnotationUndecodable says what of an object could not be read. Decode sets it; it is
	// never stored.
	AnnotationUndecodable = "wva.llmd.ai/undecodable"
)

// Labels of namespaces.
const (
	// LabelPlacePods with the value "true" lets the admission webhook fill in where the
	// pods of variants in the namespace go.
	LabelPlacePods = "wva.llmd.ai/place-pods"
	// LabelConfigEnabled with the value "true" has the ConfigMaps of the namespace read
	// before there is a variant in it.
	LabelConfigEnabled = "wva.llmd.ai/config-enabled"
)

// Annotations of namespaces.
const (
	// AnnotationExclude with the value "true" leaves the namespace alone: neither its objects
	// nor its ConfigMaps count.
	AnnotationExclude = "wva.llmd.ai/exclude"
)

// Annotations of pod templates.
const (
	// AnnotationAccelerators lists the accelerators that pods without a variant, or of
	// one whose accelerator nothing names, accept, in the order in which they prefer
	// them, such as "H100,A100-80GB".
	AnnotationAccelerators = "wva.llmd.ai/accelerators"
)

// Annotations of pods.
const (
	// AnnotationVictim marks a pod that the autoscaler chose to go in a scale-down. Its
	// value is the controller.kubernetes.io/pod-deletion-cost that the pod had before,
	// empty for none, which comes back when the scale-down is called off.
	AnnotationVictim = "wva.llmd.ai/victim"
)

// Taints of nodes.
const (
	// TaintScheduler keeps the pods of other schedulers off the nodes that the
	// scheduler named by its value owns.
	TaintScheduler = "wva.llmd.ai/scheduler"
)

// FieldManager is the name under which the autoscaler writes the replicas of scale
// targets, as metadata.managedFields shows it.
const FieldManager = "workload-variant-autoscaler"

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

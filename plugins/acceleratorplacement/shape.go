package acceleratorplacement

import (
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// observed is the shape that the autoscaler resolved, while it is the object's: both
// programs mean the same by it. Nil is none.
func observed(v *v1alpha1.VariantAutoscaling) *v1alpha1.Shape {
	p := v.Status.Placement
	if p == nil || p.Shape == nil || p.Shape.Accelerator == "" || p.ObservedGeneration != v.Generation {
		return nil
	}
	return p.Shape
}

// nameWanted is the accelerator that a variant without a resolved shape goes to: what
// the object or its pods say, else what the autoscaler last found. The unknown name
// means that nothing says, an error that several are named.
func nameWanted(names *inventory.Names, v *v1alpha1.VariantAutoscaling, spec *corev1.PodSpec) (inventory.Name, error) {
	var template *corev1.PodTemplateSpec
	if spec != nil {
		template = &corev1.PodTemplateSpec{Spec: *spec}
	}
	name, _, err := names.Resolve(v.Spec.Accelerator, v.Labels[v1alpha1.LabelAcceleratorName], template, nil)
	if now := v.Status.CurrentAlloc; err == nil && !name.Known() && now != nil {
		name = inventory.Normalize(now.Accelerator)
	}
	return name, err
}

// shapeSaid is what one replica of a variant takes, as far as its object alone says.
// It reports false when that is too little to expect it anywhere.
func shapeSaid(names *inventory.Names, v *v1alpha1.VariantAutoscaling) (capacity.Shape, bool) {
	if s := observed(v); s != nil {
		return shapeIn(s)
	}
	if v.Spec.AcceleratorCount == nil || *v.Spec.AcceleratorCount < 1 {
		return capacity.Shape{}, false
	}
	name, err := nameWanted(names, v, nil)
	if err != nil {
		return capacity.Shape{}, false
	}
	d := name.Device()
	return capacity.Shape{
		Accelerator: d.Accelerator, MemoryGiB: d.MemoryGiB, Form: d.Form, Devices: int(*v.Spec.AcceleratorCount), Pods: 1,
	}, d.Accelerator != ""
}

func shapeIn(s *v1alpha1.Shape) (capacity.Shape, bool) {
	device := s.Device()
	shape := capacity.Shape{Accelerator: device.Accelerator, MemoryGiB: device.MemoryGiB, Form: device.Form, Pods: 1}
	if s.Devices == nil || *s.Devices < 1 {
		return shape, false
	}
	shape.Devices = int(*s.Devices)
	if s.Pods != nil {
		shape.Pods = int(*s.Pods)
	}
	if s.CPU != nil {
		shape.MilliCPU = s.CPU.MilliValue()
	}
	if s.Memory != nil {
		shape.MemoryBytes = s.Memory.Value()
	}
	return shape, true
}

package v1alpha1

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// The kind of a scale target that names none.
const (
	DefaultTargetAPIVersion = "apps/v1"
	DefaultTargetKind       = "Deployment"
)

// DefaultCost is what a replica counts of which nobody gave a price, and nobody knows the devices.
const DefaultCost capacity.Cost = 10

// GroupVersionKind is the kind of the target, with the defaults of what the
// reference leaves out. The error names the field.
func (r ScaleTargetReference) GroupVersionKind() (schema.GroupVersionKind, error) {
	apiVersion, kind := r.APIVersion, r.Kind
	if apiVersion == "" {
		apiVersion = DefaultTargetAPIVersion
	}
	if kind == "" {
		kind = DefaultTargetKind
	}
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("spec.scaleTargetRef.apiVersion is %q: write a group and a version, such as apps/v1", apiVersion)
	}
	return version.WithKind(kind), nil
}

// Device is the device of the shape.
func (s *Shape) Device() capacity.Device {
	return capacity.Device{Accelerator: capacity.Accelerator(s.Accelerator), MemoryGiB: int(s.DeviceMemoryGiB), Form: s.Form}
}

// ResolvedVariantID is the variant ID of the spec, or the one that follows from the
// accelerator and its count as they were resolved. It is empty while those are
// unknown.
func (s *VariantAutoscalingSpec) ResolvedVariantID(accelerator capacity.Accelerator, count int) string {
	if s.VariantID != "" {
		return s.VariantID
	}
	if accelerator == "" || count < 1 {
		return ""
	}
	return fmt.Sprintf("%s-%s-%d", s.ModelID, accelerator, count)
}

// Cost is the price of one replica per hour that the spec gives; false means that
// it gives none. The error names the field.
func (s *VariantAutoscalingSpec) Cost() (capacity.Cost, bool, error) {
	if s.VariantCost == "" {
		return 0, false, nil
	}
	cost, err := decimal(s.VariantCost)
	if err != nil {
		return 0, false, fmt.Errorf("spec.variantCost %w", err)
	}
	return capacity.Cost(cost), true, nil
}

// decimal reads a number that a user wrote in quotes.
func decimal(text string) (float64, error) {
	value, err := strconv.ParseFloat(text, 64)
	if err != nil || value < 0 || math.IsInf(value, 0) || math.IsNaN(value) {
		return 0, fmt.Errorf("is %q: write a number of at least 0", text)
	}
	return value, nil
}

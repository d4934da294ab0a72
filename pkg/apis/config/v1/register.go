package v1

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/config"
)

// SchemeGroupVersion is the version of the scheduler's configuration in which the
// arguments stand.
var SchemeGroupVersion = schema.GroupVersion{Group: config.GroupName, Version: "v1"}

var (
	// The generated conversions register themselves here.
	localSchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, addDefaultingFuncs)
	// AddToScheme adds the types, their defaults and their conversions to a scheme.
	// They convert to the internal types of package config, which are added apart.
	AddToScheme = localSchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(SchemeGroupVersion, &AcceleratorPlacementArgs{})
	return nil
}

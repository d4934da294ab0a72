package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of LlamaStackDistribution.
const GroupName = "llamastack.io"

// GroupVersion is the group and version of every type in this package.
var GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

// Kind and Resource name LlamaStackDistribution in a request.
const (
	Kind     = "LlamaStackDistribution"
	Resource = "llamastackdistributions"
)

var (
	// SchemeBuilder collects the functions that add the types to a scheme.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)
	// AddToScheme adds the types of this package to a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &LlamaStackDistribution{}, &LlamaStackDistributionList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

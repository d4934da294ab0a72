// Package v1alpha1 is the first form of LlamaStackDistribution, llamastack.io/v1alpha1: a
// server that is configured through its environment or a ConfigMap.
//
// It decides which objects of this version are valid, and converts them to the hub,
// v1alpha2, and back, without losing anything: ConvertToHub and ConvertFromHub. What one
// version has and the other has no field for travels in an annotation. A conversion must
// never fail, never change its source, and never read anything but the object itself;
// of the metadata it changes those annotations alone.
//
// Read LlamaStackDistributionSpec first, then ConvertToHub; which annotation carries
// what says v1alpha2.V1alpha1Extras for one direction and hubExtras for the other.
//
// +kubebuilder:object:generate=true
// +groupName=llamastack.io
package v1alpha1

// Package v1alpha2 is the declarative form of LlamaStackDistribution,
// llamastack.io/v1alpha2: a Llama Stack server, the providers behind it and how it runs.
// It is the version that is stored, and the hub that the other version is converted to.
//
// It decides which objects are valid. The schema says what it can; package
// llamastack/validation says what a schema cannot see, because fields such as
// spec.providers.inference hold one object or a list of them, and are plain JSON in
// these types. It must never read anything but the object itself, and never change
// what a user wrote: a form that was written is the form that is stored.
//
// Read LlamaStackDistributionSpec first, then reading.go, which turns the JSON of a
// spec into Provider, Model and Exposure, and carried.go, which reads what an object
// of v1alpha1 has and this version has no field for.
//
// +kubebuilder:object:generate=true
// +groupName=llamastack.io
package v1alpha2

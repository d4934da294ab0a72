// Package v1alpha1 is the user's API, llmd.ai/v1alpha1: one VariantAutoscaling
// object per variant of a model.
//
// It decides which objects are valid, and says so in schema rules that the API
// server enforces with a message that names what to change. It accepts every
// single-variant form that was ever published: fields may be added, but no rule
// may refuse an object that such a form allowed. It must never read anything but
// the object itself.
//
// Read VariantAutoscalingSpec and VariantAutoscalingStatus first. The methods in
// reading.go and profile.go turn a spec into the words of package capacity;
// reasons.go is the closed set of condition types and reasons.
//
// +kubebuilder:object:generate=true
// +groupName=llmd.ai
package v1alpha1

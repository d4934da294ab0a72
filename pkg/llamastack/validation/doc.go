// Package validation says what is wrong with a LlamaStackDistribution that the schema of
// its CRD cannot see: providers are plain JSON there, names of distributions are known to
// the operator alone, and an object of v1alpha1 is checked by the schema of v1alpha1 and
// stored as v1alpha2.
//
// It decides what the admission webhook refuses and what it warns of. All errors are told
// at once, each with the field that it is about; an update is not refused for what was
// wrong before. It must never look at anything but the objects: whether a Secret exists is
// the operator's business.
//
// Read Create and Update first, then Warnings.
package validation

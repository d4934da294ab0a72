//go:build race

package v1alpha1_test

// objects is the number of random objects that a property is tried on. The race detector
// makes ten times as long of each, and no two of them share anything.
const objects = 20_000

//go:build !race

package v1alpha1_test

// objects is the number of random objects that a property is tried on.
const objects = 100_000

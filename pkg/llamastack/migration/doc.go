// Package migration turns a LlamaStackDistribution that is written as v1alpha1 into text
// that is written as v1alpha2, and says which field went where.
//
// It decides what a user keeps in a file: the conversion is the one of the API, without the
// notes that only a way back needs, and without what a cluster added. It refuses what
// v1alpha2 has no valid form for. It must never read or write a file.
//
// Read Migrate first.
package migration

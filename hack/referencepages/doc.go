// Referencepages writes the reference pages that follow from the program: the settings
// of the manager, the reasons and conditions of a VariantAutoscaling, and the fields of
// the custom resources. It must never know a setting, a reason or a field that the
// program does not have: every page is made of the same table that the program reads.
//
//	go run ./hack/referencepages DIRECTORY
package main

// Package settle decides what of a change is asked for now: it lets idle models sleep, slows down what
// goes, keeps in mind what a scale-down left, and chooses which replicas go.
//
// It never raises a count but for a model that must keep one replica.
//
// Read ApplyBehavior first.
package settle

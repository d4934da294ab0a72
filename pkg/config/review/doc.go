// Package review says what is wrong with a VariantAutoscaling object that its schema cannot
// see: what contradicts another object, or names what is not there.
//
// It decides what is refused and what is only worth a warning. It must never read a
// cluster or a file: callers hand in the other objects that it compares with. What they do
// not know is no fault. The controller says the same, in the same words, of objects that
// are stored.
//
// Read Object first.
package review

// Package review says what is wrong with a VariantAutoscaling object that its schema cannot
// see: what contradicts another object, or names what is not there.
//
// It decides what is refused and what is only worth a warning. It must never read a
// cluster or a file: callers bring what surrounds the object, and what they do not know
// is not complained of. The controller says the same of objects that are stored, in the
// same words.
//
// Read Object first.
package review

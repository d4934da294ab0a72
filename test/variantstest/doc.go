// Package variantstest serves VariantAutoscaling objects to a scheduler under test. It
// is imported by tests alone.
package variantstest

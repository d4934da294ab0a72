// Package status renders the plan of a variant as the status of its VariantAutoscaling
// object: Render is the whole of it, Conditions are its conditions, and Same says whether
// another one is worth a write. Rivals follow whether another manager writes it, too.
//
// It computes no reason of its own: what a condition says is a fact, a step or the message of
// the plan. It reads no clock and no cluster; the times of transition are set by apimachinery.
// What its numbers mean says package decision, and what its reasons mean package v1alpha1.
package status

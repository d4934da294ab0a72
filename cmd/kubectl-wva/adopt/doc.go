// Package adopt is "kubectl wva adopt": it writes VariantAutoscaling objects for Deployments
// that serve models today, and changes nothing of those.
//
// What it cannot read it does not guess: it says what is missing and which flag gives it.
// Read servedModel (which model a container serves) and Adoption first.
package adopt

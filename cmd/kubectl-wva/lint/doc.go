// Package lint is "kubectl wva lint": it says what is wrong with manifests of
// VariantAutoscaling objects before anybody applies them.
//
// It reads files and touches no cluster. What is wrong says package review of the
// configuration, which the controller asks too; what surrounds an object is what the
// files hold.
package lint

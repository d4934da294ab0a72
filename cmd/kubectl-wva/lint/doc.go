// Package lint is "kubectl wva lint": it says what is wrong with manifests of
// VariantAutoscaling objects before anybody applies them.
//
// It reads files and touches no cluster. Package review of the configuration says what is
// wrong; the controller asks it too. An object is compared with the other objects of the
// files.
package lint

// Package lint is "kubectl wva lint": it says what is wrong with manifests of
// VariantAutoscaling objects before anybody applies them.
//
// It reads files and touches no cluster. The CRD says which values an object may have, by the API
// server's own code and so in its words; package review of the configuration says what else is
// wrong, and the controller asks it too. An object is compared with the other objects of the files.
package lint

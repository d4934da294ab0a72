// Package chart proves that the Helm chart installs what manifests/ has, under the
// names of a release, that every value of it has an effect, and that the oldest and the
// newest Kubernetes take what it renders.
//
// It renders with Helm's own engine and knows nothing of the programs. It is a
// module of its own, because Helm asks for other versions of Kubernetes' libraries
// than the programs are built with. Read render first.
package chart

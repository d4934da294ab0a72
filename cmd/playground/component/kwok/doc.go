// Package kwok plays the kubelet of every node of the playground with KWOK's controllers, and says in
// stages.yaml what such a kubelet does.
//
// It is a package of its own because it links no part of Kubernetes' control plane, so that its tests run
// with the race detector. Read Run first, then stages.yaml.
package kwok

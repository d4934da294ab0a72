// Package hpa compares what this project says of Kubernetes' HorizontalPodAutoscaler with
// Kubernetes' own controller, which runs in virtual time on random fleets: pkg/replay/horizontal
// must give the same replicas in every round, and pkg/decision the same limits for the same
// policies.
//
// It is a module of its own, so that no other test links k8s.io/kubernetes. It must never
// reckon itself what is right: the controller does.
//
// Read world first.
package hpa

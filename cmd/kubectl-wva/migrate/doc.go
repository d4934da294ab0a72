// Package migrate is "kubectl wva migrate": it turns objects of earlier forms into the
// present ones.
//
// What becomes of an object is decided in pkg/migration; here are the files, the cluster, and what
// needs Kubernetes' own types: skeletons of Deployments, prices and servers of Llama Stack.
//
// A cluster changes only in apply.go: after a backup, which can be put back.
package migrate

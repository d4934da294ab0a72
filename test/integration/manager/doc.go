// Package manager proves the manager on a real cluster: bin/manager with the
// permissions of manifests/rbac, the real controllers and scheduler, pods that KWOK
// plays, and the real Prometheus engine with samples of a model server's making. It
// holds nothing but tests. They share one cluster and two managers; every test works
// in a namespace of its own.
package manager

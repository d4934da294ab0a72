// Package component holds the parts of a cluster that the playground runs as children of itself: etcd, the
// Kubernetes control plane, the KWOK node stand-ins and Prometheus, each the original code as a library.
//
// One program with a hidden first argument instead of six programs, because they share nearly all of their
// code: a second link of Kubernetes costs minutes, and a user needs one file. One process per part instead of
// one process for all, because the parts claim process-wide things (logging, signal handlers, metric
// registries) and because a test must be able to kill one of them.
//
// The package decides nothing about a cluster: ports, certificates, flags and order belong to
// pkg/localcluster, which starts these roles and links none of what they run. A role must never start a process of its
// own: the parent-death signal that ends it would not reach that one.
//
// Read Run first, then one role.
package component

// Package manager measures bin/manager as a whole, not the decision alone.
//
// etcd, the API server, bin/scheduler, bin/manager and Prometheus are real processes. What
// a cluster of the wanted size holds (nodes, Deployments, pods, VariantAutoscalings) is
// written as plain objects, and no controller runs, so that what is measured is not theirs;
// the series of all pods come from an exporter in this process (exporter.go), which
// Prometheus scrapes. All loads change, the manager starts anew, and Deployments are
// deleted.
//
// A round is measured from outside (round.go): from the first query, which passes a proxy
// in front of Prometheus, to the last write that the API server's audit log has before the
// next round reads. Nothing is asked of the manager but its metrics page.
//
// Read measure in bench.go first.
package manager

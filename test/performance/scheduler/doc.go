// Package scheduler measures what our scheduler costs beside the stock one: pods bound per
// second on the same fake cluster, for pods with and without devices.
//
// One of the two arms is one process of bin/scheduler with the two profiles of
// manifests/scheduler-one-process, default-scheduler and variant-scheduler; the other
// is the stock kube-scheduler that bin/playground carries, as it comes. Both run against the same etcd
// and API server, one at a time, in pairs whose order alternates, so that drift of the
// machine falls on both. Pods are made while no scheduler runs; what counts is the time
// from the first binding to the last one as a watch of the API server shows them.
// Neither client has a rate limit that could be reached.
//
// It decides nothing and must leave nothing behind: the cluster is a child that ends
// with it. Read measure first, then bench.run (one run) and compare (what the runs say).
package scheduler

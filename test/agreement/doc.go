// Package agreement proves that the autoscaler and the scheduler mean the same: what
// package inventory counts from API objects is what Kubernetes' own scheduling
// framework, with the shipped profile, then places.
//
// It decides nothing. Its tests make random clusters, numbered, each from a seed of
// its own, and hand the same objects to both sides: to inventory.Read, and to the
// scheduler's cache as its informers would. A failure names its cluster, and
//
//	go test ./test/agreement -args -cluster=17
//
// plays that one again. Nothing here may stand in for a part of either side.
//
// Read play first (one cluster, replica after replica), then newCluster and
// newDemand (what there is and what is asked for) and realScheduler.
package agreement

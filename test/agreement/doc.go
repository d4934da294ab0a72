// Package agreement proves that the autoscaler and the scheduler mean the same: what
// package inventory counts from API objects is what Kubernetes' own scheduling
// framework, with the shipped profile, then places.
//
// It decides nothing. Its test makes random clusters, numbered, each from a seed of its
// own, and hands the same objects to both sides: to the inventory, as the
// manager's cache keeps them, and to the scheduler's cache and queue, as its informers
// would. A failure names its cluster, and
//
//	go test ./test/agreement -args -cluster=17
//
// plays it again. Nothing here may stand in for a part of either side.
//
// Read play first (one cluster, replica after replica), then newCluster and
// newDemand (what there is and what is asked for) and realScheduler.
package agreement

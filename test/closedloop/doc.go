// Package closedloop asks whether the decision is right where its answers come back
// to it: a fluid world in virtual time, in which decided replicas start, serve, hang
// and fail to find a node, and an oracle that knows what the load truly needs.
//
// The oracle was written from the documented contract alone, without the decision's
// code: it knows the exported types, the published formulas of package serving, and
// what the world's replicas truly serve. A scenario is drawn from bytes: from those
// that a fuzzer changes, or from those of a seed. First there are faults and a load
// that changes, prices, promises, versions and minima that change and come back; then the
// load is constant and the data are good for an hour, and for as long as the slowest
// start-ups need; then the world is watched a while longer. Where pods go is for a scheduler to
// say, which may spread them, or refuse them for what nobody is told, and for quotas. In some worlds a replica
// flaps or shows no metrics until the end, and in some the requests come by chance.
//
// What is asserted, and with which tolerance, stands with each check: in round.go
// what must hold in every round, in settled.go what must hold at the end. Read
// Scenario first, then world and traffic, then those two.
//
// A failing seed tells its story and is replayed, and made smaller, by
//
//	go test ./test/closedloop -run TestSeeds -seed 17 -shrink
package closedloop

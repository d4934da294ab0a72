// Package decision is the whole brain of the autoscaler: Decide takes a Snapshot
// of all facts at one instant, the Policy that the users allow and the Memory of
// earlier rounds, and returns a Plan and the next Memory.
//
// It is a pure function. It has no clock (the snapshot carries the time), no input
// or output, no logger, no globals and depends on no map order: the same inputs
// give the same plan, byte for byte. It must never lower a replica count on
// missing, stale or half-covered data, and never read unknown as zero.
//
// Read Snapshot and Plan first, then Decide, whose stages stand in order, each in
// a file of its own.
//
// # What survives a round
//
// Memory is a value: one struct per variant and one per model. Each of their fields says
// what a new leader, which starts with the zero Memory, does without it.
package decision

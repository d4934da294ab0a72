// Package placement answers which shapes fit on which nodes, how many more of them,
// what a placement costs the replicas still expected, and which replicas to remove or
// move so that the most useful room opens. The autoscaler's limits and the scheduler
// plugin's verdicts are this code, on the same facts.
//
// It is pure and imports the standard library only. It never guesses. A request that it
// cannot count (unknown accelerator, a replica of several pods) is an error, and counts
// neither as zero nor as unlimited. An answer that is only a bound says so. Numbers come
// from outside and may be absurd: nothing overflows, and no work grows with them.
//
// Read Cluster, Node and Request first, then Verdict (one node), Slots (one request on
// all nodes) and Trial (one placement after the other); then Table, which has the
// formula of what room is worth, and Score (which of the nodes that fit), Victims
// (which replicas go), Moves (which could go elsewhere) and Fragmentation.
package placement

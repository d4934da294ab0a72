// Package placement answers which shapes fit on which nodes, how many more of
// them, and what a placement costs the others. The autoscaler's limits and the
// scheduler plugin's verdicts are this code, on the same facts.
//
// It is pure and imports the standard library only. It never guesses: a request
// that it cannot count (unknown accelerator, a replica of several pods) is an
// error, which is neither none nor endless.
//
// Read Cluster and Request first, then Verdict (one node), Slots (all nodes) and
// Score (which of the nodes that fit).
package placement

// Package placement answers which shapes fit on which nodes, how many more of
// them, and what a placement costs the others. The autoscaler's limits and the
// scheduler plugin's verdicts are this code, on the same facts.
//
// It is pure and imports the standard library only. Read Cluster and Request
// first, then Slots.
package placement

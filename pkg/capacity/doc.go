// Package capacity holds the types that the whole capacity model uses: accelerators,
// the shape that one replica takes, and the units of rate, cost, tokens and latency.
//
// It decides nothing and knows nothing of Kubernetes. Read Shape first; then
// package placement (which shapes fit where), package serving (what one replica
// serves) and package allocation (which replicas to buy for a load).
package capacity

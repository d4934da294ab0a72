// Package feasibility says whether several numbers of replicas fit on a cluster
// together. Tests ask it whether what the autoscaler offers or buys can be placed at all. The
// autoscaler itself places replicas one after the other.
//
// It is pure and never guesses: an answer that is not proven says so.
//
// Read Of first, then problem (the question without what does not matter), exceeded (the
// bounds), and search.
package feasibility

// Package feasibility says whether several numbers of replicas fit on a cluster
// together. The bound of a replay is built on it: no policy buys what does not fit. The
// autoscaler itself places replicas one after the other and does not ask.
//
// It is pure and never guesses: an answer that is not proven says so.
//
// Read Of first, then problem (the question without what does not matter), exceeded (the
// bounds), and search.
package feasibility

// Package demand finds what is asked of a model: what arrives now and when a new replica could serve,
// how long the requests are, and how many wait. It holds the counts of the gateway and of the replicas
// against each other, as one of them may be a part of the other.
//
// A rate is never made of how many replicas there are.
//
// Read Demand first.
package demand

// Package serving answers what one replica of a variant can serve: its latency
// at a batch, its throughput, and the largest rate within an SLO.
//
// It is pure: no clock, no input or output, no logger. Read Profile first, the
// latency model of one replica; Curve is the same thing learned from what a
// running replica was seen to do.
package serving

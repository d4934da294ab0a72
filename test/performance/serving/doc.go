// Package serving measures how well the latency model predicts a real server: the
// mean TTFT and the mean time per output token of constant-rate runs. A prediction
// uses the rate of completed requests, the mean lengths and how long the run took,
// and nothing else of a row. The batch is derived, not read.
//
// Each form is fitted on half of the token shapes (the black fields of a
// checkerboard over the two length axes) and judged on the other half, both ways
// round, and fitted and judged on all. No row is left out, overloaded ones least.
//
// How long a run took counts because a run begins with an empty server: the rate is
// that of completed requests, and near saturation it differs from the offered one by
// what was still in service at the end; an overloaded run has no steady state at all.
// The length is the row's duration_s; a row that does not say it is taken for a run of
// 6 minutes, and the output says so. All forms are told the same. -window gives every
// row another length, and -window 0 judges every row as a steady state.
//
// Our form is fitted as the autoscaler fits it, which does not look at what is judged
// here. The published forms get more than that: they start from what it makes of the points and from their
// published constants, and are then searched for the least sum of the two errors that
// they are judged by.
package serving

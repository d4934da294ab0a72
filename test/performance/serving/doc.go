// Command serving measures how well the latency model predicts a real server: the
// mean TTFT and the mean time per output token of constant-rate runs, from the rate
// of completed requests and the mean lengths alone. The batch is derived, not read.
//
// Each form is fitted on half of the token shapes (the black fields of a
// checkerboard over the two length axes) and judged on the other half, both ways
// round, and fitted and judged on all. No row is left out, overloaded ones least.
//
// All forms are told that a run began with an empty server and how long it took
// (-window): the rate is that of completed requests, and near saturation it differs
// from the offered one by what was still in service at the end. -window 0 judges
// every row as a steady state instead.
package main

// Command serving measures how well the latency model predicts a real server: the
// mean TTFT and the mean time per output token of constant-rate runs, from the rate
// of completed requests and the mean lengths alone. The batch is derived, not read.
//
// Each form is fitted on half of the token shapes (the black fields of a
// checkerboard over the two length axes) and judged on the other half, both ways
// round, and fitted and judged on all. No row is left out, overloaded ones least.
package main

// Package tokenform is the published latency form of three parameters. The benchmarks
// judge it beside ours, and the published sample of an optimiser is written in it; the
// autoscaler reads nothing that has it.
package tokenform

// Package capacity is the command "kubectl wva capacity": what holds the devices of a
// cluster, how many more replicas of each variant fit, and what keeps them from
// fitting.
//
// It reads the cluster as it is now and asks package placement, as the autoscaler and
// the scheduler do. It must never write, never show as zero what it could not read,
// and never fail for one thing that it may not read as long as it can show the rest.
//
// Read NewCommand first, then read (the cluster into facts) and assemble (facts into
// the report, without input or output).
package capacity

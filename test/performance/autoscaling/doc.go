// Package autoscaling replays real traces through scaling policies and judges ours, at its
// defaults, against all others at their best: each other policy is tried with many settings
// on every trace, and what ours costs is divided by what the front of all of them costs at
// the same attainment.
//
// With the first start-up time of a trial a front is looked for from end to end; with another one,
// and in trials that no claim is about, around what ours attain. The best single setting
// over all traces is that for the first start-up time.
//
// A quick run, for daily work, judges hybrid mode alone on few of the traces with one
// start-up time, and looks for no setting that is the best over all of them.
//
// Hybrid mode is compared with what docs/benchmarks.md says of it, too. A run fails where it does
// worse than that, and not where the page says that an aim is missed.
//
// Read the trials in trial.go first, then claim.go and documented.go, and package sweep, which makes
// the runs.
package autoscaling

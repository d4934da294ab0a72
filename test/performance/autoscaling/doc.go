// Command autoscaling replays real traces through scaling policies, ours and the
// published rules of others, with the scenario that "kubectl wva replay" has built in,
// and judges whether any of the others does better: cheaper at the same attainment, or
// better at the same price.
//
// Read the trials in trial.go first, then judge.go.
package main

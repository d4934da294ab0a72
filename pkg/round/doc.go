// Package round says when rounds of decisions happen and what they are told of time: which
// round is due when (Clock), which models sleep and when to look at what waits for them
// (Sleepers), how long replicas took to start (Startups), and which scrapes a rate or a mean
// covers (Covered, Window).
//
// The manager, the replay and the closed loop all ask it, so that what is tried in virtual
// time is what happens in a cluster.
//
// All of it are values without a clock: the time is an argument. It reads nothing, starts
// nothing, and gives the same answer to the same calls. It decides no number of replicas.
//
// Read Clock first.
package round

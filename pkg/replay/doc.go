// Package replay tries scaling policies on a load in virtual time: the autoscaler's own
// decision and the published rules of others, each in the same simulated world with the
// same requests, and measures what each of them cost and kept.
//
// A policy sees the world only as late and as coarse as a real one does: through scrapes
// of the replicas' metrics. It must never look into the future; Bound alone does, and is
// no policy but a measure.
//
// It has no clock and no input or output: the same scenario, requests and seed give the
// same result on every machine.
//
// Read Scenario and Policy first, then Run, then Result and Recording.
package replay

// Package simulation is a world of model servers in virtual time. Engine is the
// queueing engine of one model server: a first-come-first-served queue,
// continuous batching, chunked prefill, and a KV cache that limits both. The
// same engine serves the replay, which jumps from event to event, and the
// emulated model servers, which follow the wall clock. Group is several of them behind
// one address.
//
// World is what the replay runs in: engines as replicas that wait for a node, start,
// serve and drain, on nodes that fill and empty as the scheduler plugin's score would
// have it, behind a router that sends each request to the least loaded. Nodes may be
// cordoned, drained, fail, be reclaimed with notice and come back, and show it as a
// cluster does. Everything random in it comes from one seed.
//
// It has no clock and no input or output: every call gives the time, as a time.Duration
// since an epoch that the caller chooses, and the same calls give the same events. It must never decide how many servers there are.
//
// Read Engine first, then Event and State; then WorldOptions, World, and Stage for
// the life of a replica and NodeEvent for that of a node. How long an iteration takes comes from serving.Profile, and
// where a replica goes from placement.Table.
package simulation

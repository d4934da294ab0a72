// Package simulation is a world of model servers in virtual time. Engine is the
// queueing engine of one model server: a first-come-first-served queue,
// continuous batching, chunked prefill, and a KV cache that limits both. The
// same engine serves the replay, which jumps from event to event, and the
// emulated model servers, which follow the wall clock.
//
// It has no clock and no input or output: every call says what time it is, as a
// time.Duration since an epoch of the caller's choice, and the same calls give
// the same events. It must never decide how many servers there are.
//
// Read Engine first, then Event and State. How long an iteration takes comes
// from serving.Profile.
package simulation

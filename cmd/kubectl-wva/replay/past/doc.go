// Package past makes a replay of what the servers of a model counted: the trace of their
// requests, and the latency profiles of their variants.
//
// What it asks Prometheus for, nobody else does: LookBack has the queries, for whose servers and
// engines package adapters/prometheus has the words. It learns with package capacity/serving, as
// the manager does. It writes no file and prints nothing: what it has to say are notes.
//
// Start with Read, then see LookBack, Past.Stream and Past.Profiles.
package past

// Package past makes a replay of what the servers of a model counted: the trace of their
// requests, and the latency profiles of their variants.
//
// It asks Prometheus with the queries of package adapters/prometheus, and learns with package
// capacity/serving, as the manager does. It writes no file and prints nothing: what it has to
// say are notes.
//
// Start with Read, then see Past.Stream and Past.Profiles.
package past

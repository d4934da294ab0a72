// Package workload says which requests arrive when: recorded request traces and
// synthetic arrivals, both as a Stream in order of arrival.
//
// It reads from an io.Reader that the caller opened, holds at most one second of
// a trace in memory, and takes every random number from an explicit seed, so the
// same input gives the same requests. It must never open a file, look at a clock
// or decide how requests are served.
//
// Read Request and Stream first; then Azure (a recorded trace), Synthetic (a
// Poisson process), and Rate and Limit, which wrap another stream.
package workload

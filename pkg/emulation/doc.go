// Package emulation puts simulated model servers on the wall clock and behind
// HTTP, with what a real serving stack has around them: a Server answers and
// exposes metrics as vLLM does, a Fleet runs one Server for every running pod, a
// Router spreads the requests of its models over the ready replicas, and Traffic
// plays a workload through the router and measures what the client sees.
//
// All latencies come from the engine of package simulation; nothing here adds to
// them but what the machine takes to carry the bytes. The package must never
// decide how many replicas there are or where they run, and it stands in for
// nothing but devices: connections, queues, metrics and pods are real.
//
// Read Server first, then Fleet, Router and Traffic.
package emulation

// Package load proves on a real cluster how load becomes replicas, also when things go
// wrong: one decision adds all replicas that a step of the load needs, and one removes them.
// No replica is removed because metrics are missing, pods are replaced or somebody else
// changed the number.
// The controllers, bin/scheduler, bin/manager and Prometheus are real; KWOK plays the
// nodes, and package emulation the model servers behind real HTTP, with the router in
// front of them and clients that wait for their answers. It holds nothing but tests,
// which share one cluster and run side by side, each with a site of its own: a
// namespace, model servers, a router, and room on the nodes.
package load

// Package placement proves on a real cluster that the autoscaler and the scheduler count
// the same free room: no replica is asked for that does not fit, every replica that fits is
// placed, and removed replicas leave whole nodes free. The controllers, bin/scheduler and bin/manager are
// real, KWOK plays the nodes and their pods, and the real Prometheus engine answers
// for model servers whose samples are made up. It holds nothing but tests, which share
// one cluster and run side by side, each on nodes of a type of its own.
package placement

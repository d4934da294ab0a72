// Package status is "kubectl wva status": all variants at a glance, one line for each, from
// the status of their objects.
//
// It works out nothing: what a line says is what the autoscaler wrote. The latencies and
// the load, which no status holds, come from Prometheus. Read Row.
package status

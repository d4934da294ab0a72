// Package victoriametrics asks a real VictoriaMetrics what the manager asks Prometheus, and compares
// the readings. It is empty but for tests.
package victoriametrics

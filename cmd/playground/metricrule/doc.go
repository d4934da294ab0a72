// Package metricrule reads the rules of the Prometheus adapter for external metrics, as far as ours need them, and
// makes the PromQL that the adapter would make. It must never accept what it does not understand. Read Rule first.
package metricrule

// Package prometheustest serves the real Prometheus storage, query engine and HTTP
// API in a test, fed with samples by hand. It decides nothing and is imported by
// tests alone.
package prometheustest

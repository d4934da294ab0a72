// Package prometheus reads what model servers and gateways expose, as a
// Prometheus server has scraped it, and turns it into samples.
//
// A reading is a constant number of PromQL queries for the whole cluster, each
// grouped by pod or by model and all evaluated at the same instant; it never asks
// per model. It decides nothing: no threshold, no default for what is missing. A
// value that is absent, NaN or infinite is an absent sample and never zero, and
// every sample carries the time of the scrape that it rests on.
//
// Read Options first, then the queries in query.go, then Client.Read.
package prometheus

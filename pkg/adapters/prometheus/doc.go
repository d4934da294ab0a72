// Package prometheus reads what model servers and gateways expose, as a
// Prometheus server has scraped it, and turns it into samples.
//
// A reading is 22 PromQL queries for the whole cluster, however many models there are, and
// one more for pods whose last scrape failed or did not tell how old a value is: each is
// grouped by pod or by model, and all are evaluated at the same instant. The server gets a few
// of them at a time. A look at the gateway's queues in between is one. What share of the
// requests kept the promised latency is asked beside that: two queries, and two more once an
// hour.
//
// It decides nothing: no threshold, no default for what is missing. A value that is
// absent, NaN or infinite is an absent sample and never zero, and every sample carries
// the time of the scrape that it rests on.
//
// Read Options first, then the queries in query.go, then Client.Read.
package prometheus

// Package prometheus reads what model servers and gateways expose, as a
// Prometheus server has scraped it, and turns it into samples.
//
// A reading is 24 PromQL queries for the whole cluster, however many models there are, and
// one more for pods whose last scrape failed or did not tell how old a value is: each is
// grouped by pod or by model, and all are evaluated at the same instant. The server gets a few
// of them at a time. The names of LoRA adapters are one more. A look at the gateway's queues in
// between is one. What share of the requests kept the promised latency is asked beside that:
// three queries, and two more once an hour.
//
// The first two of the queries tell how each namespace is scraped, and which pods with a server and which models
// of a gateway are not; of these one more query tells how. What
// is scraped seldom is asked for over a wider window, and what is known late at the time of the
// newest scrape. Where namespaces differ in that, each of a few groups of them has queries of its own, and so
// have a few groups of those that are scraped more seldom than others of their namespace.
//
// No query is longer than VictoriaMetrics takes: its parts are asked one after the other where it would be.
//
// What is read of an answer, and of a reading, is bounded. The namespace that took most of what was too much
// is left out of the queries for a while, so that nobody's pods keep others from being read.
//
// It decides nothing: no threshold, no default for what is missing. A value that is
// absent, NaN or infinite is an absent sample and never zero, and every sample carries
// the time of the scrape that it rests on.
//
// Read Options first, then the queries in query.go, then Client.Read.
package prometheus

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
// The first of the queries tells how the servers of each namespace are scraped. Those of a namespace
// that are scraped seldom are asked over a wider window, and those whose scrapes are known late at
// the time of the newest one. Where namespaces differ in that, each of a few groups of them has the
// other 21 queries of its own.
//
// It decides nothing: no threshold, no default for what is missing. A value that is
// absent, NaN or infinite is an absent sample and never zero, and every sample carries
// the time of the scrape that it rests on.
//
// Read Options first, then the queries in query.go, then Client.Read.
package prometheus

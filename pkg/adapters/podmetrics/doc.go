// Package podmetrics asks model servers and gateways for their metrics directly,
// for clusters without a Prometheus.
//
// It scrapes the pods that it is told to follow at a steady interval, keeps a short
// past of each in memory, and computes from it the samples that the Prometheus
// adapter asks for: the same quantities by the same names, with the same meaning of a
// mean, a rate and a slope (those of PromQL's avg_over_time, rate and deriv, whose
// formulas stand in window.go). It decides nothing. A pod that does not answer, and a
// value that is NaN or infinite, is an absent sample and never zero; every sample
// carries the time of the scrape that it rests on. One pod that hangs or fails keeps
// nobody else waiting, and where many are slow, their namespaces take turns.
//
// Read Options first, then Client.Follow, Run, Read and Queues.
package podmetrics

// Metricspage writes the reference page of the manager's metrics from the collectors
// themselves. It must never know a metric that they do not have.
package main

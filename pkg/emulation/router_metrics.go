package emulation

import "github.com/prometheus/client_golang/prometheus"

// The queue's labels are those of the gateway's flow control. There is one flow
// and one priority here. Like the real ones they do not name a namespace.
var (
	queueLabels    = []string{"fairness_id", "priority", "model_name", "target_model_name"}
	descQueueSize  = prometheus.NewDesc("inference_extension_flow_control_queue_size", "Requests that wait for a replica.", queueLabels, nil)
	descQueueBytes = prometheus.NewDesc("inference_extension_flow_control_queue_bytes", "Size of the requests that wait for a replica.", queueLabels, nil)
	descAttempts   = prometheus.NewDesc("inference_extension_scheduler_attempts_total",
		"Requests dispatched to a replica, each counted once.", []string{"status", "target_model_name", "model_name", "namespace"}, nil)
)

// routerCollector reads the metrics of a router when they are scraped. Every
// model has its series from the start, so that no increase is missed.
type routerCollector struct{ router *Router }

// Describe implements prometheus.Collector.
func (c routerCollector) Describe(descs chan<- *prometheus.Desc) {
	descs <- descQueueSize
	descs <- descQueueBytes
	descs <- descAttempts
}

// Collect implements prometheus.Collector.
func (c routerCollector) Collect(metrics chan<- prometheus.Metric) {
	c.router.mu.Lock()
	defer c.router.mu.Unlock()
	for _, t := range c.router.models {
		queue := []string{"default-flow", "0", t.Name, t.Name}
		metrics <- prometheus.MustNewConstMetric(descQueueSize, prometheus.GaugeValue, float64(t.queue.Len()), queue...)
		metrics <- prometheus.MustNewConstMetric(descQueueBytes, prometheus.GaugeValue, float64(t.bytes), queue...)
		metrics <- prometheus.MustNewConstMetric(descAttempts, prometheus.CounterValue, float64(t.dispatched), "success", t.Name, t.Name, t.Namespace)
	}
}

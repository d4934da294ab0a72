package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// telemetry is what the loop tells of itself.
type telemetry struct {
	duration  *prometheus.HistogramVec
	lastRound prometheus.Gauge
}

func newTelemetry(instance prometheus.Labels) *telemetry {
	return &telemetry{
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "wva_round_duration_seconds", ConstLabels: instance,
			Help:    "Duration of a round without the time for reading metrics, by kind (Full, Fast, Event) and result (success, error).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"round", "result"}),
		lastRound: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "wva_last_round_timestamp_seconds", ConstLabels: instance,
			Help: "Unix time at which the last round ended. It stands still when the loop does.",
		}),
	}
}

func (t *telemetry) ended(kind decision.Round, took time.Duration, at time.Time, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	t.duration.WithLabelValues(string(kind), result).Observe(took.Seconds())
	t.lastRound.Set(float64(at.UnixMilli()) / 1000)
}

package controller

import (
	"errors"
	"fmt"
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

func (t *telemetry) register(to prometheus.Registerer, more ...prometheus.Collector) error {
	var errs []error
	for _, c := range append(more, t.duration, t.lastRound) {
		errs = append(errs, to.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("registering the metrics of the controller: %w", err)
	}
	return nil
}

func (t *telemetry) round(kind decision.Round, took time.Duration, ended time.Time, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	t.duration.WithLabelValues(string(kind), result).Observe(took.Seconds())
	t.lastRound.Set(float64(ended.UnixMilli()) / 1000)
}

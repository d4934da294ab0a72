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
	scalings  *prometheus.CounterVec
	duration  *prometheus.HistogramVec
	lastRound prometheus.Gauge
}

func newTelemetry(instance prometheus.Labels) *telemetry {
	return &telemetry{
		scalings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_replica_scaling_total", ConstLabels: instance,
			Help: "Written changes of replicas, by direction (up, down) and by the reason of the decision.",
		}, []string{"variant_name", "namespace", "direction", "reason"}),
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
	for _, c := range append(more, t.scalings, t.duration, t.lastRound) {
		errs = append(errs, to.Register(c))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("registering the metrics of the controller: %w", err)
	}
	return nil
}

func (t *telemetry) scaled(p *decision.VariantPlan) {
	direction := "up"
	if *p.Desired < p.Current {
		direction = "down"
	}
	t.scalings.WithLabelValues(p.Key.Name, p.Key.Namespace, direction, string(p.Reason)).Inc()
}

// gone ends the series of a variant whose object is gone.
func (t *telemetry) gone(key decision.Key) {
	t.scalings.DeletePartialMatch(prometheus.Labels{"variant_name": key.Name, "namespace": key.Namespace})
}

func (t *telemetry) round(kind decision.Round, took time.Duration, ended time.Time, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	t.duration.WithLabelValues(string(kind), result).Observe(took.Seconds())
	t.lastRound.Set(float64(ended.UnixMilli()) / 1000)
}

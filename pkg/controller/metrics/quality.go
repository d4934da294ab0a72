package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// quality is what shows what was written, how good the decisions are, and how the loop does.
type quality struct {
	scalings, held, flips *prometheus.CounterVec
	breach, duration      *prometheus.HistogramVec
	saturated             *prometheus.GaugeVec
	lastRound             prometheus.Gauge

	// lastUp is the direction of the last change of each variant, and breached since
	// when each model has too little.
	lastUp   map[decision.Key]bool
	breached map[decision.ModelKey]time.Time
	models   map[decision.ModelKey]bool
}

func newQuality(instance prometheus.Labels) *quality {
	ofVariant, ofModel := []string{"variant_name", "namespace"}, []string{"model_name", "namespace"}
	return &quality{
		scalings: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_replica_scaling_total", ConstLabels: instance,
			Help: "Written changes of replicas, by direction (up, down) and by the reason of the decision.",
		}, []string{"variant_name", "namespace", "direction", "reason"}),
		held: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_held_rounds_total", ConstLabels: instance,
			Help: "Rounds that held the variant's replicas because nothing could be decided for it.",
		}, ofVariant),
		flips: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "wva_direction_changes_total", ConstLabels: instance,
			Help: "Written changes of the variant's replicas whose direction is opposite to the change before.",
		}, ofVariant),
		breach: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "wva_breach_duration_seconds", ConstLabels: instance,
			Help:    "Time from the first round that found the model saturated to the first round that did not.",
			Buckets: prometheus.ExponentialBuckets(5, 2, 10),
		}, ofModel),
		saturated: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wva_saturated_since_timestamp_seconds", ConstLabels: instance,
			Help: "Unix time of the first of the rounds that found the model saturated without a break. Absent while it is not.",
		}, ofModel),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "wva_round_duration_seconds", ConstLabels: instance,
			Help:    "Duration of a round without the time for reading metrics, by kind (Full, Fast, Event) and result (success, error).",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"round", "result"}),
		lastRound: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "wva_last_round_timestamp_seconds", ConstLabels: instance,
			Help: "Unix time at which the last round ended. It stands still when the loop does.",
		}),
		lastUp: map[decision.Key]bool{}, breached: map[decision.ModelKey]time.Time{},
	}
}

func (q *quality) collectors() []prometheus.Collector {
	return []prometheus.Collector{q.scalings, q.held, q.flips, q.breach, q.saturated, q.duration, q.lastRound}
}

// see notes a round.
func (q *quality) see(plan *decision.Plan) {
	models := map[decision.ModelKey]bool{}
	for i := range plan.Models {
		m := &plan.Models[i]
		key := decision.ModelKey{Namespace: m.Namespace, ID: m.ID}
		models[key] = true
		q.seeBreach(key, m.Triggered, plan.Time)
		for j := range m.Variants {
			if p := &m.Variants[j]; p.Fallback != nil {
				q.held.WithLabelValues(p.Key.Name, p.Key.Namespace).Inc()
			}
		}
	}
	for key := range q.models {
		if !models[key] {
			delete(q.breached, key)
			q.breach.DeleteLabelValues(key.ID, key.Namespace)
			q.saturated.DeleteLabelValues(key.ID, key.Namespace)
		}
	}
	q.models = models
}

func (q *quality) seeBreach(key decision.ModelKey, triggered bool, at time.Time) {
	since, under := q.breached[key]
	switch {
	case triggered && !under:
		q.breached[key] = at
		q.saturated.WithLabelValues(key.ID, key.Namespace).Set(float64(at.UnixMilli()) / 1000)
	case !triggered && under:
		delete(q.breached, key)
		q.saturated.DeleteLabelValues(key.ID, key.Namespace)
		q.breach.WithLabelValues(key.ID, key.Namespace).Observe(at.Sub(since).Seconds())
	}
}

// scaled notes a written change.
func (q *quality) scaled(p *decision.VariantPlan) {
	up, direction := *p.Desired > p.Current, "down"
	if up {
		direction = "up"
	}
	q.scalings.WithLabelValues(p.Key.Name, p.Key.Namespace, direction, string(p.Reason)).Inc()
	if last, known := q.lastUp[p.Key]; known && last != up {
		q.flips.WithLabelValues(p.Key.Name, p.Key.Namespace).Inc()
	}
	q.lastUp[p.Key] = up
}

// gone ends the series of a variant whose object is gone.
func (q *quality) gone(key decision.Key) {
	for _, series := range []*prometheus.CounterVec{q.scalings, q.held, q.flips} {
		series.DeletePartialMatch(prometheus.Labels{"variant_name": key.Name, "namespace": key.Namespace})
	}
	delete(q.lastUp, key)
}

func (q *quality) ended(kind decision.Round, took time.Duration, at time.Time, err error) {
	result := "success"
	if err != nil {
		result = "error"
	}
	q.duration.WithLabelValues(string(kind), result).Observe(took.Seconds())
	q.lastRound.Set(float64(at.UnixMilli()) / 1000)
}

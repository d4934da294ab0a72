package metrics

import (
	"cmp"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// The values of the label latency.
const (
	labelTTFT = "TTFT"
	labelITL  = "ITL"
)

// prediction shows side by side what the latency model says of a variant's replicas and
// what they show, at the load that they have. Beside each other they tell how far the model
// by which replicas are sized can be trusted.
type prediction struct {
	predicted, observed *prometheus.GaugeVec
}

func newPrediction(instance prometheus.Labels) prediction {
	labels := []string{"variant_name", "namespace", "latency"}
	return prediction{
		predicted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wva_predicted_latency_seconds", ConstLabels: instance,
			Help: "Mean latency (TTFT, ITL) that the latency model predicts for the variant's replicas at their present load, as the model was before the last round. " +
				"The TTFT is without waiting. No series without a model, or while the load or the observed latency is unknown.",
		}, labels),
		observed: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "wva_observed_latency_seconds", ConstLabels: instance,
			Help: "Observed mean latency (TTFT, ITL) of the same replicas over the metrics window. The TTFT includes waiting. It has a series where wva_predicted_latency_seconds has one.",
		}, labels),
	}
}

// see compares what was believed before a round with what the round saw.
func (p prediction) see(seen *Round) {
	p.predicted.Reset()
	p.observed.Reset()
	for i := range seen.Snapshot.Models {
		m := &seen.Snapshot.Models[i]
		for j := range m.Variants {
			v := &m.Variants[j]
			key := decision.Key{Namespace: m.Namespace, Name: v.Name}
			at, ok := predict(v, seen.Believed.Variants[key].Latency, seen.Snapshot.Time, seen.Stale)
			if !ok {
				continue
			}
			means := meansOf(v.Replicas, seen.Snapshot.Time, seen.Stale)
			p.show(key, labelITL, at.ITL, means.itl)
			p.show(key, labelTTFT, at.TTFT, means.ttft)
		}
	}
}

func (p prediction) show(key decision.Key, latency string, predicted capacity.Milliseconds, observed decision.Sample) {
	if !observed.Present {
		return
	}
	p.predicted.WithLabelValues(key.Name, key.Namespace, latency).Set(float64(predicted) / milliseconds)
	p.observed.WithLabelValues(key.Name, key.Namespace, latency).Set(observed.Value)
}

// predict is what the latency model says of a replica that has the mean of the load. The
// model is the learned one, else the given one, within the limits of the server. False
// means that there is none, or that a replica's load is not known.
func predict(v *decision.Variant, learning decision.Learning, now time.Time, limit time.Duration) (serving.At, bool) {
	profile := v.Profile
	if learning.Estimate.Usable() {
		profile = learning.Estimate.Profile
	}
	profile.BatchLimit = cmp.Or(v.BatchLimit, profile.BatchLimit)
	profile.KVTokens = cmp.Or(v.KVTokens, profile.KVTokens)
	known := func(s decision.Sample) bool { return s.Present && now.Sub(s.Time) <= limit }
	served := 0.0
	var input, output mean
	for i := range v.Replicas {
		r := &v.Replicas[i]
		if !known(r.Served) || r.Served.Value > 0 && (!known(r.Input) || !known(r.Output)) {
			return serving.At{}, false
		}
		served += r.Served.Value
		input.add(r.Input.Value, r.Served.Value)
		output.add(r.Output.Value, r.Served.Value)
	}
	if served <= 0 {
		return serving.At{}, false
	}
	shape := capacity.TokenShape{Input: capacity.Tokens(input.sample().Value), Output: capacity.Tokens(output.sample().Value)}
	_, at := profile.Under(capacity.Rate(served/float64(len(v.Replicas))), shape)
	return at, at.Rate > 0
}

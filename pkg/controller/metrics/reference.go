package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// Reference is what a reader of a metric must know.
type Reference struct {
	Name string
	// Kind is counter, gauge or histogram.
	Kind string
	// Labels are in the order of the alphabet, without controller_instance, which every
	// metric of a manager with an instance has.
	Labels []string
	Help   string
}

// References are all metrics of the controller, by name. They are read from the
// collectors themselves, each with one series.
func References() ([]Reference, error) {
	m, registry := New("", true), prometheus.NewRegistry()
	if err := m.Register(registry); err != nil {
		return nil, err
	}
	key, one, sample := decision.Key{Namespace: "namespace", Name: "variant"}, 1, decision.Sample{Value: 1, Present: true}
	replica := decision.Replica{Served: sample, Input: sample, Output: sample, TTFT: sample, ITL: sample}
	replica.KVUse = decision.Sample{Value: 1, Time: time.Unix(1, 0), Present: true}
	model := decision.Model{Namespace: key.Namespace, ID: "model", Variants: []decision.Variant{{
		Name: key.Name, Replicas: []decision.Replica{replica}, Profile: serving.Profile{Base: 1, BatchLimit: one, KVTokens: 1},
	}}}
	plan := decision.VariantPlan{Key: key, Desired: &one, Fallback: &decision.Fallback{Replicas: one}, Slots: &decision.Slots{Count: one}}
	model.Met = decision.Exactly(sample)
	m.Show(&decision.Plan{Models: []decision.ModelPlan{{
		Demand: &decision.Demand{}, Promise: decision.Promise{SLO: capacity.SLO{TTFT: 1, ITL: 1}}, Variants: []decision.VariantPlan{plan},
	}}}, &Round{
		Snapshot: decision.Snapshot{Models: []decision.Model{model}}, Stale: math.MaxInt64, Unlisted: map[string]int{"product": one},
		Policy: decision.Policy{Variants: map[decision.Key]decision.VariantPolicy{key: {Max: one}}}, Priced: map[decision.Key]bool{key: true},
		ID: func(decision.Key) string { return "" },
	})
	m.Scaled(&plan)
	m.Ended(decision.RoundFull, time.Second, time.Unix(0, 0), nil)
	m.quality.flips.WithLabelValues(key.Name, key.Namespace).Inc()
	m.quality.breach.WithLabelValues("model", key.Namespace).Observe(1)
	m.quality.saturated.WithLabelValues("model", key.Namespace).Set(1)
	families, err := registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("collecting the metrics of the controller: %w", err)
	}
	all := make([]Reference, 0, len(families))
	for _, family := range families {
		reference := Reference{Name: family.GetName(), Kind: strings.ToLower(family.GetType().String()), Help: family.GetHelp()}
		for _, label := range family.GetMetric()[0].GetLabel() {
			reference.Labels = append(reference.Labels, label.GetName())
		}
		slices.Sort(reference.Labels)
		all = append(all, reference)
	}
	return all, nil
}

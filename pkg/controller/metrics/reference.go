package metrics

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
	g, t, q, p := m.gauges, m.telemetry, m.quality, m.published
	key, now := decision.Key{Namespace: "namespace", Name: "variant"}, time.Unix(0, 0)
	one, sample := 1, decision.Sample{Value: 1, Present: true}
	plan := decision.VariantPlan{Key: key, Desired: &one, Fallback: &decision.Fallback{Replicas: one}, Slots: &decision.Slots{Count: one}}
	g.plan.Store(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{plan}}}})
	g.products.Store(&map[string]int{"product": one})
	p.served.Store(&map[decision.Key]servedMeans{key: {load: sample, ttft: sample, itl: sample}})
	q.scaled(&plan)
	t.ended(decision.RoundFull, time.Second, now, nil)
	q.held.WithLabelValues(key.Name, key.Namespace).Inc()
	q.flips.WithLabelValues(key.Name, key.Namespace).Inc()
	q.age.WithLabelValues("model", key.Namespace).Set(1)
	q.breach.WithLabelValues("model", key.Namespace).Observe(1)
	q.prediction.show(key, labelITL, 1, sample)
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

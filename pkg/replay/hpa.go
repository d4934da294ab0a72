package replay

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay/horizontal"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// hpa drives the chosen variant of each model by one metric, which an adapter reads from
// Prometheus. A gauge of the replicas is of type Pods: its value is that of the pod's last
// scrape. A flow is of type External with a target AverageValue: the flow of the whole
// model, divided by the target.
type hpa struct {
	driver
}

func newHPA(s *Scenario, spec Spec, choice []int) (*hpa, error) {
	d, err := newDriver(s, spec, choice, horizontal.Period, noDefault)
	return &hpa{d}, err
}

// Decide implements Policy.
func (h *hpa) Decide(view *View) Answer {
	return h.drive(view, func(m int, model *ModelView, variant *VariantView) (int, bool) {
		if h.trigger.Gauge == nil {
			return h.external(view.Now, m, model, variant)
		}
		return horizontal.AverageReplicas(readings(variant.Pods, h.trigger.Gauge), variant.Replicas, targetOf(h.targets[m]), h.tolerance)
	})
}

// targetOf is a target in thousandths, as it was written.
func targetOf(value float64) horizontal.Milli { return horizontal.Milli(math.Round(value * 1000)) }

// readings are what the custom metrics API says of the pods. A pod that no node holds is
// pending; one that starts runs already, as its containers do, but says nothing yet.
func readings(pods []Pod, value func(Scrape) float64) []horizontal.Reading {
	out := make([]horizontal.Reading, len(pods))
	for i := range pods {
		out[i].Pending = pods[i].Stage == simulation.Created
		if last, ok := pods[i].Last(); ok {
			out[i].Present, out[i].Value = true, horizontal.ToMilli(value(last))
		}
	}
	return out
}

// Parameters implements Policy.
func (h *hpa) Parameters() []Parameter {
	bounds := h.Bounds("minReplicas", "maxReplicas")
	if !h.MostGiven {
		bounds[1].Value += " (has no default: the variant's bound, else what empty nodes hold)"
	}
	metric := []Parameter{{"metric", h.trigger.Metric}, {"metricType", "Pods"}}
	if h.trigger.Gauge == nil {
		metric = []Parameter{{"metric", h.trigger.Query}, {"metricType", "External"}, {"window", h.window.String()}}
	}
	return slices.Concat(metric, []Parameter{{"targetAverageValue", h.targetText()}}, bounds, h.parameters())
}

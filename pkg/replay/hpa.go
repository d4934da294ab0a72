package replay

import (
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// hpa drives the chosen variant of each model by a metric of type Pods, which a custom
// metrics adapter reads from Prometheus: its value is that of the pod's last scrape.
type hpa struct {
	driver
	// metric is the name of what is averaged, and value reads it.
	metric string
	value  func(Scrape) float64
	// target is what one pod is to have.
	target float64
}

// The targets that hpa and keda run with.
const (
	queueTarget = 5
	kvTarget    = 0.8
)

func newQueueHPA(s *Scenario, choice []int) *hpa {
	return &hpa{
		driver: newDriver(s, choice, horizontalPeriod, noDefault), metric: "vllm:num_requests_waiting", target: queueTarget,
		value: func(s Scrape) float64 { return float64(s.Waiting) },
	}
}

func newKVHPA(s *Scenario, choice []int) *hpa {
	return &hpa{
		driver: newDriver(s, choice, horizontalPeriod, noDefault), metric: "vllm:kv_cache_usage_perc", target: kvTarget,
		value: Scrape.KVUse,
	}
}

// Decide implements Policy.
func (h *hpa) Decide(view *View) Answer {
	return h.drive(view, func(_ *ModelView, variant *VariantView) (int, bool) {
		return averageReplicas(readings(variant.Pods, h.value), variant.Replicas, targetOf(h.target), horizontalTolerance)
	})
}

// targetOf is a target in thousandths, as it was written.
func targetOf(value float64) milli { return milli(math.Round(value * 1000)) }

// readings are what the custom metrics API says of the pods. A pod that no node holds is
// pending; one that starts runs already, as its containers do, but says nothing yet.
func readings(pods []Pod, value func(Scrape) float64) []reading {
	out := make([]reading, len(pods))
	for i := range pods {
		out[i].pending = pods[i].Stage == simulation.Created
		if last, ok := pods[i].Last(); ok {
			out[i].present, out[i].value = true, toMilli(value(last))
		}
	}
	return out
}

// Parameters implements Policy.
func (h *hpa) Parameters() []Parameter {
	bounds := h.bounds("minReplicas", "maxReplicas")
	bounds[1].Value += " (has no default: the variant's bound, else what empty nodes hold)"
	return slices.Concat([]Parameter{
		{"metric", h.metric},
		{"metricType", "Pods"},
		{"targetAverageValue", fmt.Sprint(h.target)},
	}, bounds, h.parameters())
}

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// fleet shows what a variant has, within which bounds, at what price and load.
type fleet struct {
	serving, least, most, cost, load *prometheus.Desc
}

func newFleet(desc describing) *fleet {
	ofVariant := []string{"variant_name", "namespace", "accelerator_type"}
	return &fleet{
		serving: desc("wva_serving_replicas", "Replicas that serve.", ofVariant...),
		least:   desc("wva_min_replicas", "Least number of replicas that the variant may have.", ofVariant...),
		most:    desc("wva_max_replicas", "Greatest number of replicas that the variant may have. No series without a bound.", ofVariant...),
		cost:    desc("wva_cost_per_hour", "Price per hour of the replicas that the scale target has, in the unit of the prices that were given. No series without a price.", ofVariant...),
		load: desc("wva_variant_requests_per_second", "Requests that reach the variant's replicas: completed requests, plus the growth of those in service and waiting. "+
			"No series while that is unknown for one of the replicas.", ofVariant...),
	}
}

func (f *fleet) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{f.serving, f.least, f.most, f.cost, f.load} {
		out <- d
	}
}

// show shows one variant with a target.
func (f *fleet) show(show emit, p *decision.VariantPlan, served servedMeans, seen *Round, accelerator string) {
	labels := []string{p.Key.Name, p.Key.Namespace, accelerator}
	show(f.serving, float64(p.Ready), labels...)
	bounds := seen.Policy.Variant(p.Key)
	if show(f.least, float64(bounds.Min), labels...); bounds.Max >= 0 {
		show(f.most, float64(bounds.Max), labels...)
	}
	if _, current, _ := shownReplicas(p); seen.Priced[p.Key] {
		show(f.cost, current*float64(p.Cost), labels...)
	}
	if served.load.Present {
		show(f.load, served.load.Value, labels...)
	}
}

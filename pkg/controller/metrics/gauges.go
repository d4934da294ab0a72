package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// unresolved is the accelerator of a variant whose own is not known: the signal is
// never withheld.
const unresolved = "unresolved"

// gauges show the last plan. They are made from it when they are scraped, so that
// the series of a variant ends with its object, its target or its accelerator.
type gauges struct {
	desired, current, ratio, slots, unlisted *prometheus.Desc

	plan atomic.Pointer[decision.Plan]
	// products counts the nodes by product name that no rule knows.
	products atomic.Pointer[map[string]int]
}

func newGauges(instance prometheus.Labels) *gauges {
	labels := []string{"variant_name", "namespace", "accelerator_type"}
	return &gauges{
		desired: prometheus.NewDesc("wva_desired_replicas", "Replicas that the last decision wants. While nothing can be decided, the number wanted before, or the current number if that is larger.", labels, instance),
		current: prometheus.NewDesc("wva_current_replicas", "Replicas that the scale target has.", labels, instance),
		ratio:   prometheus.NewDesc("wva_desired_ratio", "Wanted replicas divided by current replicas. Without current replicas, the wanted replicas.", labels, instance),
		slots: prometheus.NewDesc("wva_variant_free_slots", "Replicas that still fit on the cluster, beside those that were asked for before the last round. "+
			"No series while that is unknown.", labels, instance),
		unlisted: prometheus.NewDesc("wva_unlisted_accelerator_nodes", "Nodes whose product label no rule knows, by the label's value in upper case. "+
			"Give it a name in the ConfigMap of accelerator names.", []string{"product"}, instance),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.desired
	out <- g.current
	out <- g.ratio
	out <- g.slots
	out <- g.unlisted
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	if products := g.products.Load(); products != nil {
		for product, nodes := range *products {
			out <- prometheus.MustNewConstMetric(g.unlisted, prometheus.GaugeValue, float64(nodes), product)
		}
	}
	plan := g.plan.Load()
	if plan == nil {
		return
	}
	plan.Each(func(p *decision.VariantPlan) {
		if p.Desired == nil {
			return
		}
		accelerator := acceleratorLabel(p)
		desired, current, ratio := shownReplicas(p)
		if p.Slots != nil {
			out <- prometheus.MustNewConstMetric(g.slots, prometheus.GaugeValue, float64(p.Slots.Count), p.Key.Name, p.Key.Namespace, accelerator)
		}
		for desc, value := range map[*prometheus.Desc]float64{g.desired: desired, g.current: current, g.ratio: ratio} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, p.Key.Name, p.Key.Namespace, accelerator)
		}
	})
}

// acceleratorLabel is the accelerator of a variant as a label has it.
func acceleratorLabel(p *decision.VariantPlan) string {
	if p.Accelerator == "" {
		return unresolved
	}
	return string(p.Accelerator)
}

// shownReplicas are the replicas of a variant with a target, as gauges show them.
func shownReplicas(p *decision.VariantPlan) (desired, current, ratio float64) {
	desired, current = float64(p.Shown()), float64(p.Ready+p.Starting)
	if current == 0 {
		// Pods that cannot be found, or are not created yet, are not none.
		current = float64(p.Current)
	}
	if current == 0 {
		return desired, current, desired
	}
	return desired, current, desired / current
}

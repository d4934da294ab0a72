package controller

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
	desired, current, ratio *prometheus.Desc
	plan                    atomic.Pointer[decision.Plan]
}

func newGauges(instance prometheus.Labels) *gauges {
	labels := []string{"variant_name", "namespace", "accelerator_type"}
	return &gauges{
		desired: prometheus.NewDesc("wva_desired_replicas", "Replicas that the last decision wants.", labels, instance),
		current: prometheus.NewDesc("wva_current_replicas", "Replicas that the scale target has.", labels, instance),
		ratio:   prometheus.NewDesc("wva_desired_ratio", "Wanted replicas divided by current replicas; the wanted replicas while there are none.", labels, instance),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	out <- g.desired
	out <- g.current
	out <- g.ratio
}

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	plan := g.plan.Load()
	if plan == nil {
		return
	}
	each(plan, func(p *decision.VariantPlan) {
		if p.Desired == nil {
			return
		}
		accelerator := string(p.Accelerator)
		if accelerator == "" {
			accelerator = unresolved
		}
		desired, current := float64(*p.Desired), float64(p.Ready+p.Starting)
		if current == 0 {
			// Pods that cannot be found, or are not created yet, are not none.
			current = float64(p.Current)
		}
		ratio := desired
		if current > 0 {
			ratio = desired / current
		}
		for desc, value := range map[*prometheus.Desc]float64{g.desired: desired, g.current: current, g.ratio: ratio} {
			out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, p.Key.Name, p.Key.Namespace, accelerator)
		}
	})
}

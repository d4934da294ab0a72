package metrics

import (
	"cmp"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// unresolved is the accelerator of a variant whose own is not known: the signal is
// never withheld.
const unresolved = "unresolved"

// The values of the label latency.
const (
	labelTTFT = "TTFT"
	labelITL  = "ITL"
)

// gauges show the last round. They are made from it when they are scraped, so that the
// series of a variant ends with its object, its target or its accelerator, and no scrape
// sees half of a round.
type gauges struct {
	desired, current, ratio, slots, unlisted, age *prometheus.Desc
	// predicted and observed show side by side what the latency model says of a variant's
	// replicas and what they show, at the load that they have: how far the model by which
	// replicas are sized can be trusted.
	predicted, observed *prometheus.Desc
	fleet               *fleet
	promise             *promise
	// published is nil where the earlier names are turned off.
	published *published

	last atomic.Pointer[shown]
}

// shown is a plan and what its round saw.
type shown struct {
	plan *decision.Plan
	seen *Round
}

func newGauges(instance prometheus.Labels) *gauges {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, instance)
	}
	ofVariant := []string{"variant_name", "namespace", "accelerator_type"}
	ofLatency := []string{"variant_name", "namespace", "latency"}
	return &gauges{
		desired: desc("wva_desired_replicas", "Replicas that the last decision wants. While nothing can be decided, the number wanted before, or the current number if that is larger.", ofVariant...),
		current: desc("wva_current_replicas", "Replicas that the scale target has.", ofVariant...),
		ratio:   desc("wva_desired_ratio", "Wanted replicas divided by current replicas. Without current replicas, the wanted replicas.", ofVariant...),
		slots: desc("wva_variant_free_slots", "Replicas that still fit on the cluster, beside those that were asked for before the last round. "+
			"No series while that is unknown.", ofVariant...),
		unlisted: desc("wva_unlisted_accelerator_nodes", "Nodes whose product label no rule knows, by the label's value in upper case. "+
			"Give it a name in the ConfigMap of accelerator names.", "product"),
		age: desc("wva_oldest_sample_age_seconds", "Age of the oldest sample of the model's serving replicas in the last round. No series without samples.", "model_name", "namespace"),
		predicted: desc("wva_predicted_latency_seconds", "Mean latency (TTFT, ITL) that the latency model predicts for the variant's replicas at their present load, as the model was before the last round. "+
			"The TTFT is without waiting. No series without a model, or while the load or the observed latency is unknown.", ofLatency...),
		observed: desc("wva_observed_latency_seconds", "Observed mean latency (TTFT, ITL) of the variant's requests over the metrics window. The TTFT includes waiting. No series without requests.", ofLatency...),
		fleet:    newFleet(desc),
		promise:  newPromise(desc),
	}
}

// Describe implements prometheus.Collector.
func (g *gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.desired, g.current, g.ratio, g.slots, g.unlisted, g.age, g.predicted, g.observed} {
		out <- d
	}
	g.fleet.describe(out)
	g.promise.describe(out)
	if g.published != nil {
		g.published.describe(out)
	}
}

// emit gives one series to a scrape.
type emit func(d *prometheus.Desc, value float64, labels ...string)

// Collect implements prometheus.Collector.
func (g *gauges) Collect(out chan<- prometheus.Metric) {
	last := g.last.Load()
	if last == nil {
		return
	}
	show := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for product, nodes := range last.seen.Unlisted {
		show(g.unlisted, float64(nodes), product)
	}
	served := map[decision.Key]servedMeans{}
	for i := range last.seen.Snapshot.Models {
		g.ofModel(show, &last.seen.Snapshot.Models[i], last.seen, served)
	}
	for i := range last.plan.Models {
		g.promise.show(show, &last.plan.Models[i], last.seen.Policy.Share)
	}
	last.plan.Each(func(p *decision.VariantPlan) {
		if p.Desired == nil {
			return
		}
		accelerator := cmp.Or(string(p.Accelerator), unresolved)
		desired, current, ratio := shownReplicas(p)
		show(g.desired, desired, p.Key.Name, p.Key.Namespace, accelerator)
		show(g.current, current, p.Key.Name, p.Key.Namespace, accelerator)
		show(g.ratio, ratio, p.Key.Name, p.Key.Namespace, accelerator)
		if p.Slots != nil {
			show(g.slots, float64(p.Slots.Count), p.Key.Name, p.Key.Namespace, accelerator)
		}
		g.fleet.show(show, p, served[p.Key], last.seen, accelerator)
		if g.published != nil {
			g.published.show(show, p, served[p.Key], last.seen.ID(p.Key), accelerator)
		}
	})
}

// ofModel shows what was seen of a model, and notes what its variants served.
func (g *gauges) ofModel(show emit, m *decision.Model, seen *Round, served map[decision.Key]servedMeans) {
	if oldest := oldestSample(m); !oldest.IsZero() {
		show(g.age, seen.Snapshot.Time.Sub(oldest).Seconds(), m.ID, m.Namespace)
	}
	g.promise.met(show, m, seen)
	for i := range m.Variants {
		v := &m.Variants[i]
		key := decision.Key{Namespace: m.Namespace, Name: v.Name}
		means := meansOf(v.Replicas, seen.Snapshot.Time, seen.Stale)
		served[key] = means
		at, modelled := predict(v, seen.Believed.OfVariant(key).Latency, seen.Snapshot.Time, seen.Stale)
		beside := func(latency string, predicted capacity.Milliseconds, observed decision.Sample) {
			if !observed.Present {
				return
			}
			if show(g.observed, observed.Value, key.Name, key.Namespace, latency); modelled {
				show(g.predicted, float64(predicted)/milliseconds, key.Name, key.Namespace, latency)
			}
		}
		beside(labelITL, at.ITL, means.itl)
		beside(labelTTFT, at.TTFT, means.ttft)
	}
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

// oldestSample is the time of the oldest sample of what a model's replicas hold and do.
func oldestSample(m *decision.Model) (oldest time.Time) {
	for i := range m.Variants {
		for j := range m.Variants[i].Replicas {
			r := &m.Variants[i].Replicas[j]
			for _, s := range []decision.Sample{r.KVUse, r.Waiting, r.Running} {
				if s.Present && (oldest.IsZero() || s.Time.Before(oldest)) {
					oldest = s.Time
				}
			}
		}
	}
	return oldest
}

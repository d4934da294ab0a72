package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// published are the gauges under the names of earlier versions, for dashboards and
// autoscalers that read those. They show the same plan and the same samples.
type published struct {
	desired, current, ratio, load, ttft, itl *prometheus.Desc

	from *gauges
	// served is what the replicas of each variant served in the last round.
	served atomic.Pointer[map[decision.Key]servedMeans]
}

// servedMeans are means over the serving replicas of a variant. What is unknown is absent.
type servedMeans struct {
	id string
	// load is in requests per second, ttft and itl are in seconds.
	load, ttft, itl decision.Sample
}

func newPublished(from *gauges, instance prometheus.Labels) *published {
	labels := []string{"variant_name", "variant_id", "namespace", "accelerator_type"}
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, labels, instance) }
	return &published{
		from:    from,
		desired: desc("inferno_desired_replicas", "The same as wva_desired_replicas, under its earlier name."),
		current: desc("inferno_current_replicas", "The same as wva_current_replicas, under its earlier name."),
		ratio:   desc("inferno_desired_ratio", "The same as wva_desired_ratio, under its earlier name."),
		load: desc("inferno_current_load", "Requests per minute that reach the variant's replicas: completed requests, plus the growth of those in service and waiting. "+
			"No series while that is unknown for one of the replicas."),
		ttft: desc("inferno_ttft_average", "Mean time to first token of the variant's requests over the metrics window, in milliseconds. No series without requests."),
		itl:  desc("inferno_itl_average", "Mean time per further token of the variant's requests over the metrics window, in milliseconds. No series without requests."),
	}
}

// see keeps what the replicas of a round served.
func (p *published) see(seen *Round) {
	served := map[decision.Key]servedMeans{}
	for i := range seen.Snapshot.Models {
		m := &seen.Snapshot.Models[i]
		for j := range m.Variants {
			key := decision.Key{Namespace: m.Namespace, Name: m.Variants[j].Name}
			means := meansOf(m.Variants[j].Replicas, seen.Snapshot.Time, seen.Stale)
			means.id = seen.ID(key)
			served[key] = means
		}
	}
	p.served.Store(&served)
}

// meansOf are the means over replicas, weighted by what each completed. The load is
// known when that of every replica is. What is older than the limit is not known.
func meansOf(replicas []decision.Replica, now time.Time, limit time.Duration) (means servedMeans) {
	known := func(s decision.Sample) bool { return s.Present && now.Sub(s.Time) <= limit }
	load := decision.Sample{Present: len(replicas) > 0}
	var ttft, itl mean
	for i := range replicas {
		r := &replicas[i]
		if !known(r.Served) {
			load.Present = false
			continue
		}
		load.Value += r.Served.Value
		if known(r.InFlightGrowth) {
			load.Value += r.InFlightGrowth.Value
		}
		if known(r.TTFT) {
			ttft.add(r.TTFT.Value, r.Served.Value)
		}
		if known(r.ITL) {
			itl.add(r.ITL.Value, r.Served.Value)
		}
	}
	load.Value = max(load.Value, 0)
	means.load, means.ttft, means.itl = load, ttft.sample(), itl.sample()
	return means
}

// mean is a weighted mean.
type mean struct{ sum, weight float64 }

func (m *mean) add(value, weight float64) {
	m.sum += value * weight
	m.weight += weight
}

func (m *mean) sample() decision.Sample {
	if m.weight <= 0 {
		return decision.Sample{}
	}
	return decision.Sample{Value: m.sum / m.weight, Present: true}
}

// Describe implements prometheus.Collector.
func (p *published) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.desired, p.current, p.ratio, p.load, p.ttft, p.itl} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (p *published) Collect(out chan<- prometheus.Metric) {
	plan, served := p.from.plan.Load(), p.served.Load()
	if plan == nil || served == nil {
		return
	}
	plan.Each(func(v *decision.VariantPlan) {
		if v.Desired == nil {
			return
		}
		s := (*served)[v.Key]
		emit := func(d *prometheus.Desc, value float64) {
			out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, v.Key.Name, s.id, v.Key.Namespace, acceleratorLabel(v))
		}
		desired, current, ratio := shownReplicas(v)
		emit(p.desired, desired)
		emit(p.current, current)
		emit(p.ratio, ratio)
		for desc, sample := range map[*prometheus.Desc]decision.Sample{
			p.load: scaled(s.load, time.Minute.Seconds()), p.ttft: scaled(s.ttft, milliseconds), p.itl: scaled(s.itl, milliseconds),
		} {
			if sample.Present {
				emit(desc, sample.Value)
			}
		}
	})
}

// milliseconds are those of a second.
const milliseconds = 1000

func scaled(s decision.Sample, by float64) decision.Sample {
	s.Value *= by
	return s
}

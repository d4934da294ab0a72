package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// published are the gauges under the names of earlier versions, for dashboards and
// autoscalers that read those. They show the same plan and the same samples.
type published struct {
	desired, current, ratio, load, ttft, itl *prometheus.Desc
}

func newPublished(instance prometheus.Labels) *published {
	labels := []string{"variant_name", "variant_id", "namespace", "accelerator_type"}
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, labels, instance) }
	return &published{
		desired: desc("inferno_desired_replicas", "The same as wva_desired_replicas, under its earlier name."),
		current: desc("inferno_current_replicas", "The same as wva_current_replicas, under its earlier name."),
		ratio:   desc("inferno_desired_ratio", "The same as wva_desired_ratio, under its earlier name."),
		load: desc("inferno_current_load", "Requests per minute that reach the variant's replicas: completed requests, plus the growth of those in service and waiting. "+
			"No series while that is unknown for one of the replicas."),
		ttft: desc("inferno_ttft_average", "Mean time to first token of the variant's requests over the metrics window, in milliseconds. No series without requests."),
		itl:  desc("inferno_itl_average", "Mean time per further token of the variant's requests over the metrics window, in milliseconds. No series without requests."),
	}
}

func (p *published) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.desired, p.current, p.ratio, p.load, p.ttft, p.itl} {
		out <- d
	}
}

// milliseconds are those of a second.
const milliseconds = 1000

// show shows one variant.
func (p *published) show(show emit, v *decision.VariantPlan, served servedMeans, id, accelerator string) {
	desired, current, ratio := shownReplicas(v)
	for desc, value := range map[*prometheus.Desc]decision.Sample{
		p.desired: {Value: desired, Present: true}, p.current: {Value: current, Present: true}, p.ratio: {Value: ratio, Present: true},
		p.load: scaled(served.load, time.Minute.Seconds()), p.ttft: scaled(served.ttft, milliseconds), p.itl: scaled(served.itl, milliseconds),
	} {
		if value.Present {
			show(desc, value.Value, v.Key.Name, id, v.Key.Namespace, accelerator)
		}
	}
}

func scaled(s decision.Sample, by float64) decision.Sample {
	s.Value *= by
	return s
}

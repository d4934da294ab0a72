package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// The values of the label bound.
const (
	labelLower = "lower"
	labelUpper = "upper"
)

// describing makes the description of a metric of an instance.
type describing func(name, help string, labels ...string) *prometheus.Desc

// promise shows what a model is promised, what is asked of it, and what share of the requests got it.
type promise struct {
	target, objective, share, arrival, waiting *prometheus.Desc
}

func newPromise(desc describing) *promise {
	ofModel := []string{"model_name", "namespace"}
	return &promise{
		target:    desc("wva_slo_target_seconds", "SLO of the model's service class: the target for the latency (TTFT, ITL). No series without a target.", append(ofModel, "latency")...),
		objective: desc("wva_slo_objective_ratio", "Share of the model's requests that is to meet the SLO (WVA_SLO_PERCENTILE). No series without an SLO.", ofModel...),
		share: desc("wva_slo_met_ratio", "Share of the model's requests that met the SLO over the metrics window: at least the lower bound, at most the upper one, because servers count latencies in buckets. "+
			"No series while that is unknown, and in capacity-only mode.", append(ofModel, "bound")...),
		arrival: desc("wva_model_requests_per_second", "Arrival rate of the model's requests that the last decision used. No series while it is unknown.", ofModel...),
		waiting: desc("wva_model_waiting_requests", "Requests that wait for the model, in its replicas and in front of them. No series while that is unknown.", ofModel...),
	}
}

func (p *promise) describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{p.target, p.objective, p.share, p.arrival, p.waiting} {
		out <- d
	}
}

// show shows the plan of one model.
func (p *promise) show(show emit, m *decision.ModelPlan, objective float64) {
	if m.Demand != nil {
		show(p.arrival, float64(max(0, m.Demand.Arrival)), m.ID, m.Namespace)
		show(p.waiting, m.Demand.Backlog, m.ID, m.Namespace)
	}
	slo := m.Promise.SLO
	if slo == (capacity.SLO{}) {
		return
	}
	show(p.objective, objective, m.ID, m.Namespace)
	for latency, target := range map[string]capacity.Milliseconds{labelTTFT: slo.TTFT, labelITL: slo.ITL} {
		if target > 0 {
			show(p.target, float64(target)/milliseconds, m.ID, m.Namespace, latency)
		}
	}
}

// met shows what share of a model's requests met the SLO.
func (p *promise) met(show emit, m *decision.Model, seen *Round) {
	if kept := &m.Met; kept.Present && seen.Snapshot.Time.Sub(kept.Time) <= seen.Stale {
		show(p.share, kept.Sure, m.ID, m.Namespace, labelLower)
		show(p.share, kept.Value, m.ID, m.Namespace, labelUpper)
	}
}

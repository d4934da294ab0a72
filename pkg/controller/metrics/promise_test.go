package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// helpless are series without the lines of help and type.
func helpless(t *testing.T, m *Metrics, names ...string) string {
	t.Helper()
	text, err := testutil.CollectAndFormat(m.gauges, expfmt.TypeTextPlain, names...)
	require.NoError(t, err)
	var lines []string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// What a model is promised stands beside what its clients get, and what it costs.
func TestThePromiseStandsBesideWhatIsKept(t *testing.T) {
	m, seen := New("", false), seenServing(decision.Replica{Served: at(noon, 3), InFlightGrowth: at(noon, 0.5)})
	key := decision.Key{Namespace: "n", Name: "v"}
	seen.Priced = map[decision.Key]bool{key: true}
	seen.Policy = decision.Policy{Share: 0.99, Variants: map[decision.Key]decision.VariantPolicy{key: {Min: 1, Max: 8}}}
	seen.Snapshot.Models[0].Met = decision.Kept{Sample: at(noon, 0.98), Sure: 0.75}
	plan := &decision.Plan{Time: noon, Models: []decision.ModelPlan{{
		Namespace: "n", ID: "m", Demand: &decision.Demand{Arrival: 3.5, Backlog: 2}, Promise: decision.Promise{SLO: capacity.SLO{TTFT: 500, ITL: 25}},
		Variants: []decision.VariantPlan{*settled(func(p *decision.VariantPlan) { p.Cost = 6.5 })},
	}}}
	names := []string{
		"wva_cost_per_hour", "wva_max_replicas", "wva_min_replicas", "wva_model_requests_per_second", "wva_model_waiting_requests", "wva_serving_replicas",
		"wva_slo_met_ratio", "wva_slo_objective_ratio", "wva_slo_target_seconds", "wva_variant_requests_per_second",
	}
	m.Show(plan, seen)
	assert.Equal(t, strings.TrimSpace(`
wva_cost_per_hour{accelerator_type="H100",namespace="n",variant_name="v"} 13
wva_max_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 8
wva_min_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 1
wva_model_requests_per_second{model_name="m",namespace="n"} 3.5
wva_model_waiting_requests{model_name="m",namespace="n"} 2
wva_serving_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 2
wva_slo_met_ratio{bound="lower",model_name="m",namespace="n"} 0.75
wva_slo_met_ratio{bound="upper",model_name="m",namespace="n"} 0.98
wva_slo_objective_ratio{model_name="m",namespace="n"} 0.99
wva_slo_target_seconds{latency="ITL",model_name="m",namespace="n"} 0.025
wva_slo_target_seconds{latency="TTFT",model_name="m",namespace="n"} 0.5
wva_variant_requests_per_second{accelerator_type="H100",namespace="n",variant_name="v"} 3.5`), helpless(t, m, names...))

	// What is not known, or not given, has no series.
	bare := seenServing(decision.Replica{})
	bare.Snapshot.Models[0].Met = decision.Exactly(at(noon.Add(-time.Hour), 1))
	m.Show(&decision.Plan{Time: noon, Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Variants: []decision.VariantPlan{*settled()}}}}, bare)
	assert.Equal(t, strings.TrimSpace(`
wva_min_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 0
wva_serving_replicas{accelerator_type="H100",namespace="n",variant_name="v"} 2`), helpless(t, m, names...))
}

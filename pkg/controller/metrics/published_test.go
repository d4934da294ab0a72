package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// at is a sample of an instant.
func at(time time.Time, value float64) decision.Sample {
	return decision.Sample{Value: value, Time: time, Present: true}
}

// seenServing is a round that saw one variant with these replicas.
func seenServing(replicas ...decision.Replica) *Round {
	return &Round{
		Snapshot: decision.Snapshot{Time: noon, Models: []decision.Model{{Namespace: "n", ID: "m", Variants: []decision.Variant{{Name: "v", Replicas: replicas}}}}},
		Stale:    decision.DefaultPolicy().Freshness.Stale,
		ID:       func(decision.Key) string { return "m-H100-1" },
	}
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// settled is the plan of a variant that the decision looked at: 2 replicas, and 3
// are wanted.
func settled(change ...func(*decision.VariantPlan)) *decision.VariantPlan {
	p := &decision.VariantPlan{
		Key: decision.Key{Namespace: "n", Name: "v"}, Accelerator: "H100", Current: 2, Ready: 2, Desired: ptr.To(3),
		Slots:  &decision.Slots{Count: 4},
		Steps:  []decision.Step{{Stage: decision.StageRequirement, Before: 2, After: 3, Reason: decision.ReasonSaturated, Detail: decision.Words("80 % full")}},
		Reason: decision.ReasonSaturated, Message: decision.Words("80 % full"),
		Facts: []decision.Fact{{Reason: decision.ReasonMetricsFound, Detail: decision.Words("2 of 2")}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

// missing is the plan of a variant whose target is missing.
func missing() *decision.VariantPlan {
	return &decision.VariantPlan{Key: decision.Key{Namespace: "n", Name: "v"}, Reason: decision.ReasonTargetMissing, Message: decision.Words("why")}
}

// fallingBack is a plan that could not be made: 2 replicas are there.
func fallingBack(replicas int, source decision.FallbackSource) func(*decision.VariantPlan) {
	return func(p *decision.VariantPlan) {
		p.Desired, p.Fallback = ptr.To(p.Current), &decision.Fallback{Replicas: replicas, Source: source, Why: decision.Words("the metrics are old")}
	}
}

func TestPublishedNames(t *testing.T) {
	m := New("blue", true)
	assert.Zero(t, testutil.CollectAndCount(m.gauges), "nothing before the first round")
	show := func(p *decision.VariantPlan, replicas ...decision.Replica) {
		m.Show(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*p}}}}, seenServing(replicas...))
	}
	held := settled(fallingBack(5, decision.FallbackPrevious))
	show(held,
		decision.Replica{Served: at(noon, 3), InFlightGrowth: at(noon, 0.5), TTFT: at(noon, 0.25), ITL: at(noon, 0.03)},
		decision.Replica{Served: at(noon, 1), TTFT: at(noon, 0.5), ITL: at(noon.Add(-time.Hour), 9)},
	)
	// Load: (3 + 0.5 + 1) requests/s are 270 per minute. TTFT: (3*0.25 + 1*0.5) / 4 s are 312.5 ms;
	// the old ITL does not count.
	labels := `{accelerator_type="H100",controller_instance="blue",namespace="n",variant_id="m-H100-1",variant_name="v"}`
	values := map[string]string{
		"inferno_current_load": "270", "inferno_ttft_average": "312.5", "inferno_itl_average": "30",
		"inferno_desired_replicas": "5", "inferno_current_replicas": "2", "inferno_desired_ratio": "2.5",
	}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, m.Register(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		value, published := values[family.GetName()]
		if !published {
			continue
		}
		want := "# HELP " + family.GetName() + " " + family.GetHelp() + "\n# TYPE " + family.GetName() + " gauge\n" + family.GetName() + labels + " " + value + "\n"
		require.NoError(t, testutil.CollectAndCompare(m.gauges, strings.NewReader(want), family.GetName()))
		delete(values, family.GetName())
	}
	assert.Empty(t, values)

	show(held, decision.Replica{Served: at(noon, 3), TTFT: at(noon, 0.2)}, decision.Replica{})
	assert.Equal(t, 1, testutil.CollectAndCount(m.gauges, "inferno_ttft_average"))
	assert.Zero(t, testutil.CollectAndCount(m.gauges, "inferno_current_load"), "unknown is not zero")
	assert.Zero(t, testutil.CollectAndCount(m.gauges, "inferno_itl_average"))
	show(missing())
	assert.Zero(t, testutil.CollectAndCount(m.gauges), "the series end with the target")
}

func TestQualityOfDecisions(t *testing.T) {
	m := New("", false)
	q := m.quality
	round := func(after time.Duration, triggered bool, change func(*decision.VariantPlan)) {
		seen := seenServing(decision.Replica{KVUse: at(noon.Add(-7*time.Second), 0.5), Waiting: at(noon.Add(-3*time.Second), 0)})
		m.Show(&decision.Plan{Time: noon.Add(after), Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Triggered: triggered, Variants: []decision.VariantPlan{*settled(change)}}}}, seen)
	}
	same := func(*decision.VariantPlan) {}
	round(0, false, fallingBack(5, decision.FallbackPrevious))
	round(0, true, same)
	round(10*time.Second, true, same)
	assert.InDelta(t, noon.Unix(), testutil.ToFloat64(q.saturated.WithLabelValues("m", "n")), 0, "since the first round of them")
	round(35*time.Second, false, same)
	assert.Zero(t, testutil.CollectAndCount(q.saturated), "it is over")
	assert.InDelta(t, 1, testutil.ToFloat64(q.held.WithLabelValues("v", "n")), 0)
	require.NoError(t, testutil.CollectAndCompare(m.gauges, strings.NewReader(`
# HELP wva_oldest_sample_age_seconds Age of the oldest sample of the model's serving replicas in the last round. No series without samples.
# TYPE wva_oldest_sample_age_seconds gauge
wva_oldest_sample_age_seconds{model_name="m",namespace="n"} 7
`), "wva_oldest_sample_age_seconds"))
	require.NoError(t, testutil.CollectAndCompare(q.breach, strings.NewReader(`
# HELP wva_breach_duration_seconds Time from the first round that found the model saturated to the first round that did not.
# TYPE wva_breach_duration_seconds histogram
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="5"} 0
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="10"} 0
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="20"} 0
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="40"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="80"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="160"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="320"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="640"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="1280"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="2560"} 1
wva_breach_duration_seconds_bucket{model_name="m",namespace="n",le="+Inf"} 1
wva_breach_duration_seconds_sum{model_name="m",namespace="n"} 35
wva_breach_duration_seconds_count{model_name="m",namespace="n"} 1
`)))
	for _, desired := range []int{3, 4, 1, 0, 5} { // of 2: more twice, fewer twice, more
		q.scaled(settled(func(p *decision.VariantPlan) { p.Current, p.Desired = 2, &desired }))
	}
	assert.InDelta(t, 2, testutil.ToFloat64(q.flips.WithLabelValues("v", "n")), 0)

	m.Show(&decision.Plan{Time: noon}, &Round{})
	m.Gone(decision.Key{Namespace: "n", Name: "v"})
	for _, c := range []prometheus.Collector{q.scalings, q.held, q.flips, q.breach, q.saturated, m.gauges} {
		assert.Zero(t, testutil.CollectAndCount(c), "the series end with the objects")
	}
}

func TestTheReferenceHasEveryMetric(t *testing.T) {
	references, err := References()
	require.NoError(t, err)
	byName := map[string]Reference{}
	for _, r := range references {
		byName[r.Name] = r
		assert.NotEmpty(t, r.Help)
	}
	assert.Equal(t, []string{"accelerator_type", "namespace", "variant_id", "variant_name"}, byName["inferno_current_load"].Labels)
	assert.Equal(t, "counter", byName["wva_replica_scaling_total"].Kind)
	// Whatever a collector describes is there.
	m := New("", true)
	described := make(chan *prometheus.Desc, 100)
	for _, c := range append(m.quality.collectors(), m.gauges) {
		c.Describe(described)
	}
	assert.Len(t, references, len(described))
}

func TestGauges(t *testing.T) {
	m := New("a", false)
	g, seen := m.gauges, &Round{}
	assert.Equal(t, 0, testutil.CollectAndCount(g), "before the first plan nothing is claimed")
	set := func(variants ...*decision.VariantPlan) {
		plan := &decision.Plan{Models: []decision.ModelPlan{{}}}
		for _, v := range variants {
			plan.Models[0].Variants = append(plan.Models[0].Variants, *v)
		}
		m.Show(plan, seen)
	}
	set(settled(), settled(func(p *decision.VariantPlan) {
		p.Key.Name, p.Accelerator, p.Current, p.Ready, p.Starting = "w", "", 0, 0, 0
	}),
		settled(func(p *decision.VariantPlan) { p.Key.Name, p.Current, p.Ready, p.Starting = "x", 6, 0, 0 }), missing())
	require.NoError(t, testutil.CollectAndCompare(g, strings.NewReader(`
# HELP wva_desired_ratio Wanted replicas divided by current replicas. Without current replicas, the wanted replicas.
# TYPE wva_desired_ratio gauge
wva_desired_ratio{accelerator_type="H100",controller_instance="a",namespace="n",variant_name="v"} 1.5
wva_desired_ratio{accelerator_type="unresolved",controller_instance="a",namespace="n",variant_name="w"} 3
wva_desired_ratio{accelerator_type="H100",controller_instance="a",namespace="n",variant_name="x"} 0.5
# HELP wva_desired_replicas Replicas that the last decision wants. While nothing can be decided, the number wanted before, or the current number if that is larger.
# TYPE wva_desired_replicas gauge
wva_desired_replicas{accelerator_type="H100",controller_instance="a",namespace="n",variant_name="v"} 3
wva_desired_replicas{accelerator_type="unresolved",controller_instance="a",namespace="n",variant_name="w"} 3
wva_desired_replicas{accelerator_type="H100",controller_instance="a",namespace="n",variant_name="x"} 3
`), "wva_desired_ratio", "wva_desired_replicas"))
	seen = &Round{Unlisted: map[string]int{"ACME-9000": 2}}
	set(settled(func(p *decision.VariantPlan) { p.Slots.Count = 7 }), settled(func(p *decision.VariantPlan) { p.Key.Name, p.Slots = "w", nil }))
	require.NoError(t, testutil.CollectAndCompare(g, strings.NewReader(`
# HELP wva_unlisted_accelerator_nodes Nodes whose product label no rule knows, by the label's value in upper case. Give it a name in the ConfigMap of accelerator names.
# TYPE wva_unlisted_accelerator_nodes gauge
wva_unlisted_accelerator_nodes{controller_instance="a",product="ACME-9000"} 2
# HELP wva_variant_free_slots Replicas that still fit on the cluster, beside those that were asked for before the last round. No series while that is unknown.
# TYPE wva_variant_free_slots gauge
wva_variant_free_slots{accelerator_type="H100",controller_instance="a",namespace="n",variant_name="v"} 7
`), "wva_variant_free_slots", "wva_unlisted_accelerator_nodes"))
	seen = &Round{}
	set(settled(func(p *decision.VariantPlan) { p.Accelerator = "H200" }))
	assert.Equal(t, 6, testutil.CollectAndCount(g), "the series of another accelerator, of another variant and of a missing target are gone")
}

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// at is a sample of an instant.
func at(time time.Time, value float64) decision.Sample {
	return decision.Sample{Value: value, Time: time, Present: true}
}

// seenServing is an observation of one variant with these replicas.
func seenServing(replicas ...decision.Replica) *observation {
	seen := &observation{variants: map[decision.Key]*variant{{Namespace: "n", Name: "v"}: {id: "m-H100-1"}}}
	seen.snapshot = decision.Snapshot{Time: noon, Models: []decision.Model{{Namespace: "n", ID: "m", Variants: []decision.Variant{{Name: "v", Replicas: replicas}}}}}
	seen.policy = decision.DefaultPolicy()
	return seen
}

func TestPublishedNames(t *testing.T) {
	g := newGauges(nil)
	p := newPublished(g, prometheus.Labels{"controller_instance": "blue"})
	assert.Zero(t, testutil.CollectAndCount(p), "nothing before the first round")
	g.plan.Store(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*settled(fallingBack(5, decision.FallbackPrevious))}}}})
	p.see(seenServing(
		decision.Replica{Served: at(noon, 3), InFlightGrowth: at(noon, 0.5), TTFT: at(noon, 0.25), ITL: at(noon, 0.03)},
		decision.Replica{Served: at(noon, 1), TTFT: at(noon, 0.5), ITL: at(noon.Add(-time.Hour), 9)},
	))
	// Load: (3 + 0.5 + 1) requests/s are 270 per minute. TTFT: (3*0.25 + 1*0.5) / 4 s are 312.5 ms;
	// the old ITL does not count.
	labels := `{accelerator_type="H100",controller_instance="blue",namespace="n",variant_id="m-H100-1",variant_name="v"}`
	values := map[string]string{
		"inferno_current_load": "270", "inferno_ttft_average": "312.5", "inferno_itl_average": "30",
		"inferno_desired_replicas": "5", "inferno_current_replicas": "2", "inferno_desired_ratio": "2.5",
	}
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(p))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		want := "# HELP " + family.GetName() + " " + family.GetHelp() + "\n# TYPE " + family.GetName() + " gauge\n" + family.GetName() + labels + " " + values[family.GetName()] + "\n"
		require.NoError(t, testutil.CollectAndCompare(p, strings.NewReader(want), family.GetName()))
		delete(values, family.GetName())
	}
	assert.Empty(t, values)

	p.see(seenServing(decision.Replica{Served: at(noon, 3), TTFT: at(noon, 0.2)}, decision.Replica{}))
	assert.Equal(t, 1, testutil.CollectAndCount(p, "inferno_ttft_average"))
	assert.Zero(t, testutil.CollectAndCount(p, "inferno_current_load"), "unknown is not zero")
	assert.Zero(t, testutil.CollectAndCount(p, "inferno_itl_average"))
	g.plan.Store(&decision.Plan{Models: []decision.ModelPlan{{Variants: []decision.VariantPlan{*unsettled(decision.ReasonTargetMissing)}}}})
	assert.Zero(t, testutil.CollectAndCount(p), "the series end with the target")
}

func TestQualityOfDecisions(t *testing.T) {
	q := newQuality(nil)
	round := func(after time.Duration, triggered bool, change func(*decision.VariantPlan)) {
		seen := seenServing(decision.Replica{KVUse: at(noon.Add(-7*time.Second), 0.5), Waiting: at(noon.Add(-3*time.Second), 0)})
		q.see(&decision.Plan{Time: noon.Add(after), Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Triggered: triggered, Variants: []decision.VariantPlan{*settled(change)}}}}, seen)
	}
	same := func(*decision.VariantPlan) {}
	round(0, false, fallingBack(5, decision.FallbackPrevious))
	round(0, true, same)
	round(10*time.Second, true, same)
	round(35*time.Second, false, same)
	assert.InDelta(t, 1, testutil.ToFloat64(q.held.WithLabelValues("v", "n")), 0)
	assert.InDelta(t, 7, testutil.ToFloat64(q.age.WithLabelValues("m", "n")), 0)
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

	q.see(&decision.Plan{Time: noon}, &observation{})
	q.gone(decision.Key{Namespace: "n", Name: "v"})
	for _, c := range q.collectors() {
		assert.Zero(t, testutil.CollectAndCount(c), "the series end with the objects")
	}
}

func TestInputsAndScoresAreLoggedInDetail(t *testing.T) {
	var log bench
	plan := &decision.Plan{Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Demand: &decision.Demand{Arrival: 4}, Variants: []decision.VariantPlan{*settled()}}}}
	seen := seenServing(decision.Replica{Name: "pod", KVUse: at(noon, 0.5)})
	logDetail(log.loggingAt(t, detailed-1), plan, seen)
	assert.Empty(t, log.logs)
	logDetail(log.loggingAt(t, detailed), plan, seen)
	for _, want := range []string{
		`"Inputs of a model" "model"="m"`, `"Inputs of a replica" "variant"={"name"="v" "namespace"="n"} "pod"="pod" "kvUse"=0.5 "waiting"="unknown"`,
		`"Scores of a model" "model"="m" "namespace"="n" "arrival"=4`, `"Scores of a variant" "variant"={"name"="v" "namespace"="n"} "servesEach"=`,
	} {
		assert.Len(t, log.logged(want), 1, "%s is not once in %s", want, log.logs)
	}
}

func TestTheReferenceHasEveryMetric(t *testing.T) {
	references, err := MetricReferences()
	require.NoError(t, err)
	byName := map[string]MetricReference{}
	for _, r := range references {
		byName[r.Name] = r
		assert.NotEmpty(t, r.Help)
	}
	assert.Equal(t, []string{"accelerator_type", "namespace", "variant_id", "variant_name"}, byName["inferno_current_load"].Labels)
	assert.Equal(t, "counter", byName["wva_replica_scaling_total"].Kind)
	// Whatever a collector describes is there.
	g := newGauges(nil)
	described := make(chan *prometheus.Desc, 100)
	for _, c := range append(newQuality(nil).collectors(), g, newPublished(g, nil), newTelemetry(nil).duration, newTelemetry(nil).lastRound) {
		c.Describe(described)
	}
	assert.Len(t, references, len(described))
}

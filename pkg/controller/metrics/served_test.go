package metrics

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// A token takes 20 ms whatever else is in service.
var flat = serving.Profile{Base: 20, BatchLimit: 100, KVTokens: 1_000_000}

func TestPredictedLatencyStandsBesideTheObservedOne(t *testing.T) {
	busy := decision.Replica{Served: at(noon, 3), Input: at(noon, 100), Output: at(noon, 50), TTFT: at(noon, 0.25), ITL: at(noon, 0.03)}
	idle := decision.Replica{Served: at(noon, 0)}
	old := busy
	old.Served = at(noon.Add(-time.Hour), 3)
	learned := flat
	learned.Base = 40
	usable := decision.LatencyMemory{Estimate: serving.Estimate{Profile: learned, Confidence: serving.UsableConfidence}}
	doubtful := usable
	doubtful.Estimate.Confidence = serving.UsableConfidence / 2
	cases := []struct {
		name     string
		given    serving.Profile
		learning decision.LatencyMemory
		replicas []decision.Replica
		// predicted ITL in seconds; 0 means no series.
		predicted float64
		// observed says that there is one without it.
		observed bool
	}{
		{"the given model", flat, decision.LatencyMemory{}, []decision.Replica{busy}, 0.02, false},
		{"an idle replica beside", flat, decision.LatencyMemory{}, []decision.Replica{busy, idle}, 0.02, false},
		{"the learned model", flat, usable, []decision.Replica{busy}, 0.04, false},
		{"too little was seen", flat, doubtful, []decision.Replica{busy}, 0.02, false},
		{"no model", serving.Profile{}, decision.LatencyMemory{}, []decision.Replica{busy}, 0, true},
		{"nothing is served", flat, decision.LatencyMemory{}, []decision.Replica{idle}, 0, false},
		{"the load of one is not known", flat, decision.LatencyMemory{}, []decision.Replica{busy, old}, 0, true},
		{"nobody serves", flat, decision.LatencyMemory{}, nil, 0, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := New("", false)
			seen := seenServing(c.replicas...)
			seen.Snapshot.Models[0].Variants[0].Profile = c.given
			seen.Believed.Variants = map[decision.Key]*decision.VariantMemory{{Namespace: "n", Name: "v"}: {Latency: c.learning}}
			m.Show(&decision.Plan{Time: noon}, seen)
			values := latencies(t, m)
			if c.predicted == 0 {
				assert.Zero(t, testutil.CollectAndCount(m.gauges, "wva_predicted_latency_seconds"))
				assert.Equal(t, c.observed, values["wva_observed_latency_seconds ITL"] > 0, "what is seen needs no model")
				return
			}
			assert.InDelta(t, c.predicted, values["wva_predicted_latency_seconds ITL"], 1e-9)
			assert.InDelta(t, 0.03, values["wva_observed_latency_seconds ITL"], 1e-9)
			assert.Positive(t, values["wva_predicted_latency_seconds TTFT"])
			assert.InDelta(t, 0.25, values["wva_observed_latency_seconds TTFT"], 1e-9)
			m.Show(&decision.Plan{Time: noon}, &Round{})
			assert.Empty(t, latencies(t, m), "the series end with the objects")
		})
	}
}

// latencies are the values of the series of latencies of the variant v, by name and label.
func latencies(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	registry, values := prometheus.NewPedanticRegistry(), map[string]float64{}
	require.NoError(t, m.Register(registry))
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, series := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range series.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if labels["latency"] != "" && labels["variant_name"] == "v" && labels["namespace"] == "n" {
				values[family.GetName()+" "+labels["latency"]] = series.GetGauge().GetValue()
			}
		}
	}
	return values
}

// Whoever scrapes while a round is shown sees the round before or this one, and no gap.
func TestAScrapeSeesAWholeRound(t *testing.T) {
	m := New("", true)
	seen := seenServing(decision.Replica{
		Served: at(noon, 3), KVUse: at(noon, 0.5), Input: at(noon, 100), Output: at(noon, 50), TTFT: at(noon, 0.25), ITL: at(noon, 0.03),
	})
	seen.Snapshot.Models[0].Variants[0].Profile = flat
	plan := &decision.Plan{Time: noon, Models: []decision.ModelPlan{{Namespace: "n", ID: "m", Variants: []decision.VariantPlan{*settled()}}}}
	registry := prometheus.NewRegistry()
	require.NoError(t, m.Register(registry))
	m.Show(plan, seen)
	whole, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	ended, rounds := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(rounds)
		for {
			select {
			case <-ended:
				return
			default:
				m.Show(plan, seen)
			}
		}
	}()
	for range 2000 {
		count, err := testutil.GatherAndCount(registry)
		require.NoError(t, err)
		if !assert.Equal(t, whole, count) {
			break
		}
	}
	close(ended)
	<-rounds
}

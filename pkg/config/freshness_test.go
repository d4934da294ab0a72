package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// reasonOfMetrics is what a decision with the settings says of metrics of that age.
func reasonOfMetrics(t *testing.T, age time.Duration, settings map[string]string) decision.Reason {
	t.Helper()
	data := map[string]string{"PROMETHEUS_BASE_URL": "https://p"}
	for name, value := range settings {
		data[name] = value
	}
	loaded, err := config.Load(config.Sources{Map: data})
	require.NoError(t, err)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	old := func(value float64) decision.Sample {
		return decision.Sample{Value: value, Time: now.Add(-age), Present: true}
	}
	replica := decision.Replica{
		Name: "a-0", Since: now.Add(-time.Hour), KVUse: old(0.4), Waiting: old(0), Running: old(4), Served: old(2),
		InService: old(2), InFlightGrowth: old(0), Recent: old(2), RecentSpan: 15 * time.Second, Input: old(500), Output: old(100),
	}
	plan, _ := decision.Decide(decision.Snapshot{Time: now, Models: []decision.Model{{
		Namespace: "chat", ID: "llama",
		Variants: []decision.Variant{{Name: "a", Target: decision.TargetFound, Current: 1, Ready: 1, Replicas: []decision.Replica{replica}, Cost: 1,
			Request: &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1}}}},
	}}}, loaded.Policy(), decision.Memory{}, decision.RoundFull)
	for _, step := range plan.Models[0].Variants[0].Steps {
		if step.Stage == decision.StageFreshness {
			return step.Reason
		}
	}
	require.Fail(t, "no step says how old the metrics are", "%+v", plan.Models[0].Variants[0])
	return ""
}

// Each of the three ages moves its own border: fresh, too old to remove replicas, too old to act
// on, and absent.
func TestTheAgesOfMetricsCount(t *testing.T) {
	t.Parallel()
	const fresh, stale, unavailable = "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD", "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD"
	for name, c := range map[string]struct {
		age      time.Duration
		setting  string
		value    string
		without  decision.Reason
		expected decision.Reason
	}{
		"fresh for longer":         {90 * time.Second, fresh, "100s", decision.ReasonMetricsPartial, decision.ReasonMetricsFound},
		"fresh for a shorter time": {30 * time.Second, fresh, "20s", decision.ReasonMetricsFound, decision.ReasonMetricsPartial},
		"stale later":              {150 * time.Second, stale, "3m", decision.ReasonMetricsStale, decision.ReasonMetricsPartial},
		"stale earlier":            {90 * time.Second, stale, "80s", decision.ReasonMetricsPartial, decision.ReasonMetricsStale},
		"absent later":             {6 * time.Minute, unavailable, "7m", decision.ReasonMetricsMissing, decision.ReasonMetricsStale},
		"absent earlier":           {3 * time.Minute, unavailable, "150s", decision.ReasonMetricsStale, decision.ReasonMetricsMissing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.without, reasonOfMetrics(t, c.age, nil), "by default")
			assert.Equal(t, c.expected, reasonOfMetrics(t, c.age, map[string]string{c.setting: c.value}))
		})
	}
}

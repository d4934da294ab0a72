package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

func TestPoliciesChangeTheManagersSettings(t *testing.T) {
	s, err := scenario.Parse(scenario.BuiltIn(), scenario.Options{Cluster: "full"})
	require.NoError(t, err)
	for _, c := range []struct {
		name, value string
		change      func(*decision.Policy)
	}{
		{"wva_slo_percentile", "0.95", func(p *decision.Policy) { p.Share = 0.95 }},
		{"slo_percentile", "0.95", func(p *decision.Policy) { p.Share = 0.95 }},
		{"horizon", "7m", func(p *decision.Policy) { p.Horizon = 7 * time.Minute }},
		{"interval", "30s", func(p *decision.Policy) { p.Interval = 30 * time.Second }},
		{"limited_mode", "false", func(p *decision.Policy) { p.Limited = false }},
		{"window", "2m", func(p *decision.Policy) { p.Window = 2 * time.Minute }},
		{"kvcachethreshold", "0.6", func(p *decision.Policy) { p.Saturation.KVCacheThreshold = 0.6 }},
		{"queue_spare_trigger", "2", func(p *decision.Policy) { p.Saturation.QueueSpareTrigger = 2 }},
	} {
		got, err := s.Settings.Over([]replay.Parameter{{Name: c.name, Value: c.value}})
		require.NoError(t, err, c.name)
		want := s.Policy
		c.change(&want)
		assert.Equal(t, want, got, c.name)
		assert.NotEqual(t, s.Policy, got, "%s has an effect", c.name)
	}
	same, err := s.Settings.Over(nil)
	require.NoError(t, err)
	assert.Equal(t, s.Policy, same, "without changes it is the scenario's")
	for _, c := range []struct{ name, value, says string }{
		{"magic", "1", "magic is no setting of a decision: expected down, up, kvCacheThreshold, "},
		{"threshold", "1m", "threshold may be PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD or PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD or PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD: expected the whole name"},
		{"prometheus_base_url", "http://x", "prometheus_base_url is no setting of a decision"},
		{"experimental_proactive_model", "true", "experimental_proactive_model has no effect: expected the policy hybrid or capacity-only instead"},
		{"wva_slo_percentile", "95", "WVA_SLO_PERCENTILE"},
		{"kvCacheThreshold", "much", `kvCacheThreshold is "much": expected a number`},
		{"kvCacheThreshold", "3", "kvCacheThreshold"},
	} {
		_, err := s.Settings.Over([]replay.Parameter{{Name: c.name, Value: c.value}})
		require.ErrorContains(t, err, c.says)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestPoliciesOfAScenario(t *testing.T) {
	with := func(policies string) string {
		return strings.Replace(string(scenario.BuiltIn()), "\npolicies: []", "\npolicies: "+policies, 1)
	}
	s, err := scenario.Parse([]byte(with(`[hybrid, "hybrid:horizon=10m,down=2m", "hpa:max=40,rps=4.50,variant=llama-70b-h200-2"]`)), scenario.Options{})
	require.NoError(t, err)
	assert.Equal(t, []string{"hybrid", "hybrid:down=120s,horizon=10m", "hpa:rps=4.5,max=40,variant=llama-70b-h200-2"}, s.Policies)
	for policies, says := range map[string]string{
		`[best]`:                       `policies[0]: unknown policy "best"; expected one of`,
		`[peak, "hpa:rps=4,down=1"]`:   `policies[1]: policy "hpa:rps=4,down=1": down is "1"; expected`,
		`["hpa:rps=4,variant=mine"]`:   `policies[0]: policy "hpa:rps=4,variant=mine": variant: no variant is named mine; expected one of llama-70b-h100-4,`,
		`["hybrid:magic=1"]`:           `policies[0]: policy "hybrid:magic=1": magic is no setting of a decision`,
		`["hpa:rps=4.0", "hpa:rps=4"]`: `policies[1] is hpa:rps=4, which is there before: expected each policy once`,
		`["hybrid:window=20s"]`:        `policies[0]: policy "hybrid:window=20s": metrics are scraped every 15s, over a window of 20s`,
		`hybrid`:                       `policies is "hybrid": expected a list`,
		`["static:2,split=llama-70b-h100-4:1+llama-70b-h100-4:2"]`: `split has variant llama-70b-h100-4 twice`,
	} {
		_, err := scenario.Parse([]byte(with(policies)), scenario.Options{})
		assert.ErrorContains(t, err, says, policies)
	}
}

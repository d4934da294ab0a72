package replay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestParametersOfOurs(t *testing.T) {
	s := small()
	assert.Equal(t, []Parameter{
		{"interval", "1m0s"}, {"fastInterval", "10s"}, {"scrapeInterval", "15s"}, {"metricsWindow", "1m0s"}, {"gateway", "true"},
		{"hybrid", "true"}, {"limited", "false"}, {"promisedShare", "0.99"}, {"history", "true"},
		{"growthLimit", "40 replicas or 300%, whichever is more"}, {"horizon", "30m0s"}, {"drain", "2m0s"},
		{"startupDeadline", "10m0s"}, {"scaleToZero", "never"}, {"risk", "0.9"},
		{"kvCacheThreshold", "0.8"}, {"queueLengthThreshold", "5"}, {"kvSpareTrigger", "0.1"}, {"queueSpareTrigger", "3"},
		{"replicas", "0 or more"}, {"scaleUp", "window 0s"}, {"scaleDown", "window up to 5m0s"}, {"profile", "given"},
	}, newOurs(s, true).Parameters())

	s = two()
	cheap, y := &s.Models[0].Variants[0], &s.Models[1].Variants[0]
	cheap.Policy.Min, cheap.Policy.Max, cheap.Given = 1, 4, serving.Profile{}
	y.Policy.Down = decision.Behavior{Window: time.Minute, Tolerance: 0.1, Select: decision.SelectMin, Policies: []decision.RatePolicy{
		{Pods: 2, Period: time.Minute}, {Percent: 10, Period: time.Minute},
	}}
	y.Policy.Up.Select = decision.SelectDisabled
	tiny := decision.ModelKey{Namespace: "another", ID: "tiny"}
	s.Policy.IdleByModel = map[decision.ModelKey]decision.Idle{tiny: {Enabled: true, Retention: time.Minute}}
	s.Policy.SaturationByModel = map[decision.ModelKey]decision.Saturation{tiny: {KVCacheThreshold: 0.7, QueueLengthThreshold: 5, KVSpareTrigger: 0.1, QueueSpareTrigger: 3}}
	s.Policy.Growth = decision.Growth{}
	got := newOurs(s, false).Parameters()
	for _, want := range []Parameter{
		{"hybrid", "false"}, {"growthLimit", "none"},
		{"scaleToZero", "small: never; tiny: after 1m0s"},
		{"kvCacheThreshold", "small: 0.8; tiny: 0.7"},
		{"queueLengthThreshold", "5"},
		{"replicas", "cheap: 1 to 4; dear: 0 or more; y: 0 or more; x: 0 or more"},
		{"scaleUp", "cheap: window 0s; dear: window 0s; y: disabled; x: window 0s"},
		{"scaleDown", "cheap: window up to 5m0s; dear: window up to 5m0s; y: window 1m0s, 2 pods per 1m0s, 10% per 1m0s, the smaller change, tolerance 0.1; x: window up to 5m0s"},
		{"profile", "cheap: learned; dear: given; y: given; x: given"},
	} {
		assert.Contains(t, got, want)
	}
}

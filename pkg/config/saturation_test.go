package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestParseSaturation(t *testing.T) {
	published := decision.Saturation{KVCacheThreshold: 0.80, QueueLengthThreshold: 5, KVSpareTrigger: 0.10, QueueSpareTrigger: 3}
	llama := decision.ModelKey{Namespace: "chat", ID: "meta/llama-3.1-8b"}
	tests := map[string]struct {
		data     map[string]string
		base     decision.Saturation
		byModel  map[decision.ModelKey]decision.Saturation
		warnings []string
	}{
		"no data at all": {base: published},
		"a default that gives everything": {
			data: map[string]string{"default": "kvCacheThreshold: 0.7\nqueueLengthThreshold: 8\nkvSpareTrigger: 0.2\nqueueSpareTrigger: 4\n"},
			base: decision.Saturation{KVCacheThreshold: 0.7, QueueLengthThreshold: 8, KVSpareTrigger: 0.2, QueueSpareTrigger: 4},
		},
		"a default that gives one field inherits the published rest": {
			data: map[string]string{"default": "kvCacheThreshold: 0.9"},
			base: decision.Saturation{KVCacheThreshold: 0.9, QueueLengthThreshold: 5, KVSpareTrigger: 0.10, QueueSpareTrigger: 3},
		},
		"an override is found by the model inside it and inherits the default": {
			data: map[string]string{
				"default": "kvCacheThreshold: 0.9\n",
				"llama":   "model_id: meta/llama-3.1-8b\nnamespace: chat\nqueueLengthThreshold: 20\n",
			},
			base: decision.Saturation{KVCacheThreshold: 0.9, QueueLengthThreshold: 5, KVSpareTrigger: 0.10, QueueSpareTrigger: 3},
			byModel: map[decision.ModelKey]decision.Saturation{
				llama: {KVCacheThreshold: 0.9, QueueLengthThreshold: 20, KVSpareTrigger: 0.10, QueueSpareTrigger: 3},
			},
		},
		"zero is a value, not an absence": {
			data: map[string]string{
				"llama": "model_id: meta/llama-3.1-8b\nnamespace: chat\nqueueSpareTrigger: 0\nkvSpareTrigger: 0\n",
			},
			base: published,
			byModel: map[decision.ModelKey]decision.Saturation{
				llama: {KVCacheThreshold: 0.80, QueueLengthThreshold: 5},
			},
		},
		"the same model in two namespaces": {
			data: map[string]string{
				"a": "{model_id: m, namespace: one, queueLengthThreshold: 6}",
				"b": "{model_id: m, namespace: two, queueLengthThreshold: 7}",
			},
			base: published,
			byModel: map[decision.ModelKey]decision.Saturation{
				{Namespace: "one", ID: "m"}: {KVCacheThreshold: 0.80, QueueLengthThreshold: 6, KVSpareTrigger: 0.10, QueueSpareTrigger: 3},
				{Namespace: "two", ID: "m"}: {KVCacheThreshold: 0.80, QueueLengthThreshold: 7, KVSpareTrigger: 0.10, QueueSpareTrigger: 3},
			},
		},
		"fields without effect are named": {
			data:     map[string]string{"default": "enableLimiter: true\nkvCacheTreshold: 0.5\n"},
			base:     published,
			warnings: []string{`entry "default": enableLimiter has no effect: set WVA_LIMITED_MODE, which is for all models`, `entry "default": kvCacheTreshold has no effect: correct its name or remove it`},
		},
		"an override is valid only after the merge": {
			data: map[string]string{
				"default": "kvSpareTrigger: 0.3\n",
				"llama":   "model_id: meta/llama-3.1-8b\nnamespace: chat\nkvSpareTrigger: 0.05\nkvCacheThreshold: 0.1\n",
			},
			base: decision.Saturation{KVCacheThreshold: 0.8, QueueLengthThreshold: 5, KVSpareTrigger: 0.3, QueueSpareTrigger: 3},
			byModel: map[decision.ModelKey]decision.Saturation{
				llama: {KVCacheThreshold: 0.1, QueueLengthThreshold: 5, KVSpareTrigger: 0.05, QueueSpareTrigger: 3},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, warnings, err := config.ParseSaturation(test.data)
			require.NoError(t, err)
			assert.Equal(t, test.base, got.Default)
			assert.Equal(t, test.byModel, got.ByModel)
			assert.Equal(t, test.warnings, warnings)
		})
	}
}

func TestParseSaturationReachesThePolicy(t *testing.T) {
	thresholds, _, err := config.ParseSaturation(map[string]string{
		"default": "queueLengthThreshold: 9",
		"x":       "{model_id: m, namespace: chat, queueLengthThreshold: 11}",
	})
	require.NoError(t, err)
	policy := config.Dynamic{Saturation: thresholds}.Policy()
	assert.InDelta(t, 11, policy.SaturationOf(decision.ModelKey{Namespace: "chat", ID: "m"}).QueueLengthThreshold, 0)
	assert.InDelta(t, 9, policy.SaturationOf(decision.ModelKey{Namespace: "other", ID: "m"}).QueueLengthThreshold, 0)
}

func TestParseSaturationErrors(t *testing.T) {
	tests := map[string]struct {
		data map[string]string
		want []string
	}{
		"a share above one": {map[string]string{"default": "kvCacheThreshold: 80"},
			[]string{`entry "default": kvCacheThreshold is 80: write a share from 0 to 1`}},
		"a negative queue": {map[string]string{"default": "queueLengthThreshold: -1"},
			[]string{`entry "default": queueLengthThreshold is -1: write a number of requests, at least 0`}},
		"a spare KV cache above its threshold": {map[string]string{"default": "kvCacheThreshold: 0.05"},
			[]string{`entry "default": kvSpareTrigger is 0.1: write at most kvCacheThreshold (0.05)`}},
		"a spare queue above its threshold": {map[string]string{"default": "queueLengthThreshold: 2"},
			[]string{`entry "default": queueSpareTrigger is 3: write at most queueLengthThreshold (2)`}},
		"a number in quotes": {map[string]string{"default": `kvCacheThreshold: "0.8"`},
			[]string{`entry "default": kvCacheThreshold is 0.8: write a number`}},
		"no YAML": {map[string]string{"default": "0.8"},
			[]string{`entry "default": `, "write it as YAML, one field: value per line"}},
		"a default for one model": {map[string]string{"default": "model_id: m"},
			[]string{`entry "default": names a model (model_id "m", namespace ""): move it to an entry of another name`}},
		"an override without a model": {map[string]string{"x": "namespace: chat"},
			[]string{`entry "x": model_id is "" and namespace is "chat": name both`}},
		"an override without a namespace": {map[string]string{"x": "model_id: m"},
			[]string{`entry "x": model_id is "m" and namespace is "": name both`}},
		"a model that is no text": {map[string]string{"x": "{model_id: 8, namespace: chat}"},
			[]string{`entry "x": model_id is 8: write a text, in quotes`}},
		"two overrides of one model": {map[string]string{"x": "{model_id: m, namespace: chat}", "y": "{model_id: m, namespace: chat}"},
			[]string{`entry "y": is for model m in namespace chat, as entry "x" is: remove one`}},
		"an override that is wrong after the merge": {map[string]string{"x": "{model_id: m, namespace: chat, kvCacheThreshold: 0.01}"},
			[]string{`entry "x": kvSpareTrigger is 0.1: write at most kvCacheThreshold (0.01)`}},
		"all that is wrong is named": {map[string]string{"default": "kvCacheThreshold: 2", "x": "model_id: m"},
			[]string{`entry "default"`, `entry "x"`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, _, err := config.ParseSaturation(test.data)
			require.Error(t, err)
			assert.Zero(t, got)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

func FuzzParseSaturation(f *testing.F) {
	f.Add("kvCacheThreshold: 0.8\nqueueLengthThreshold: 5\n", "model_id: m\nnamespace: chat\nkvSpareTrigger: 0.2\n")
	f.Add("{}", "model_id: [1]\n")
	f.Add("kvCacheThreshold: .nan", "kvCacheThreshold: 1e400")
	f.Fuzz(func(t *testing.T, base, override string) {
		got, _, err := config.ParseSaturation(map[string]string{"default": base, "override": override})
		if err != nil {
			return
		}
		for _, s := range append([]decision.Saturation{got.Default}, got.ByModel[decision.ModelKey{Namespace: "chat", ID: "m"}]) {
			assert.LessOrEqual(t, s.KVSpareTrigger, s.KVCacheThreshold)
			assert.LessOrEqual(t, s.QueueSpareTrigger, s.QueueLengthThreshold)
			assert.LessOrEqual(t, s.KVCacheThreshold, 1.0)
			assert.GreaterOrEqual(t, s.QueueSpareTrigger, 0.0)
		}
	})
}

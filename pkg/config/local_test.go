package config

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestConfigMapsOfNamespacesStandInThePlaceOfTheManagers(t *testing.T) {
	llama, qwen := decision.ModelKey{Namespace: "chat", ID: "llama"}, decision.ModelKey{Namespace: "chat", ID: "qwen"}
	beside, _, err := ParseSaturation(map[string]string{
		"default": "kvCacheThreshold: 0.7", "llama": "{model_id: llama, namespace: chat, queueLengthThreshold: 9}",
	})
	require.NoError(t, err)
	sleep, _, err := ParseScaleToZero(map[string]string{"default": "enable_scale_to_zero: true", "llama": "{model_id: llama, retention_period: 1h}"})
	require.NoError(t, err)
	settings := Dynamic{Saturation: beside, ScaleToZero: sleep, Idle: decision.Idle{Retention: time.Minute}}
	thresholds := func(kvCache, queue float64) decision.Saturation {
		s := decision.DefaultSaturation()
		s.KVCacheThreshold, s.QueueLengthThreshold = kvCache, queue
		return s
	}

	none := settings.In(Local{})
	assert.Equal(t, thresholds(0.7, 9), none.SaturationOf(llama))
	assert.Equal(t, thresholds(0.7, 5), none.SaturationOf(qwen))
	assert.Equal(t, decision.Idle{Enabled: true, Retention: time.Hour}, none.IdleOf(llama))

	// Nothing of the one beside the manager is left, not even what the other does not say.
	own, warnings, err := ParseLocalSaturation("chat", map[string]string{"qwen": "{model_id: qwen, kvCacheThreshold: 0.5}"})
	require.NoError(t, err)
	assert.Empty(t, warnings, "the namespace need not be said")
	zero, _, err := ParseLocalScaleToZero("chat", map[string]string{"qwen": "{model_id: qwen, enable_scale_to_zero: true}"})
	require.NoError(t, err)
	there := settings.In(Local{Saturation: &own, ScaleToZero: &zero})
	assert.Equal(t, decision.DefaultSaturation(), there.SaturationOf(llama))
	assert.Equal(t, thresholds(0.5, 5), there.SaturationOf(qwen))
	assert.Equal(t, decision.Idle{Retention: time.Minute}, there.IdleOf(llama))
	assert.Equal(t, decision.Idle{Enabled: true, Retention: time.Minute}, there.IdleOf(qwen))

	// One of the two kinds leaves the other as it is.
	half := settings.In(Local{Saturation: &own})
	assert.Equal(t, decision.Idle{Enabled: true, Retention: time.Hour}, half.IdleOf(llama))
	assert.Equal(t, thresholds(0.7, 9), settings.SaturationOf(llama), "the settings themselves stay")
}

func TestEntriesForOtherNamespacesHaveNoEffect(t *testing.T) {
	const other = `entry "x": has no effect, because it is for namespace batch and the ConfigMap is in chat: remove it, or move it there`
	thresholds, warnings, err := ParseLocalSaturation("chat", map[string]string{"x": "{model_id: m, namespace: batch, kvCacheThreshold: 0.5}"})
	require.NoError(t, err)
	assert.Equal(t, []string{other}, warnings)
	assert.Equal(t, DefaultSaturation(), thresholds)
	sleep, warnings, err := ParseLocalScaleToZero("chat", map[string]string{"x": "{model_id: m, namespace: batch, enable_scale_to_zero: true}", "y": "{model_id: m, namespace: chat, enable_scale_to_zero: true}"})
	require.NoError(t, err)
	assert.Equal(t, []string{other}, warnings)
	assert.Equal(t, map[decision.ModelKey]IdleEntry{{Namespace: "chat", ID: "m"}: {Enabled: ptr.To(true)}}, sleep.ByModel)

	_, _, err = ParseLocalSaturation("chat", map[string]string{"x": "{model_id: m}", "y": "{model_id: m, namespace: chat}"})
	require.ErrorContains(t, err, "is for model m in namespace chat")
}

package controller

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// newTestFollower follows the ConfigMaps of an API server that has none yet.
func newTestFollower(t *testing.T) (*follower, client.Client, chan string) {
	t.Helper()
	sources := config.Sources{Flags: map[string]string{"prometheus-base-url": "https://prometheus"}}
	loaded, err := config.Load(sources)
	require.NoError(t, err)
	api := fake.NewClientBuilder().Build()
	recorder := events.NewFakeRecorder(10)
	return &follower{
		reader: api, recorder: recorder, settings: newSettings(loaded.Dynamic), names: &inventory.Names{},
		trigger: newTrigger(), sources: sources, config: loaded, rejected: map[string]string{},
	}, api, recorder.Events
}

func TestConfigMapsThatAreFollowed(t *testing.T) {
	model := decision.ModelKey{Namespace: "chat", ID: "llama"}
	tests := map[string]struct {
		name      string
		good, bad map[string]string
		seen      func(d *config.Dynamic) any
		// before holds without the ConfigMap, after with the good one.
		before, after any
		// complaint is what the event on the bad one says.
		complaint string
	}{
		"saturation": {
			name: "wva-saturation-scaling-config",
			good: map[string]string{"default": "queueLengthThreshold: 9"}, bad: map[string]string{"default": "kvCacheThreshold: 80"},
			seen:   func(d *config.Dynamic) any { return d.Policy().SaturationOf(model).QueueLengthThreshold },
			before: 5.0, after: 9.0, complaint: "kvCacheThreshold is 80",
		},
		"service classes": {
			name: "service-classes-config",
			good: map[string]string{"a": "{name: A, priority: 3, data: [{model: llama, slo-ttft: 700}]}"}, bad: map[string]string{"a": "{priority: 3, data: []}"},
			seen:   func(d *config.Dynamic) any { return d.Promise("llama", nil) },
			before: decision.Promise{Priority: 100}, after: decision.Promise{Class: "A", Priority: 3, SLO: capacity.SLO{TTFT: 700}},
			complaint: "name is missing",
		},
		"prices": {
			name: "accelerator-unit-costs",
			good: map[string]string{"H100": `{"cost": "4.0"}`}, bad: map[string]string{"H100": `{"cost": "much"}`},
			seen: func(d *config.Dynamic) any {
				cost, _ := d.UnitCosts.Of(capacity.Device{Accelerator: "H100"})
				return cost
			},
			before: capacity.Cost(0), after: capacity.Cost(4), complaint: "cost is much",
		},
		"scale to zero": {
			name: "wva-model-scale-to-zero-config",
			good: map[string]string{"x": "{model_id: llama, enable_scale_to_zero: true, retention_period: 5m}"}, bad: map[string]string{"x": "enable_scale_to_zero: true"},
			seen:   func(d *config.Dynamic) any { return d.IdleOf(model) },
			before: decision.Idle{Retention: 10 * time.Minute}, after: decision.Idle{Enabled: true, Retention: 5 * time.Minute},
			complaint: "model_id is missing",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f, api, told := newTestFollower(t)
			follow := func() {
				t.Helper()
				require.Contains(t, f.followed(), test.name)
				require.NoError(t, f.follow(context.Background(), test.name))
			}
			follow()
			assert.Equal(t, test.before, test.seen(f.settings.Current()))
			assert.Zero(t, f.trigger.take(), "nothing changed")

			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "workload-variant-autoscaler-system", Name: test.name}, Data: test.good}
			require.NoError(t, api.Create(t.Context(), object))
			follow()
			assert.Equal(t, test.after, test.seen(f.settings.Current()))
			assert.Equal(t, soon, f.trigger.take(), "a round looks at it")

			object.Data = test.bad
			require.NoError(t, api.Update(t.Context(), object))
			follow()
			follow()
			assert.Equal(t, test.after, test.seen(f.settings.Current()), "the last good settings stay")
			require.Len(t, told, 1, "it is told once")
			event := <-told
			assert.Contains(t, event, "Warning InvalidConfiguration")
			assert.Contains(t, event, test.complaint)

			require.NoError(t, api.Delete(t.Context(), object))
			follow()
			assert.Equal(t, test.before, test.seen(f.settings.Current()), "without the ConfigMap the defaults hold")
			assert.Empty(t, told)
		})
	}
}

func TestTheConfigurationFileIsFollowed(t *testing.T) {
	f, api, told := newTestFollower(t)
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.config.PodNamespace, Name: f.config.ConfigMap},
		Data:       map[string]string{configFile: "EXPERIMENTAL_PROACTIVE_MODEL: true\nWVA_SLO_PERCENTILE: 0.9\nWVA_METRICS_SOURCE: pods\n"},
	}
	require.NoError(t, api.Create(t.Context(), object))
	require.NoError(t, f.follow(t.Context(), object.Name))
	policy := f.settings.Current().Policy()
	assert.True(t, policy.Hybrid)
	assert.InDelta(t, 0.9, policy.Share, 0)
	require.Len(t, told, 1, "the source needs a restart")
	assert.Contains(t, <-told, "ImmutableConfigChangeRejected")

	require.NoError(t, api.Delete(t.Context(), object))
	require.NoError(t, f.follow(t.Context(), object.Name))
	assert.True(t, f.settings.Current().Hybrid, "a file that is gone changes nothing")
}

package settings

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
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
func newTestFollower(t *testing.T) (*Follower, client.Client, chan string) {
	t.Helper()
	sources := config.Sources{Flags: map[string]string{"prometheus-base-url": "https://prometheus"}}
	loaded, err := config.Load(sources)
	require.NoError(t, err)
	api := fake.NewClientBuilder().Build()
	recorder := events.NewFakeRecorder(10)
	return &Follower{
		Ready: make(chan struct{}), reader: api, teller: newTeller(recorder, nil), Settings: Of(loaded.Dynamic), Names: &inventory.Names{},
		changed: func() {}, sources: sources, config: loaded, entries: map[string]int{},
	}, api, recorder.Events
}

// logged is what was logged.
type logged struct{ lines []string }

func (l *logged) logging(t *testing.T) context.Context {
	t.Helper()
	return logr.NewContext(t.Context(), funcr.New(func(_, line string) { l.lines = append(l.lines, line) }, funcr.Options{}))
}

// with are the lines that hold a text.
func (l *logged) with(text string) []string {
	return slices.DeleteFunc(slices.Clone(l.lines), func(line string) bool { return !strings.Contains(line, text) })
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
			seen:   func(d *config.Dynamic) any { return d.Promise(decision.ModelKey{ID: "llama"}, nil) },
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
			changes := 0
			f.changed = func() { changes++ }
			follow := func() {
				t.Helper()
				require.Contains(t, f.followed(), test.name)
				require.NoError(t, f.follow(context.Background(), test.name))
			}
			follow()
			assert.Equal(t, test.before, test.seen(f.Settings.Current()))
			assert.Zero(t, changes, "nothing changed")

			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "workload-variant-autoscaler-system", Name: test.name}, Data: test.good}
			require.NoError(t, api.Create(t.Context(), object))
			follow()
			assert.Equal(t, test.after, test.seen(f.Settings.Current()))
			assert.Equal(t, 1, changes, "a round looks at it")

			object.Data = test.bad
			require.NoError(t, api.Update(t.Context(), object))
			follow()
			follow()
			assert.Equal(t, test.after, test.seen(f.Settings.Current()), "the last good settings stay")
			require.Len(t, told, 1, "it is told once")
			event := <-told
			assert.Contains(t, event, "Warning InvalidConfiguration")
			assert.Contains(t, event, test.complaint)

			object.Data, object.BinaryData = nil, map[string][]byte{"default": {0xff, 0xfe, 'q', 0}}
			require.NoError(t, api.Update(t.Context(), object))
			follow()
			assert.Equal(t, test.after, test.seen(f.Settings.Current()), "what is no text changes nothing")
			require.Len(t, told, 1)
			assert.Contains(t, <-told, "binaryData has default")

			require.NoError(t, api.Delete(t.Context(), object))
			follow()
			assert.Equal(t, test.before, test.seen(f.Settings.Current()), "without the ConfigMap the defaults hold")
			assert.Empty(t, told)
		})
	}
}

// A manager that starts beside a ConfigMap that cannot be used does not know what it said
// before: a model that must not sleep does not, and the event says what counts.
func TestConfigMapsThatCannotBeUsedAtTheStart(t *testing.T) {
	f, api, told := newTestFollower(t)
	f.config.Idle.Enabled = true
	model := decision.ModelKey{Namespace: "chat", ID: "llama"}
	put := func(name string, data map[string]string) {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.config.PodNamespace, Name: name}, Data: data}
		if err := api.Update(t.Context(), object); err != nil {
			require.NoError(t, api.Create(t.Context(), object))
		}
		require.NoError(t, f.follow(t.Context(), name))
	}
	const sleep = "wva-model-scale-to-zero-config"
	put(sleep, map[string]string{"x": "{model_id: llama, enable_scale_to_zero: false}", "y": "enable_scale_to_zero: maybe"})
	assert.False(t, f.Settings.Current().IdleOf(model).Enabled)
	assert.Contains(t, <-told, "no model scales to zero until it is corrected: ")
	put(sleep, map[string]string{"x": "{model_id: other, enable_scale_to_zero: false}"})
	assert.True(t, f.Settings.Current().IdleOf(model).Enabled)
	put(sleep, map[string]string{"y": "enable_scale_to_zero: maybe"})
	assert.True(t, f.Settings.Current().IdleOf(model).Enabled)
	assert.Contains(t, <-told, "the last good settings stay: ")
	put("accelerator-unit-costs", map[string]string{"H100": `{"cost": "much"}`})
	assert.Contains(t, <-told, "what holds without it counts, as no version of it could be used since the manager started: ")
}

func TestTheMainConfigMapIsFollowed(t *testing.T) {
	for layout, data := range map[string]func(pairs ...string) map[string]string{
		"entries": func(pairs ...string) map[string]string {
			data := map[string]string{}
			for i := 0; i < len(pairs); i += 2 {
				data[pairs[i]] = pairs[i+1]
			}
			return data
		},
		"config.yaml": func(pairs ...string) map[string]string {
			file := ""
			for i := 0; i < len(pairs); i += 2 {
				file += pairs[i] + ": " + pairs[i+1] + "\n"
			}
			return map[string]string{config.FileEntry: file}
		},
	} {
		t.Run(layout, func(t *testing.T) {
			f, api, told := newTestFollower(t)
			var verbosity int
			f.verbosity = func(v int) error { verbosity = v; return nil }
			var log logged
			ctx := log.logging(t)
			object := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: f.config.PodNamespace, Name: f.config.ConfigMap},
				Data:       data("EXPERIMENTAL_PROACTIVE_MODEL", "false", "WVA_SLO_PERCENTILE", "0.9", "GLOBAL_OPT_INTERVAL", "120s", "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD", "30s", "LOG_LEVEL", "4", "POOL_GROUP", "x"),
			}
			require.NoError(t, api.Create(t.Context(), object))
			require.NoError(t, f.follow(ctx, object.Name))
			require.NoError(t, f.follow(ctx, object.Name))
			policy := f.Settings.Current().Policy()
			assert.True(t, policy.Hybrid, "a mode needs a restart")
			assert.InDelta(t, 0.9, policy.Share, 0)
			assert.Equal(t, 2*time.Minute, policy.Interval)
			assert.Equal(t, 4, verbosity)
			require.Len(t, told, 1, "it is told once")
			event := <-told
			assert.Contains(t, event, "Warning ImmutableConfigChangeRejected")
			assert.Contains(t, event, `EXPERIMENTAL_PROACTIVE_MODEL (old: "true", new: "false")`)
			for _, want := range []string{
				`"Attempted to change immutable parameters; restart the manager to apply them"`,
				`"Updated optimization interval" "configMap"="workload-variant-autoscaler-variantautoscaling-config" "old"="1m0s" "new"="120s"`,
				`"Updated prometheus cache config" "configMap"="workload-variant-autoscaler-variantautoscaling-config" "key"="PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD" "old"="1m0s" "new"="30s"`,
				`"Updated config" "configMap"="workload-variant-autoscaler-variantautoscaling-config" "key"="WVA_SLO_PERCENTILE" "old"="0.99" "new"="0.9"`,
				"has no effect: no InferencePool is read",
			} {
				assert.Len(t, log.with(want), 1, "%s is not once in %s", want, log.lines)
			}

			require.NoError(t, api.Delete(t.Context(), object))
			require.NoError(t, f.follow(ctx, object.Name))
			assert.Equal(t, 2*time.Minute, f.Settings.Current().Interval, "a ConfigMap that is gone changes nothing")
		})
	}
}

func TestTheFirstOfThePublishedNamesCounts(t *testing.T) {
	f, api, told := newTestFollower(t)
	var log logged
	ctx := log.logging(t)
	queue := func() float64 { return f.Settings.Current().Saturation.Default.QueueLengthThreshold }
	put := func(name, length string) *corev1.ConfigMap {
		object := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: f.config.PodNamespace, Name: name},
			Data:       map[string]string{"default": "queueLengthThreshold: " + length, "a": "{model_id: a, namespace: b}"},
		}
		require.NoError(t, api.Create(ctx, object))
		require.NoError(t, f.follow(ctx, name))
		return object
	}
	old := put("capacity-scaling-config", "6")
	assert.InDelta(t, 6, queue(), 0)
	assert.Len(t, log.with(`"Updated saturation config" "configMap"="capacity-scaling-config" "oldEntries"=0 "newEntries"=2`), 1, log.lines)
	put("saturation-scaling-config", "7")
	assert.InDelta(t, 7, queue(), 0)
	require.Len(t, told, 1)
	assert.Equal(t, "Warning ConfigMapIgnored ConfigMap saturation-scaling-config holds the same kind of settings and counts: remove one of them", <-told)
	prefixed := put("wva-saturation-scaling-config", "8")
	assert.InDelta(t, 8, queue(), 0)
	require.Len(t, told, 1, "the other one was told of before")
	<-told
	require.NoError(t, api.Delete(ctx, prefixed))
	require.NoError(t, f.follow(ctx, prefixed.Name))
	assert.InDelta(t, 7, queue(), 0, "the next of them counts")
	require.NoError(t, api.Delete(ctx, old))
	require.NoError(t, f.follow(ctx, old.Name))
	assert.InDelta(t, 7, queue(), 0)
	assert.Empty(t, told)

	for family, names := range map[string][]string{
		"service classes": f.config.ServiceClassConfigMaps(), "prices": f.config.UnitCostConfigMaps(), "scale to zero": f.config.ScaleToZeroConfigMaps(),
	} {
		for _, name := range names {
			assert.Contains(t, f.followed(), name, family)
		}
	}
	assert.Subset(t, f.followed(), []string{"serviceclass", "model-scale-to-zero-config", "accelerator-unit-costs", "service-classes-config"})
}

// Every replica of a manager follows the ConfigMaps, and the one that leads tells of them.
func TestTheLeaderAloneTells(t *testing.T) {
	f, api, told := newTestFollower(t)
	elected := make(chan struct{})
	f.teller.elected = elected
	wrong := map[string]map[string]string{
		f.config.ConfigMap:              {"WVA_LIMITED_MODE": "true"},
		"wva-saturation-scaling-config": {"default": "kvCacheThreshold: 80"},
		"saturation-scaling-config":     {"default": "kvCacheThreshold: 0.7"},
	}
	for name, data := range wrong {
		require.NoError(t, api.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.config.PodNamespace, Name: name}, Data: data}))
	}
	ended := make(chan error)
	go func() { ended <- f.Start(t.Context()) }()
	<-f.Ready
	assert.Empty(t, told, "another replica leads, and tells")

	close(elected)
	require.NoError(t, <-ended)
	var reasons []string
	for len(told) > 0 {
		reasons = append(reasons, strings.Fields(<-told)[1])
	}
	assert.ElementsMatch(t, []string{"ImmutableConfigChangeRejected", "InvalidConfiguration", "ConfigMapIgnored"}, reasons, "it tells of what stands")

	for name := range wrong {
		require.NoError(t, f.follow(t.Context(), name))
	}
	assert.Empty(t, told, "each is told of once")
}

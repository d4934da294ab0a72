package scenario_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
)

// profiled is the part of a file that gives both variants of a live cluster a profile.
const profiled = `
models:
- id: llama
  variants:
  - {name: large, profile: {base: 9}}
  - {name: small, profile: {base: 10}}
`

func object(name string) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "llama"},
	}
}

func request(devices int) *placement.Request {
	return &placement.Request{Shape: capacity.Shape{Accelerator: "H100", Devices: devices, Pods: 1}}
}

// live is a cluster with one node and two variants of one model.
func live() scenario.Live {
	room := placement.Resources{Devices: 8, MilliCPU: 64000, MemoryBytes: 1 << 40, Pods: 110}
	return scenario.Live{
		Cluster:  &placement.Cluster{Nodes: []placement.Node{{Name: "n", Accelerator: "H100", Allocatable: room, Free: room}}},
		Variants: []scenario.LiveVariant{{Object: object("small"), Request: request(1)}, {Object: object("large"), Request: request(4)}},
		SLO:      capacity.SLO{TTFT: 1000},
	}
}

func TestALiveClusterWithProfilesFromAFile(t *testing.T) {
	l := live()
	s, err := l.Scenario([]byte(profiled), scenario.Options{})
	require.NoError(t, err)
	assert.Same(t, l.Cluster, s.Cluster)
	require.Len(t, s.Models, 1)
	m := s.Models[0]
	assert.Equal(t, []string{"demo", "llama"}, []string{m.Namespace, m.ID})
	assert.Equal(t, capacity.SLO{TTFT: 1000}, m.SLO)
	require.Len(t, m.Variants, 2)
	for i, want := range []struct {
		name string
		base capacity.Milliseconds
		from int
	}{{"large", 9, 1}, {"small", 10, 0}} {
		v := m.Variants[i]
		assert.Equal(t, want.name, v.Name)
		assert.Equal(t, serving.Profile{Base: want.base}, v.Profile)
		assert.Same(t, l.Variants[want.from].Request, v.Request)
		assert.Equal(t, config.Unpriced(v.Request.Shape.Device(), v.Request.Shape.Devices), v.Cost, "as the manager counts it")
		assert.True(t, v.Unpriced)
	}
}

func TestWhatTheClusterSaysAndWhatTheFileSaysOverIt(t *testing.T) {
	small := decision.Key{Namespace: "demo", Name: "small"}
	l := live()
	spec := &l.Variants[0].Object.Spec
	spec.VariantProfile = &v1alpha1.VariantProfile{PerfParms: &v1alpha1.PerfParms{
		DecodeParms: &v1alpha1.DecodeParms{Alpha: "7", Beta: "0.1"}, PrefillParms: &v1alpha1.PrefillParms{Gamma: "9", Delta: "0.01"},
	}}
	spec.MinReplicas, spec.MaxReplicas, spec.VariantCost = new(int32(2)), new(int32(5)), "3"
	spec.Actuation = v1alpha1.ActuationOff
	l.Variants = l.Variants[:1]
	var err error
	l.UnitCosts, _, err = config.ParseUnitCosts(map[string]string{"H100": "cost: 4"})
	require.NoError(t, err)
	l.ServiceClasses, _, err = config.ParseServiceClasses("x", map[string]string{"gold": "name: gold\npriority: 1\ndata: [{model: llama, slo-ttft: 300}]"})
	require.NoError(t, err)
	l.Configuration = []byte("WVA_LIMITED_MODE: true\nGLOBAL_OPT_INTERVAL: 30s\nSOMETHING_OLD: 1\n")

	s, err := l.Scenario(nil, scenario.Options{})
	require.NoError(t, err)
	v := s.Models[0].Variants[0]
	assert.Equal(t, serving.Profile{Base: 7, PerRequest: 0.1, PerPrefillToken: 0.01}, v.Profile)
	assert.True(t, v.Given.Known())
	assert.Equal(t, capacity.Cost(3), v.Cost)
	assert.Equal(t, []int{2, 5}, []int{v.Policy.Min, v.Policy.Max})
	assert.Equal(t, decision.ActuationScale, s.Policy.Variants[small].Actuation, "a replay acts")
	assert.Equal(t, capacity.SLO{TTFT: 300}, s.Models[0].SLO)
	assert.True(t, s.Policy.Limited)

	spec.VariantCost = ""
	s, err = l.Scenario([]byte(`
configuration: {WVA_LIMITED_MODE: false}
models: [{id: llama, slo: {itl: 9}, variants: [{name: small, maxReplicas: 7, learn: true, initialReplicas: 2}]}]`), scenario.Options{})
	require.NoError(t, err)
	v = s.Models[0].Variants[0]
	assert.Equal(t, capacity.Cost(4), v.Cost, "the price of its device")
	assert.Equal(t, []int{2, 7, 2}, []int{v.Policy.Min, v.Policy.Max, v.Initial})
	assert.False(t, v.Given.Known())
	assert.Equal(t, capacity.SLO{ITL: 9}, s.Models[0].SLO)
	assert.Equal(t, []any{false, "30s"}, []any{s.Policy.Limited, s.Policy.Interval.String()})

	s, err = l.Scenario([]byte("prices: {H100: 6}"), scenario.Options{})
	require.NoError(t, err)
	assert.Equal(t, capacity.Cost(6), s.Models[0].Variants[0].Cost)
}

// Thresholds and scaling to zero are those of the namespace, or else of the manager, unless the
// file says them. A policy that changes a threshold changes it in whatever counts.
func TestAModelHasTheThresholdsOfItsNamespace(t *testing.T) {
	model := decision.ModelKey{Namespace: "demo", ID: "llama"}
	l := live()
	l.Saturation = map[string]string{"default": "{kvCacheThreshold: 0.7, queueSpareTrigger: 2}"}
	l.ScaleToZero = map[string]string{"default": "enable_scale_to_zero: true"}
	of := func(file string, changes ...replay.Parameter) decision.Policy {
		t.Helper()
		s, err := l.Scenario([]byte(profiled+file), scenario.Options{})
		require.NoError(t, err)
		if len(changes) == 0 {
			return s.Policy
		}
		policy, err := s.Settings.Over(changes)
		require.NoError(t, err)
		return policy
	}
	// kv, queueSpareTrigger, and whether it may scale to zero.
	has := func(p decision.Policy, kv, queue float64, zero bool) {
		t.Helper()
		assert.InDelta(t, kv, p.SaturationOf(model).KVCacheThreshold, 1e-9)
		assert.InDelta(t, queue, p.SaturationOf(model).QueueSpareTrigger, 1e-9)
		assert.Equal(t, zero, p.IdleOf(model).Enabled)
	}
	spare := replay.Parameter{Name: "queuesparetrigger", Value: "1"}
	has(of(""), 0.7, 2, true)
	has(of("", spare), 0.7, 1, true)

	l.Namespaces = map[string]scenario.Maps{"other": {Saturation: map[string]string{"default": "kvCacheThreshold: 0.5"}}, "demo": {}}
	has(of(""), 0.7, 2, true)
	l.Namespaces["demo"] = scenario.Maps{Saturation: map[string]string{"own": "{model_id: llama, kvCacheThreshold: 0.6}"}}
	has(of(""), 0.6, 3, true)
	has(of("", spare), 0.6, 1, true)
	l.Namespaces["demo"] = scenario.Maps{ScaleToZero: map[string]string{"default": "enable_scale_to_zero: false"}}
	has(of(""), 0.7, 2, false)
	has(of("", spare), 0.7, 1, false)

	has(of("saturation: {default: {kvCacheThreshold: 0.9}}", spare), 0.9, 1, false)
	has(of("scaleToZero: {default: {enable_scale_to_zero: true}}"), 0.7, 2, true)

	l.Namespaces["demo"] = scenario.Maps{Saturation: map[string]string{"default": "kvCacheThreshold: much"}}
	_, err := l.Scenario([]byte(profiled), scenario.Options{})
	require.ErrorContains(t, err, "the thresholds of namespace demo: ")
}

func TestWhatALiveClusterLacksIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*scenario.Live)
		file    string
		options scenario.Options
		says    string
	}{
		"profiles":             {nil, "", scenario.Options{}, "no latency profile is known of large, small: expected spec.variantProfile in the objects, or a scenario file"},
		"one profile":          {nil, "models: [{id: llama, variants: [{name: small, profile: {base: 1}}]}]", scenario.Options{}, "no latency profile is known of large: "},
		"a promise":            {func(l *scenario.Live) { l.SLO = capacity.SLO{} }, profiled, scenario.Options{}, "model llama has no SLO: expected --slo-ttft or --slo-itl"},
		"objects":              {func(l *scenario.Live) { l.Variants = nil }, "", scenario.Options{}, "the cluster has no VariantAutoscaling object"},
		"a model of the file":  {nil, "models: [{id: lama}]", scenario.Options{}, `models[0].id is "lama": expected the modelID of an object in the cluster (llama)`},
		"a name of the file":   {nil, "models: [{id: llama, variants: [{name: smal}]}]", scenario.Options{}, `models[0].variants[0].name is "smal": expected the name of an object of model llama (large, small)`},
		"nothing: nodes":       {nil, "nodes: []", scenario.Options{}, "come from the live cluster"},
		"nothing: a cluster":   {nil, "", scenario.Options{Cluster: "full"}, "come from the live cluster"},
		"nothing: shapes":      {nil, "models: [{id: llama, variants: [{name: small, accelerator: H100}]}]", scenario.Options{}, "accelerator, acceleratorCount, nodeGroups, cpu and memory come from the cluster"},
		"nothing: a namespace": {nil, "models: [{id: llama, namespace: other}]", scenario.Options{}, `models[0].id is "llama"`},
		"a setting":            {nil, "configuration: {WVA_LIMITED: 1}", scenario.Options{}, "configuration.WVA_LIMITED is not a setting"},
		"a good configuration": {func(l *scenario.Live) { l.Configuration = []byte("[1]") }, "", scenario.Options{}, "the manager's configuration file: "},
	} {
		t.Run(name, func(t *testing.T) {
			l := live()
			if c.change != nil {
				c.change(&l)
			}
			_, err := l.Scenario([]byte(c.file), c.options)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

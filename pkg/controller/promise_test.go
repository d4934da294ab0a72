package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// promised is a variant of a model with the name of its service class, if it has one.
func promised(namespace, name, model, class string) *variant {
	object := &v1alpha1.VariantAutoscaling{}
	object.Namespace, object.Name, object.Spec.ModelID = namespace, name, model
	if class != "" {
		object.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: class}
	}
	return &variant{object: object, key: decision.Key{Namespace: namespace, Name: name}}
}

func TestPromisesReachThePolicy(t *testing.T) {
	classes, _, err := config.ParseServiceClasses("classes", map[string]string{
		"premium": "{name: Premium, priority: 1, data: [{model: llama, slo-tpot: 24, slo-ttft: 500}]}",
		"free":    "{name: Free, priority: 10, data: [{model: llama, slo-ttft: 5000}, {model: qwen, slo-ttft: 9000}]}",
	})
	require.NoError(t, err)
	zero, _, err := config.ParseScaleToZero(map[string]string{"x": "{model_id: llama, namespace: chat, enable_scale_to_zero: true}"})
	require.NoError(t, err)
	settings := &config.Dynamic{ServiceClasses: classes, ScaleToZero: zero, Idle: decision.Idle{Retention: time.Minute}}
	seen := &observation{policy: settings.Policy()}
	variants := []*variant{
		promised("batch", "llama-a", "llama", "free"), promised("batch", "llama-b", "llama", "premium"),
		promised("chat", "llama-a", "llama", "premium"), promised("chat", "llama-b", "llama", ""),
		promised("chat", "other", "other", ""),
		promised("chat", "qwen", "qwen", ""),
	}
	seen.promise(settings, variants, nil)

	chat := func(model string) decision.ModelKey { return decision.ModelKey{Namespace: "chat", ID: model} }
	assert.Equal(t, decision.Promise{Class: "Premium", Priority: 1, SLO: capacity.SLO{TTFT: 500, ITL: 24}}, seen.policy.PromiseTo(chat("llama")), "one variant speaks for all")
	assert.Equal(t, decision.Promise{Class: "Free", Priority: 10, SLO: capacity.SLO{TTFT: 9000}}, seen.policy.PromiseTo(chat("qwen")), "the only class that lists it")
	assert.Equal(t, decision.Promise{Priority: decision.LeastPriority}, seen.policy.PromiseTo(chat("other")))
	assert.Equal(t, decision.Idle{Enabled: true, Retention: time.Minute}, seen.policy.IdleOf(chat("llama")))
	assert.Equal(t, decision.Idle{Retention: time.Minute}, seen.policy.IdleOf(chat("qwen")))

	unclear := seen.policy.PromiseTo(decision.ModelKey{Namespace: "batch", ID: "llama"})
	assert.Equal(t, 1, unclear.Priority)
	assert.Zero(t, unclear.SLO)
	for _, v := range variants {
		if v.key.Namespace == "batch" {
			assert.Equal(t, []decision.Fact{{Reason: v1alpha1.ReasonServiceClassUnclear, Detail: decision.Words(unclear.Problem)}}, v.warnings, v.key.Name)
			assert.Contains(t, unclear.Problem, "variant llama-a is of Free")
		} else {
			assert.Empty(t, v.warnings, v.key.Name)
		}
	}
}

func TestAnObservationHoldsPromisesAndPrices(t *testing.T) {
	settings := &config.Dynamic{Hybrid: true, Share: 0.9, Horizon: time.Hour}
	var err error
	settings.ServiceClasses, _, err = config.ParseServiceClasses("classes", map[string]string{"a": "{name: A, priority: 3, data: [{model: llama, slo-ttft: 700}]}"})
	require.NoError(t, err)
	settings.UnitCosts, _, err = config.ParseUnitCosts(map[string]string{"H100": `{"cost": "5"}`})
	require.NoError(t, err)
	settings.ScaleToZero, _, err = config.ParseScaleToZero(map[string]string{"default": "{enable_scale_to_zero: true, retention_period: 5m}"})
	require.NoError(t, err)

	cached := indexed{}
	require.NoError(t, addIndexes(t.Context(), cached, Access{}))
	v := promised("chat", "v", "llama", "").object
	v.Spec.ScaleTargetRef.Name, v.Spec.Accelerator, v.Spec.AcceleratorCount = "gone", "H100", new(int32(4))
	require.NoError(t, cached.of(v).Add(v))
	o := &observer{reader: cached, targets: &targetFinder{reader: cached, overlay: newOverlay()}, names: &inventory.Names{}, startups: &round.Startups{}}
	seen, err := o.observe(t.Context(), noon, settings, readings{at: noon})
	require.NoError(t, err)
	model := decision.ModelKey{Namespace: "chat", ID: "llama"}
	assert.Equal(t, decision.Promise{Class: "A", Priority: 3, SLO: capacity.SLO{TTFT: 700}}, seen.policy.PromiseTo(model))
	assert.Equal(t, decision.Idle{Enabled: true, Retention: 5 * time.Minute}, seen.policy.IdleOf(model))
	assert.True(t, seen.policy.Hybrid)
	assert.InDelta(t, 0.9, seen.policy.Share, 0)
	assert.Equal(t, time.Hour, seen.policy.Horizon)
	assert.InDelta(t, 20, float64(seen.snapshot.Models[0].Variants[0].Cost), 0)
}

func TestWhatAReplicaCosts(t *testing.T) {
	costs, _, err := config.ParseUnitCosts(map[string]string{"H100": `{"device": "NVIDIA-H100-80GB-HBM3", "cost": "5"}`})
	require.NoError(t, err)
	shape := func(accelerator capacity.Accelerator, devices, pods int) *capacity.Shape {
		return &capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: pods}
	}
	tests := map[string]struct {
		given       string
		accelerator capacity.Accelerator
		devices     int
		shape       *capacity.Shape
		want        capacity.Cost
		unpriced    bool
	}{
		"what the object says":              {"7.5", "H100", 8, shape("H100", 8, 1), 7.5, false},
		"the devices of its pod":            {"", "H100", 8, shape("H100", 8, 1), 40, false},
		"the devices of all its pods":       {"", "H100", 16, shape("H100", 8, 2), 80, false},
		"the template counts":               {"", "H100", 1, shape("H100", 4, 1), 20, false},
		"what the object says of its shape": {"", "H100", 2, nil, 10, false},
		"a device without a price":          {"", "L40S", 4, shape("L40S", 4, 1), v1alpha1.DefaultCost * 4 * 45 / 80, true},
		"no devices":                        {"", "", 0, shape("", 0, 1), v1alpha1.DefaultCost, true},
		"nothing is known of it":            {"", "", 0, nil, v1alpha1.DefaultCost, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := promised("chat", "v", "llama", "")
			v.object.Spec.VariantCost = test.given
			v.Accelerator, v.devices, v.Shape = test.accelerator, test.devices, test.shape
			var fact decision.Variant
			v.price(&fact, costs)
			assert.InDelta(t, float64(test.want), float64(fact.Cost), 0)
			assert.Equal(t, test.unpriced, fact.Unpriced)
			assert.Empty(t, v.notes)
		})
	}
}

func TestThePolicyOfAModelIsThatOfItsNamespace(t *testing.T) {
	beside, _, err := config.ParseSaturation(map[string]string{"default": "kvCacheThreshold: 0.7"})
	require.NoError(t, err)
	own, _, err := config.ParseLocalSaturation("chat", map[string]string{"default": "kvCacheThreshold: 0.5"})
	require.NoError(t, err)
	settings := &config.Dynamic{Saturation: beside}
	seen := &observation{policy: settings.Policy()}
	seen.promise(settings, []*variant{promised("chat", "v", "llama", ""), promised("batch", "v", "llama", "")}, map[string]config.Local{"chat": {Saturation: &own}})
	for namespace, want := range map[string]float64{"chat": 0.5, "batch": 0.7} {
		got := seen.policy.SaturationByModel[decision.ModelKey{Namespace: namespace, ID: "llama"}]
		assert.InDelta(t, want, got.KVCacheThreshold, 0, namespace)
	}
}

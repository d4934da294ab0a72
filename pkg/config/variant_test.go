package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func TestVariantPolicy(t *testing.T) {
	fraction := resource.MustParse("0.05")
	tests := map[string]struct {
		spec v1alpha1.VariantAutoscalingSpec
		want func(*decision.VariantPolicy)
	}{
		"nothing given is the default": {want: func(*decision.VariantPolicy) {}},
		"bounds": {
			spec: v1alpha1.VariantAutoscalingSpec{MinReplicas: new(int32(2)), MaxReplicas: new(int32(7))},
			want: func(p *decision.VariantPolicy) { p.Min, p.Max = 2, 7 },
		},
		"metric only": {
			spec: v1alpha1.VariantAutoscalingSpec{Actuation: v1alpha1.ActuationMetric},
			want: func(p *decision.VariantPolicy) { p.Actuation = decision.ActuationMetric },
		},
		"off": {
			spec: v1alpha1.VariantAutoscalingSpec{Actuation: v1alpha1.ActuationOff},
			want: func(p *decision.VariantPolicy) { p.Actuation = decision.ActuationOff },
		},
		"unknown capacity allows": {
			spec: v1alpha1.VariantAutoscalingSpec{OnUnknownCapacity: v1alpha1.UnknownCapacityAllow},
			want: func(p *decision.VariantPolicy) { p.OnUnknown = decision.OnUnknownAllow },
		},
		"unknown capacity holds": {
			spec: v1alpha1.VariantAutoscalingSpec{OnUnknownCapacity: v1alpha1.UnknownCapacityHold},
			want: func(p *decision.VariantPolicy) { p.OnUnknown = decision.OnUnknownHold },
		},
		"a window of zero is a window": {
			spec: v1alpha1.VariantAutoscalingSpec{Behavior: &v1alpha1.Behavior{
				ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: new(int32(0))},
			}},
			want: func(p *decision.VariantPolicy) { p.Down.Window, p.Down.Adaptive = 0, false },
		},
		"one direction leaves the other": {
			spec: v1alpha1.VariantAutoscalingSpec{Behavior: &v1alpha1.Behavior{
				ScaleUp: &v1alpha1.ScalingRules{
					StabilizationWindowSeconds: new(int32(60)),
					SelectPolicy:               new(v1alpha1.SelectMin),
					Tolerance:                  &fraction,
					Policies: []v1alpha1.ScalingPolicy{
						{Type: v1alpha1.PodsPolicy, Value: 4, PeriodSeconds: 60},
						{Type: v1alpha1.PercentPolicy, Value: 50, PeriodSeconds: 30},
					},
				},
			}},
			want: func(p *decision.VariantPolicy) {
				p.Up = decision.Behavior{
					Window:    time.Minute,
					Select:    decision.SelectMin,
					Tolerance: 0.05,
					Policies:  []decision.RatePolicy{{Pods: 4, Period: time.Minute}, {Percent: 50, Period: 30 * time.Second}},
				}
			},
		},
		"no scale-down at all": {
			spec: v1alpha1.VariantAutoscalingSpec{Behavior: &v1alpha1.Behavior{
				ScaleDown: &v1alpha1.ScalingRules{SelectPolicy: new(v1alpha1.SelectDisabled)},
			}},
			want: func(p *decision.VariantPolicy) { p.Down.Select = decision.SelectDisabled },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := config.VariantPolicy(&test.spec)
			require.NoError(t, err)
			want := decision.DefaultVariantPolicy()
			test.want(&want)
			assert.Equal(t, want, got)
		})
	}
}

func TestVariantPolicyErrorsNameTheField(t *testing.T) {
	whole := resource.MustParse("10")
	_, err := config.VariantPolicy(&v1alpha1.VariantAutoscalingSpec{
		MinReplicas: new(int32(5)),
		MaxReplicas: new(int32(2)),
		Actuation:   "On",

		OnUnknownCapacity: "Guess",
		Behavior: &v1alpha1.Behavior{
			ScaleUp:   &v1alpha1.ScalingRules{Tolerance: &whole},
			ScaleDown: &v1alpha1.ScalingRules{Policies: []v1alpha1.ScalingPolicy{{Type: "Nodes", Value: 1, PeriodSeconds: 1}}},
		},
	})
	for _, want := range []string{
		"spec.minReplicas (5) is above spec.maxReplicas (2)",
		`spec.actuation is "On": write Scale, Metric or Off`,
		`spec.onUnknownCapacity is "Guess": write Allow or Hold, or leave it out`,
		"spec.behavior.scaleUp.tolerance is 10: write a fraction of at least 0 and below 1",
		`spec.behavior.scaleDown.policies[0].type is "Nodes": write Pods or Percent`,
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = config.VariantPolicy(&v1alpha1.VariantAutoscalingSpec{Behavior: &v1alpha1.Behavior{
		ScaleUp: &v1alpha1.ScalingRules{SelectPolicy: new(v1alpha1.SelectPolicy("Any"))},
	}})
	require.ErrorContains(t, err, `spec.behavior.scaleUp.selectPolicy is "Any": write Max, Min or Disabled`)
}

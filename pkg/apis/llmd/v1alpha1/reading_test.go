package v1alpha1_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

func TestSchemeKnowsTheKind(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, v1alpha1.AddToScheme(scheme))
	kinds, _, err := scheme.ObjectKinds(&v1alpha1.VariantAutoscaling{})
	require.NoError(t, err)
	assert.Equal(t, []schema.GroupVersionKind{v1alpha1.GroupVersion.WithKind(v1alpha1.Kind)}, kinds)
}

func TestScaleTargetKind(t *testing.T) {
	tests := map[string]struct {
		target v1alpha1.ScaleTargetReference
		want   schema.GroupVersionKind
	}{
		"only a name":           {v1alpha1.ScaleTargetReference{Name: "x"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
		"only a kind":           {v1alpha1.ScaleTargetReference{Kind: "StatefulSet"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}},
		"the core group":        {v1alpha1.ScaleTargetReference{APIVersion: "v1", Kind: "ReplicationController"}, schema.GroupVersionKind{Version: "v1", Kind: "ReplicationController"}},
		"a group of its own":    {v1alpha1.ScaleTargetReference{APIVersion: "leaderworkerset.x-k8s.io/v1", Kind: "LeaderWorkerSet"}, schema.GroupVersionKind{Group: "leaderworkerset.x-k8s.io", Version: "v1", Kind: "LeaderWorkerSet"}},
		"a version and no kind": {v1alpha1.ScaleTargetReference{APIVersion: "apps/v1"}, schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.target.GroupVersionKind()
			require.NoError(t, err)
			assert.Equal(t, test.want, got)
		})
	}
	_, err := v1alpha1.ScaleTargetReference{APIVersion: "a/b/c"}.GroupVersionKind()
	require.ErrorContains(t, err, `spec.scaleTargetRef.apiVersion is "a/b/c": write a group and a version`)
}

func TestResolvedVariantID(t *testing.T) {
	given := v1alpha1.VariantAutoscalingSpec{ModelID: "m", VariantID: "m-A100-2"}
	assert.Equal(t, "m-A100-2", given.ResolvedVariantID("H100", 1), "what the user wrote stays")
	short := v1alpha1.VariantAutoscalingSpec{ModelID: "meta/llama"}
	assert.Equal(t, "meta/llama-H100-4", short.ResolvedVariantID("H100", 4))
	assert.Empty(t, short.ResolvedVariantID("", 4), "an unknown accelerator gives no ID")
	assert.Empty(t, short.ResolvedVariantID("H100", 0), "an unknown count gives no ID")
}

func TestCost(t *testing.T) {
	tests := map[string]struct {
		text  string
		want  capacity.Cost
		given bool
	}{
		"none given":       {"", 0, false},
		"the old default":  {"10.0", 10, true},
		"a whole number":   {"40", 40, true},
		"free is a price":  {"0", 0, true},
		"a small fraction": {"0.805", 0.805, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, given, err := (&v1alpha1.VariantAutoscalingSpec{VariantCost: test.text}).Cost()
			require.NoError(t, err)
			assert.Equal(t, test.given, given)
			assert.InDelta(t, float64(test.want), float64(got), 1e-12)
		})
	}
	for _, text := range []string{"-1", "cheap", "NaN", "Inf"} {
		_, _, err := (&v1alpha1.VariantAutoscalingSpec{VariantCost: text}).Cost()
		require.ErrorContains(t, err, "spec.variantCost is \""+text+"\": write a number of at least 0")
	}
}

func profile(alpha, beta, gamma, delta v1alpha1.ParameterMilliseconds) *v1alpha1.VariantProfile {
	return &v1alpha1.VariantProfile{
		PerfParms: &v1alpha1.PerfParms{
			DecodeParms:  &v1alpha1.DecodeParms{Alpha: alpha, Beta: beta},
			PrefillParms: &v1alpha1.PrefillParms{Gamma: gamma, Delta: delta},
		},
		MaxBatchSize: new(int32(4)),
	}
}

func TestProfile(t *testing.T) {
	spec := v1alpha1.VariantAutoscalingSpec{VariantProfile: profile("20.58", "0.41", "5.2", "1e-1")}
	got, given, err := spec.Profile()
	require.NoError(t, err)
	assert.True(t, given)
	assert.Equal(t, serving.FourParameter{Alpha: 20.58, Beta: 0.41, Gamma: 5.2, Delta: 0.1, MaxBatchSize: 4}, got)

	for name, none := range map[string]*v1alpha1.VariantProfile{"no profile": nil, "an empty profile": {}} {
		t.Run(name, func(t *testing.T) {
			_, given, err := (&v1alpha1.VariantAutoscalingSpec{VariantProfile: none}).Profile()
			require.NoError(t, err)
			assert.False(t, given)
		})
	}
}

func TestProfileErrorsNameTheField(t *testing.T) {
	tests := map[string]struct {
		profile *v1alpha1.VariantProfile
		want    []string
	}{
		"two parameters are missing": {profile("20.58", "", "5.2", ""),
			[]string{"spec.variantProfile.perfParms.decodeParms.beta is missing", "spec.variantProfile.perfParms.prefillParms.delta is missing"}},
		"only a batch limit": {&v1alpha1.VariantProfile{MaxBatchSize: new(int32(8))},
			[]string{"decodeParms.alpha is missing: give all four of alpha, beta, gamma and delta, or no profile"}},
		"no number": {profile("fast", "0.41", "5.2", "0.1"),
			[]string{`spec.variantProfile.perfParms.decodeParms.alpha is "fast": write a number of at least 0`}},
		"an engine that needs no time": {profile("0", "0.41", "5.2", "0.1"),
			[]string{"spec.variantProfile.perfParms.decodeParms.alpha is 0"}},
		"more than a number can hold": {profile("1e999", "0.41", "5.2", "0.1"),
			[]string{`decodeParms.alpha is "1e999": write a number`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, given, err := (&v1alpha1.VariantAutoscalingSpec{VariantProfile: test.profile}).Profile()
			require.Error(t, err)
			assert.False(t, given)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
		})
	}
}

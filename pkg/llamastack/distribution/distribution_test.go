package distribution_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/distribution"
)

func TestEveryNameHasAnImageAndABase(t *testing.T) {
	assert.Equal(t, []string{"meta-reference-gpu", "postgres-demo", "remote-vllm", "starter", "starter-gpu"}, distribution.Names())
	for _, name := range distribution.Names() {
		got, err := distribution.Resolve(v1alpha2.Distribution{Name: name}, nil)
		require.NoError(t, err)
		assert.Regexp(t, `/distribution-`+name+`:[0-9.]+$`, got.Image, "a tag that does not move")
		assert.Equal(t, name, got.Name)
		var base map[string]any
		require.NoError(t, yaml.UnmarshalStrict(got.Base, &base), name)
	}
}

func TestResolve(t *testing.T) {
	overrides := map[string]string{"starter": "mine/starter:1", "other": "x"}
	got, err := distribution.Resolve(v1alpha2.Distribution{Name: "starter"}, overrides)
	require.NoError(t, err)
	assert.Equal(t, "mine/starter:1", got.Image)
	got, err = distribution.Resolve(v1alpha2.Distribution{Image: "mine/other:2"}, overrides)
	require.NoError(t, err)
	assert.Equal(t, distribution.Resolved{Name: "custom", Image: "mine/other:2"}, got)
	_, err = distribution.Resolve(v1alpha2.Distribution{Name: "other"}, overrides)
	assert.ErrorContains(t, err, `unknown distribution "other": use one of meta-reference-gpu, postgres-demo, remote-vllm, starter, starter-gpu, or give an image`)
	_, err = distribution.Resolve(v1alpha2.Distribution{}, nil)
	assert.ErrorContains(t, err, "neither name nor image")
	assert.NotContains(t, distribution.Images(overrides), "other")
}

func TestParseOverrides(t *testing.T) {
	good := "starter: registry.example:5000/a/b_c:v1\nremote-vllm: a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"
	want := map[string]string{
		"starter":     "registry.example:5000/a/b_c:v1",
		"remote-vllm": "a@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
	}
	got, err := distribution.ParseOverrides(good)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	_, err = distribution.ParseOverrides(good + "postgres-demo: 'not an image'\nstarter-gpu: 1\nother: a/b\n")
	for _, wrong := range []string{`unknown distribution "other"`, `not an image of "postgres-demo" is no image`, `1 of "starter-gpu" is no image`} {
		assert.ErrorContains(t, err, wrong)
	}
	_, err = distribution.ParseOverrides("[")
	assert.ErrorContains(t, err, "no map from names to images")
	got, err = distribution.ParseOverrides("")
	require.NoError(t, err)
	assert.Empty(t, got)
}

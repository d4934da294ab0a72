package validation_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/validation"
)

// kubectl apply of a manifest of v1alpha2 over one of v1alpha1 leaves what the former does not say.
func TestAManifestOverOneOfV1alpha1(t *testing.T) {
	const env = "workload: {replicas: 1, overrides: {env: [{name: A, value: b}]}}\nnetworking: {port: 8321}"
	applied := func(version, manifest, spec string) *v1alpha2.LlamaStackDistribution {
		o := object(t, spec)
		text, err := json.Marshal(map[string]any{"apiVersion": "llamastack.io/" + version, "spec": data(t, manifest)})
		require.NoError(t, err)
		o.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": string(text)}
		return o
	}
	old := applied("v1alpha1", head, head+env)
	for name, c := range map[string]struct {
		old, object *v1alpha2.LlamaStackDistribution
		want        []string
	}{
		"the environment stays": {old, applied("v1alpha2", head+"workload: {overrides: {serviceAccountName: a}}", head+env),
			[]string{"the object was last applied as v1alpha1, so kubectl apply took nothing away, and it still has spec.workload.overrides.env, which this manifest does not: write it by kubectl replace --save-config, or remove these fields"}},
		"two fields stay": {old, applied("v1alpha2", head, head+"workload: {replicas: 3, workers: 2}"),
			[]string{"the object was last applied as v1alpha1, so kubectl apply took nothing away, and it still has spec.workload.replicas, spec.workload.workers, which this manifest does not: write it by kubectl replace --save-config, or remove these fields"}},
		"the manifest says all": {old, applied("v1alpha2", head+env, head+env), nil},
		"only defaults":         {old, applied("v1alpha2", head, head+"workload: {replicas: 1}\nnetworking: {port: 8321}"), nil},
		"of v1alpha2 before":    {applied("v1alpha2", head, head+env), applied("v1alpha2", head, head+env), nil},
		"still of v1alpha1":     {old, applied("v1alpha1", head, head+env), nil},
		"not by kubectl apply":  {old, object(t, head+env), nil},
	} {
		assert.Equal(t, c.want, validation.Reapplied(c.old, c.object), name)
	}
}

func data(t *testing.T, text string) map[string]any {
	t.Helper()
	spec, err := json.Marshal(object(t, text).Spec)
	require.NoError(t, err)
	var fields map[string]any
	require.NoError(t, json.Unmarshal(spec, &fields))
	return fields
}

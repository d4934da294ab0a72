package llamastack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

// apply is server-side apply of a spec in a version.
func apply(t *testing.T, namespace, name, version, spec string) {
	t.Helper()
	var fields map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &fields))
	object := written(namespace, name, version, fields)
	require.NoError(t, api.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("somebody"), client.ForceOwnership))
}

// Server-side apply takes away what it once wrote and writes no more, whichever versions others
// have written the object in.
func TestServerSideApplyRemoves(t *testing.T) {
	namespace := space(t)
	apply(t, namespace, "demo", "v1alpha2", `
distribution: {name: starter}
providers:
  inference: {id: v, provider: vllm, endpoint: "http://v/v1", settings: {max_tokens: 1, other: 2}}
  safety: {provider: "inline::llama-guard"}
resources: {tools: ["builtin::websearch"]}
storage: {kv: {type: redis, endpoint: "redis://r:6379"}}
disabled: [eval]`)
	old := &v1alpha1.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}
	edit(t, old, func(o *v1alpha1.LlamaStackDistribution) { o.Spec.Server.Workers = ptr.To[int32](2) })
	apply(t, namespace, "demo", "v1alpha2", `
distribution: {name: starter}
providers: {inference: {id: v, provider: vllm, endpoint: "http://v/v1", settings: {other: 2}}}`)
	spec := read(t, &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}).Spec
	assert.JSONEq(t, `{"id": "v", "provider": "vllm", "endpoint": "http://v/v1", "settings": {"other": 2}}`, string(spec.Providers.Inference.Raw))
	assert.Nil(t, spec.Providers.Safety)
	assert.Nil(t, spec.Resources)
	assert.Nil(t, spec.Storage)
	assert.Empty(t, spec.Disabled)
	assert.EqualValues(t, 2, *spec.Workload.Workers, "what somebody else wrote stays")

	apply(t, namespace, "old", "v1alpha1", `
server:
  distribution: {name: starter}
  podOverrides: {terminationGracePeriodSeconds: 60}
  tlsConfig: {caBundle: {configMapName: ca, configMapNamespace: other, configMapKeys: [k]}}`)
	edit(t, &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "old")}, func(o *v1alpha2.LlamaStackDistribution) {
		o.Spec.Workload.Workers = ptr.To[int32](2)
	})
	apply(t, namespace, "old", "v1alpha1", `
server:
  distribution: {name: starter}
  tlsConfig: {caBundle: {configMapName: ca, configMapKeys: [k]}}`)
	server := read(t, &v1alpha1.LlamaStackDistribution{ObjectMeta: named(namespace, "old")}).Spec.Server
	assert.Nil(t, server.PodOverrides)
	assert.Equal(t, &v1alpha1.CABundle{ConfigMapName: "ca", ConfigMapKeys: []string{"k"}}, server.TLSConfig.CABundle)
	assert.EqualValues(t, 2, *server.Workers)
}

// Who migrates in place, by the name of another ConfigMap, gets that of the object's namespace.
func TestAMigrationInPlaceToAnotherConfigMap(t *testing.T) {
	namespace := space(t)
	apply(t, namespace, "demo", "v1alpha1", "server: {distribution: {name: starter}, userConfig: {configMapName: theirs, configMapNamespace: other}}")
	object := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "demo")}
	reaches(t, object, v1alpha2.PhaseFailed)
	create(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "mine"), Data: map[string]string{"config.yaml": "version: 2\n"}})
	apply(t, namespace, "demo", "v1alpha2", "distribution: {name: starter}\noverrideConfig: {configMapName: mine}")
	reaches(t, object, v1alpha2.PhaseReady)
	assert.Equal(t, "override", object.Status.ResolvedDistribution.ConfigSource)
}

package llamastack_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	"llmd.ai/workload-variant-autoscaler/pkg/llamastack/migration"
)

// pair is one of the guide: a server before and after it was migrated.
type pair struct {
	Name       string         `json:"name"`
	BeforeSpec map[string]any `json:"before"`
	AfterSpec  map[string]any `json:"after"`
	// Declared says that the environment became providers, so that the configuration,
	// and with it the environment and the volumes of the pods, differ on purpose.
	Declared bool `json:"declared"`
}

func pairs(t *testing.T) []pair {
	t.Helper()
	text, err := os.ReadFile("testdata/guide.yaml")
	require.NoError(t, err)
	var all []pair
	require.NoError(t, yaml.UnmarshalStrict(text, &all))
	require.Len(t, all, 6)
	return all
}

func written(namespace, name, version string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "llamastack.io/" + version, "kind": "LlamaStackDistribution",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec,
	}}
}

// Each pair of the guide is accepted as it stands, is the same in both versions where
// nothing was declared, and has the same children.
func TestThePairsOfTheGuide(t *testing.T) {
	for _, p := range pairs(t) {
		t.Run(p.Name, func(t *testing.T) {
			before, after, bundle := space(t), space(t), authority(t)
			for _, namespace := range []string{before, after} {
				create(t, &corev1.ConfigMap{ObjectMeta: named(namespace, "custom-ca-bundle"), Data: map[string]string{"ca-bundle.crt": bundle}},
					&corev1.ConfigMap{ObjectMeta: named(namespace, "llama-stack-config"), Data: map[string]string{"config.yaml": "version: 2\n"}},
					&corev1.Secret{ObjectMeta: named(namespace, "vllm-secret"), StringData: map[string]string{"api-key": "k"}})
			}
			create(t, written(before, "my-llsd", "v1alpha1", p.BeforeSpec), written(after, "my-llsd", "v1alpha2", p.AfterSpec))
			old := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(before, "my-llsd")}
			fresh := &v1alpha2.LlamaStackDistribution{ObjectMeta: named(after, "my-llsd")}
			generated(t, old)
			generated(t, fresh)
			if !p.Declared {
				assert.Equal(t, fresh.Spec, read(t, old).Spec)
			}
			assert.Equal(t, children(t, before, p.Declared), children(t, after, p.Declared))
			assert.Equal(t, read(t, old).Spec, migrated(t, before, p.BeforeSpec).Spec, "what `kubectl wva migrate` writes is what is stored")
			assert.Equal(t, p.Declared, fresh.Status.ConfigGeneration != nil)
			assert.Nil(t, old.Status.ConfigGeneration, "the environment configures it")
		})
	}
}

// migrated is an object of v1alpha1 as the command writes it, after the API server took it.
func migrated(t *testing.T, namespace string, spec map[string]any) *v1alpha2.LlamaStackDistribution {
	t.Helper()
	text, err := yaml.Marshal(written(namespace, "migrated", "v1alpha1", spec).Object)
	require.NoError(t, err)
	result, err := migration.Migrate(text)
	require.NoError(t, err)
	object := &v1alpha2.LlamaStackDistribution{}
	require.NoError(t, yaml.UnmarshalStrict(result.Text, object))
	require.NoError(t, api.Create(t.Context(), object, client.DryRunAll))
	return object
}

// generated waits until the operator has written the children.
func generated(t *testing.T, object *v1alpha2.LlamaStackDistribution) {
	t.Helper()
	comes(t, object, "its children", func(o *v1alpha2.LlamaStackDistribution) bool {
		return conditionOf(o, "DeploymentUpdated").Reason == "DeploymentUpdateSucceeded"
	})
}

// children are the specs of the children in a namespace, without what differs on purpose
// where providers were declared.
func children(t *testing.T, namespace string, declared bool) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, list := range lists() {
		if _, isSecret := list.(*corev1.SecretList); isSecret {
			continue
		}
		require.NoError(t, api.List(t.Context(), list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/managed-by": "llama-stack-operator"}))
		require.NoError(t, apimeta.EachListItem(list, func(item runtime.Object) error {
			content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(item)
			require.NoError(t, err)
			object := item.(client.Object)
			if configMap, ok := item.(*corev1.ConfigMap); ok {
				if configMap.Labels["llamastack.io/config-for"] == "" {
					found["ConfigMap "+object.GetName()] = configMap.Data
				}
				return nil
			}
			spec, _ := content["spec"].(map[string]any)
			delete(spec, "clusterIP")
			delete(spec, "clusterIPs")
			if declared {
				withoutConfiguration(spec)
			}
			found[fmt.Sprintf("%T %s", item, object.GetName())] = spec
			return nil
		}))
	}
	return found
}

// withoutConfiguration takes from a Deployment what a generated configuration brings.
func withoutConfiguration(spec map[string]any) {
	pod, ok, _ := unstructured.NestedMap(spec, "template", "spec")
	if !ok {
		return
	}
	named := func(name string) func(any) bool {
		return func(one any) bool { return one.(map[string]any)["name"] == name }
	}
	container := pod["containers"].([]any)[0].(map[string]any)
	delete(container, "env")
	container["volumeMounts"] = slices.DeleteFunc(container["volumeMounts"].([]any), named("user-config"))
	pod["volumes"] = slices.DeleteFunc(pod["volumes"].([]any), named("user-config"))
	unstructured.RemoveNestedField(spec, "template", "metadata", "annotations")
	spec["template"].(map[string]any)["spec"] = pod
}

// An object is read and written in either version through the API server, and nothing is
// lost on the way.
func TestBothVersionsThroughTheAPIServer(t *testing.T) {
	namespace := space(t)
	old := view(t, namespace, "old", `
replicas: 0
server:
  distribution: {name: starter}
  containerSpec: {name: srv, port: 9000, env: [{name: A, value: b}]}
  podOverrides: {terminationGracePeriodSeconds: 60}
network: {exposeRoute: true, allowedFrom: {namespaces: [monitoring]}}`)
	create(t, old)
	stored := read(t, &v1alpha2.LlamaStackDistribution{ObjectMeta: named(namespace, "old")})
	assert.EqualValues(t, 0, *stored.Spec.Workload.Replicas, "scaled to zero")
	assert.Equal(t, `"srv"`, stored.Annotations["v1alpha1.llamastack.io/containerName"])
	assert.Equal(t, "60", stored.Annotations["v1alpha1.llamastack.io/terminationGracePeriod"])
	again := read(t, &v1alpha1.LlamaStackDistribution{ObjectMeta: named(namespace, "old")})
	assert.Equal(t, old.Spec, again.Spec)

	fresh := hub(t, namespace, "fresh", `
distribution: {name: starter}
providers: {inference: {provider: vllm, endpoint: "http://v/v1", settings: {max_tokens: 8192}}}
networking: {expose: {enabled: false, hostname: h}}
workload: {replicas: 2}`)
	create(t, fresh)
	asOld := read(t, &v1alpha1.LlamaStackDistribution{ObjectMeta: named(namespace, "fresh")})
	assert.EqualValues(t, 2, asOld.Spec.Replicas)
	edit(t, asOld, func(o *v1alpha1.LlamaStackDistribution) { o.Spec.Replicas = 3 })
	before := fresh.DeepCopy()
	before.Spec.Workload.Replicas = read(t, fresh).Spec.Workload.Replicas
	assert.EqualValues(t, 3, *fresh.Spec.Workload.Replicas)
	before.Spec.Networking.Port = fresh.Spec.Networking.Port
	assert.Equal(t, before.Spec, fresh.Spec, "what only v1alpha2 has is still there")
}

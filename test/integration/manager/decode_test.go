package manager_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// loosen lets a field of the spec of VariantAutoscaling have any type until the test ends, as
// an earlier schema may have.
func loosen(t *testing.T, field string) {
	t.Helper()
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("variantautoscalings.llmd.ai")
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(crd), crd))
	path := []string{"schema", "openAPIV3Schema", "properties", "spec", "properties", field}
	version := crd.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	before, found, err := unstructured.NestedMap(version, path...)
	require.NoError(t, err)
	require.True(t, found)
	change := func(ctx context.Context, to map[string]any) error {
		body, err := (&unstructured.Unstructured{Object: map[string]any{"kind": "x", "to": to}}).MarshalJSON()
		if err != nil {
			return err
		}
		value := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(string(body)), `{"kind":"x","to":`), "}")
		patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/%s","value":%s}]`, strings.Join(path, "/"), value)
		return api.Patch(ctx, crd, client.RawPatch(types.JSONPatchType, []byte(patch)))
	}
	require.NoError(t, change(t.Context(), map[string]any{"x-kubernetes-preserve-unknown-fields": true}))
	t.Cleanup(func() { require.NoError(t, change(context.Background(), before)) })
}

// An object that was stored under another schema cannot be read. It is named, and all others
// are handled: by a manager that watches when it comes, and by one that starts later.
func TestAnObjectThatCannotBeReadStopsNoOther(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	loosen(t, "variantCost")
	bad := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "llmd.ai/v1alpha1", "kind": v1alpha1.Kind,
		"metadata": map[string]any{"namespace": namespace, "name": "bad", "labels": map[string]any{v1alpha1.LabelControllerInstance: brisk}},
		"spec":     map[string]any{"modelID": "m", "scaleTargetRef": map[string]any{"name": "other"}, "variantCost": int64(10)},
	}}
	conditiontest.Eventually(t, patience, "the looser schema", func() (string, bool) {
		err := api.Create(t.Context(), bad)
		return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
	})
	t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), bad)) })
	conditiontest.Eventually(t, patience, "an event on it", func() (string, bool) {
		reasons := told(t, bad)
		return fmt.Sprint(reasons), count(reasons, v1alpha1.ReasonInvalidConfiguration) == 1
	})

	late := startHurried(t, "late", "late")
	t.Cleanup(func() { require.NoError(t, cluster.Terminate(late)) })
	for _, instance := range []string{brisk, "late"} {
		d, v := deployment(namespace, "server-"+instance, 1), variant(namespace, "llama-"+instance, "server-"+instance, instance)
		v.Spec.MinReplicas = ptr.To[int32](2)
		create(t, d, v)
		hasReplicas(t, patience, d, v, 2)
	}
	log, err := os.ReadFile(filepath.Join(cluster.Logs(), "manager"+brisk+".log"))
	require.NoError(t, err)
	assert.Contains(t, string(log), "VariantAutoscaling "+namespace+"/bad cannot be read: json: cannot unmarshal number into Go struct field VariantAutoscalingSpec.spec.variantCost of type string")
	assert.Equal(t, 1, count(told(t, bad), v1alpha1.ReasonInvalidConfiguration), "once")
}

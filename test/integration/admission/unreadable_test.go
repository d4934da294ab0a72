package admission_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// An object that was stored under an earlier schema can be corrected and deleted.
func TestAnObjectOfAnEarlierSchemaCanBeCorrected(t *testing.T) {
	namespace := space(t, nil)
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("variantautoscalings.llmd.ai")
	const loose = `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/variantCost","value":{"x-kubernetes-preserve-unknown-fields":true}}]`
	require.NoError(t, api.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(loose))))
	t.Cleanup(func() { require.NoError(t, cluster.Apply(context.Background(), manifests+"/crd")) })
	stored := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
		"metadata": map[string]any{"namespace": namespace, "name": "bad", "finalizers": []any{"example.com/kept"}},
		"spec":     map[string]any{"modelID": "m", "scaleTargetRef": map[string]any{"name": "bad"}, "variantCost": int64(10)},
	}}
	conditiontest.Eventually(t, patience, "the looser schema", func() (string, bool) {
		err := api.Create(t.Context(), stored)
		return fmt.Sprint(err), err == nil || apierrors.IsAlreadyExists(err)
	})
	require.NoError(t, cluster.Apply(t.Context(), manifests+"/crd"))

	for _, change := range []string{
		`{"spec":{"variantCost":"10"}}`, `{"metadata":{"finalizers":null}}`,
	} {
		require.NoError(t, api.Patch(t.Context(), stored, client.RawPatch(types.MergePatchType, []byte(change))), change)
	}
	require.NoError(t, api.Delete(t.Context(), stored))
}

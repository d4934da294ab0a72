package kubectl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// unreadable is stored while the price may have any type, as an earlier schema may have had it.
const unreadable = `
apiVersion: v1
kind: Namespace
metadata: {name: mixed}
---
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: bad, namespace: mixed}
spec: {modelID: meta/llama, scaleTargetRef: {name: bad}, variantCost: 10}
---
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: good, namespace: mixed}
spec: {modelID: meta/llama, scaleTargetRef: {name: good}, accelerator: H100, acceleratorCount: 4}
`

// An object that does not fit the present kind hides no other one, and every command names it.
func hidesNone(t *testing.T, w *world) {
	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("variantautoscalings.llmd.ai")
	const loose = `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/variantCost","value":{"x-kubernetes-preserve-unknown-fields":true}}]`
	require.NoError(t, w.api.Patch(t.Context(), crd, client.RawPatch(types.JSONPatchType, []byte(loose))))
	path := filepath.Join(w.folder, "unreadable.yaml")
	require.NoError(t, os.WriteFile(path, []byte(unreadable+served("mixed", "good", "--model, meta/llama")), 0o600))
	conditiontest.Eventually(t, patience, "the looser schema", func() (string, bool) {
		err := w.cluster.Apply(t.Context(), path)
		return path, err == nil
	})
	t.Cleanup(func() {
		stored := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "mixed", "name": "bad"}}}
		stored.SetGroupVersionKind(variantKind)
		require.NoError(t, w.api.Delete(context.Background(), stored))
		require.NoError(t, w.cluster.Apply(context.Background(), presentCRD))
	})

	const named = "VariantAutoscaling mixed/bad cannot be read, so the autoscaler leaves it out: json: cannot unmarshal number into Go struct field VariantAutoscalingSpec.spec.variantCost of type string; " +
		"correct it with `kubectl -n mixed edit variantautoscalings bad`"
	out := w.must(t, "kubectl wva status -n mixed")
	assert.Regexp(t, `(?m)^bad +- +- +- +- +- +- +- +- +Unreadable `, out)
	assert.Regexp(t, `(?m)^good +meta/llama +4xH100 `, out)
	assert.Contains(t, out, "mixed/bad: Unreadable: "+named)
	assert.Contains(t, w.must(t, "kubectl wva status -A -o json"), `"state": "Unreadable"`)

	out = w.must(t, "kubectl wva capacity -n mixed -o yaml")
	assert.Contains(t, out, "name: good")
	assert.Contains(t, strings.Join(strings.Fields(out), " "), named)
	assert.Contains(t, w.must(t, "kubectl wva explain good -n mixed"), "good")
	assert.Equal(t, "error: "+named, w.refused(t, "kubectl wva explain bad -n mixed"))
	assert.Contains(t, w.refused(t, "kubectl wva adopt bad -n mixed"), "Deployment bad")
	_, complaints, err := w.shell(t.Context(), "kubectl wva adopt good -n mixed")
	require.NoError(t, err, complaints)
	assert.Contains(t, complaints, "note: "+named)
}

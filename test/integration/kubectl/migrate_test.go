package kubectl_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// is reads an object of namespace old; not ok when it is not there.
func (w *world) is(t *testing.T, kind schema.GroupVersionKind, name string) (map[string]any, bool) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	err := w.api.Get(t.Context(), client.ObjectKey{Namespace: "old", Name: name}, object)
	if apierrors.IsNotFound(err) {
		return nil, false
	}
	require.NoError(t, err)
	return object.Object, true
}

// served runs a line until the API server goes by the CRD that was just applied, which takes
// it a moment, and returns the output.
func (w *world) served(t *testing.T, line string) (out string) {
	t.Helper()
	conditiontest.Eventually(t, patience, line, func() (string, bool) {
		said, complaints, err := w.shell(t.Context(), line)
		out = said
		return complaints, err == nil
	})
	return out
}

var (
	variantKind = v1alpha1.GroupVersion.WithKind(v1alpha1.Kind)
	hpaKind     = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
)

// migrate goes the way of an upgrade: a backup while the earlier CRD is there, the present
// CRD, the change, and the way back.
func migrate(t *testing.T, w *world) {
	require.NoError(t, w.cluster.Apply(t.Context(), "testdata/earlier.yaml"))

	shown := w.must(t, "kubectl wva migrate --live -n old --deployments")
	for _, want := range []string{"name: llama-a100\n", "name: llama-h100\n", "name: llama-hpa-h100\n", "kind: Deployment\n"} {
		assert.Contains(t, shown, want)
	}
	assert.Contains(t, w.refused(t, "kubectl wva migrate --live -n old --apply --dry-run"), "install the present CRD first")
	complaint := w.refused(t, "kubectl wva migrate --live -n old --apply --backup first")
	assert.Contains(t, complaint, `nothing was changed: install the present CRD with the chart, and then run "kubectl wva migrate --apply -f first/before.yaml"`)
	_, there := w.is(t, variantKind, "llama-h100")
	assert.False(t, there)

	require.NoError(t, w.cluster.Apply(t.Context(), presentCRD))
	assert.Contains(t, w.refused(t, "kubectl wva migrate --live -n old"), "give the backup that was taken before the CRD was replaced, with -f backup.yaml")

	w.must(t, "kubectl wva migrate -f first/before.yaml > new.yaml && kubectl wva lint new.yaml")
	dry := w.served(t, "kubectl wva migrate -f first/before.yaml --apply --dry-run")
	assert.Contains(t, dry, "created (dry run): VariantAutoscaling old/llama-h100\n")
	assert.Contains(t, dry, "deleted (dry run): VariantAutoscaling old/llama\n")
	_, there = w.is(t, variantKind, "llama-h100")
	assert.False(t, there, "a dry run changes nothing")

	// Every write is tried first: nothing is half done, and nothing dropped in silence.
	refused := func(file, line, want string) {
		t.Helper()
		w.must(t, "sed 's/maxReplicas: 9/"+line+"/' first/before.yaml > "+file)
		complaint := w.refused(t, "kubectl wva migrate -f "+file+" --apply --backup refused")
		assert.Contains(t, complaint, want)
		assert.Contains(t, complaint, "nothing was changed")
		_, there := w.is(t, variantKind, "llama-h100")
		assert.False(t, there)
		assert.NoDirExists(t, filepath.Join(w.folder, "refused"))
	}
	refused("unknown.yaml", `maxReplicas: 9\n  most: 9`, `strict decoding error: unknown field "spec.most"`)
	refused("invalid.yaml", "maxReplicas: 0", "greater than 0")
	assert.Contains(t, w.refused(t, "kubectl wva migrate -f first/before.yaml --apply --namespace chat"), `it is of namespace old, and --namespace is chat`)

	w.must(t, "kubectl wva migrate -f first/before.yaml --apply --backup second")
	for _, name := range []string{"a100", "h100"} {
		object, there := w.is(t, variantKind, "llama-"+name)
		require.True(t, there, name)
		target, _, err := unstructured.NestedString(object, "spec", "scaleTargetRef", "name")
		require.NoError(t, err)
		assert.Equal(t, "llama-"+name, target)
		_, there = w.is(t, hpaKind, "llama-hpa-"+name)
		assert.True(t, there, name)
	}
	_, there = w.is(t, variantKind, "llama")
	assert.False(t, there)
	_, there = w.is(t, hpaKind, "llama-hpa")
	assert.False(t, there)
	again := w.must(t, "kubectl wva migrate -f first/before.yaml --apply --backup third")
	assert.NotContains(t, again, "created")
	assert.NotContains(t, again, "deleted")
	assert.Contains(t, again, "unchanged: VariantAutoscaling old/llama-h100\n")
	assert.Contains(t, w.refused(t, "kubectl wva migrate -f first/before.yaml --apply --backup third"), "--backup names another one")

	// An object of the present form that only has the name of one in the file is not deleted.
	another := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"modelID": "another", "scaleTargetRef": map[string]any{"kind": "Deployment", "name": "another"},
	}}}
	another.SetGroupVersionKind(variantKind)
	another.SetNamespace("old")
	another.SetName("llama")
	require.NoError(t, w.api.Create(t.Context(), another))
	complaint = w.refused(t, "kubectl wva migrate -f first/before.yaml --apply --backup fourth")
	assert.Contains(t, complaint, "VariantAutoscaling old/llama in the cluster is not the one in first/before.yaml")
	assert.Contains(t, complaint, "nothing was changed: leave the object out of the file, or delete the one in the cluster")
	require.NoError(t, w.api.Delete(t.Context(), another))

	assert.Contains(t, w.refused(t, "kubectl wva migrate --rollback second"), "put the CRD of the earlier version back first")
	require.FileExists(t, filepath.Join(w.folder, "first", "crd.yaml"))
	require.NoError(t, w.cluster.Apply(t.Context(), "testdata/earlier-crd.yaml"))
	w.served(t, "kubectl wva migrate --rollback second")
	object, there := w.is(t, variantKind, "llama")
	require.True(t, there)
	accelerators, _, err := unstructured.NestedSlice(object, "spec", "modelProfile", "accelerators")
	require.NoError(t, err)
	assert.Len(t, accelerators, 2, "with the fields that the present CRD drops")
	_, there = w.is(t, hpaKind, "llama-hpa")
	assert.True(t, there)
	_, there = w.is(t, variantKind, "llama-h100")
	assert.False(t, there)

	require.NoError(t, w.cluster.Apply(t.Context(), presentCRD))
	w.served(t, "kubectl wva migrate -f first/before.yaml --apply --dry-run")
	text, err := os.ReadFile(filepath.Join(w.folder, "first", "before.yaml"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(w.folder, "backup.yaml"), text, 0o600))
}

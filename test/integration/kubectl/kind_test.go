package kubectl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operated are objects of a kind that only its scale is known of: an operator made a Deployment
// of the one, and nothing is known to be below the other.
const operated = `
apiVersion: v1
kind: Namespace
metadata: {name: operated}
---
apiVersion: example.com/v1
kind: Server
metadata: {name: above, namespace: operated}
spec: {replicas: 1}
---
apiVersion: example.com/v1
kind: Server
metadata: {name: alone, namespace: operated}
spec: {replicas: 1}
---
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: above, namespace: operated}
spec: {modelID: meta/llama, scaleTargetRef: {apiVersion: example.com/v1, kind: Server, name: above}}
---
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata: {name: alone, namespace: operated}
spec: {modelID: meta/llama, scaleTargetRef: {apiVersion: example.com/v1, kind: Server, name: alone}, accelerator: H100, acceleratorCount: 4}
`

// What the capacity of a kind of others is counted by is what the manager counts by.
func kinds(t *testing.T, w *world) {
	apply := func(text string) {
		path := filepath.Join(w.folder, "operated.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, w.cluster.Apply(t.Context(), path))
	}
	apply(operated)
	above := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Server"}}
	require.NoError(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: "operated", Name: "above"}, above))
	apply(strings.Replace(served("operated", "below", "--model, meta/llama"), "namespace: operated}",
		"namespace: operated, ownerReferences: [{apiVersion: example.com/v1, kind: Server, name: above, controller: true, uid: "+string(above.GetUID())+"}]}", 1))
	out := w.must(t, "kubectl wva capacity -n operated")
	assert.Regexp(t, `operated/above +2xH100`, out, "by the template of the Deployment below it")
	assert.Regexp(t, `operated/alone +4xH100`, out, "by what the object says")
	assert.NotContains(t, out, "reading Server")
}

package localcluster

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

const (
	thing = `
apiVersion: test.llmd.ai/v1
kind: Thing
metadata: {name: one, namespace: things}
spec: {size: 3}
`
	thingsSpace = `
apiVersion: v1
kind: Namespace
metadata: {name: things}
`
	thingDefinition = `
# a comment alone is no object
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.test.llmd.ai}
spec:
  group: test.llmd.ai
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer, maximum: 5}}
---
`
	list = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: no-namespace}, data: {a: b}}
`
)

func manifests(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return dir
}

func TestApplyBringsDefinitionsAndNamespacesFirst(t *testing.T) {
	dir := manifests(t, map[string]string{
		"a-thing.yaml": thing, "b/definition.yml": thingDefinition, "c/namespace.yaml": thingsSpace,
		"d.json": list, "README.md": "not a manifest",
	})
	require.NoError(t, cluster.Apply(t.Context(), dir))
	require.NoError(t, cluster.Apply(t.Context(), dir), "a second time changes nothing")

	client, err := dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	things := schema.GroupVersionResource{Group: "test.llmd.ai", Version: "v1", Resource: "things"}
	got, err := client.Resource(things).Namespace("things").Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 1, got.GetGeneration())
	_, err = clientFor(t, cluster.Config()).CoreV1().ConfigMaps("default").Get(t.Context(), "no-namespace", metav1.GetOptions{})
	assert.NoError(t, err)
}

func TestApplyNamesTheObjectAndTheFile(t *testing.T) {
	tests := []struct{ name, content, want string }{
		{"refused by the API server", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}", "apply ConfigMap Bad_Name of "},
		{"a kind that nobody serves", "apiVersion: no.such/v1\nkind: Group\nmetadata: {name: x}", "no matches for kind \"Group\""},
		{"no YAML", "a: b: c", "broken.yaml"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := manifests(t, map[string]string{"broken.yaml": test.content})
			err := cluster.Apply(t.Context(), dir)
			require.ErrorContains(t, err, test.want)
			assert.ErrorContains(t, err, "broken.yaml")
		})
	}
	assert.ErrorContains(t, cluster.Apply(t.Context(), "no/such/directory"), "no/such/directory")
}

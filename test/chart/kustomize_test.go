package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// kustomize gives what "kubectl apply -k" applies.
func kustomize(t *testing.T, folder string) objects {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	require.NoError(t, err)
	text, err := built.AsYaml()
	require.NoError(t, err)
	found := objects{}
	found.read(t, folder, text)
	return found
}

// TestKustomizeGivesWhatTheChartGives compares both ways: no object is in one alone.
func TestKustomizeGivesWhatTheChartGives(t *testing.T) {
	for folder, given := range map[string]values{
		"default":          nil,
		"openshift":        valuesFile(t, filepath.Join(chartDir, "values-openshift.yaml")),
		"namespace-scoped": nested("wva.namespaceScoped", true),
	} {
		t.Run(folder, func(t *testing.T) {
			rendered := render(t, release{name: plainName, namespace: plainNamespace, values: given})
			expected := map[id]bool{}
			for key, manifest := range kustomize(t, filepath.Join(manifests, folder)) {
				if slices.Contains(notPlain, key) {
					continue
				}
				if name, ok := renamed[key]; ok {
					key.name = name
				}
				expected[key] = true
				object := rendered.get(t, key.kind, key.name)
				assert.Equal(t, manifest.GetNamespace(), object.GetNamespace(), "%s %s", key.kind, key.name)
				if key.kind == "Deployment" {
					expand(t, manifest)
				}
				compare(t, key.kind, manifest, object)
			}
			for key := range rendered {
				assert.True(t, expected[key], "%s %s is in the chart and not in manifests/%s", key.kind, key.name, folder)
			}
		})
	}
}

// TestModelsMayRunBesideAManagerOfOneNamespace: a model server may run as root, and its namespace
// is that of the manager then.
func TestModelsMayRunBesideAManagerOfOneNamespace(t *testing.T) {
	const enforce = "pod-security.kubernetes.io/enforce"
	assert.Equal(t, "restricted", kustomize(t, filepath.Join(manifests, "default")).get(t, "Namespace", plainNamespace).GetLabels()[enforce])
	assert.NotContains(t, kustomize(t, filepath.Join(manifests, "namespace-scoped")).get(t, "Namespace", plainNamespace).GetLabels(), enforce)
}

// TestAnOverlayMovesTheManager into another namespace, with its rights and webhooks.
func TestAnOverlayMovesTheManager(t *testing.T) {
	overlay := t.TempDir()
	text := "namespace: chat\nresources:\n"
	for _, folder := range []string{"default", "webhook", "llamastack"} {
		base, err := filepath.Abs(filepath.Join(manifests, folder))
		require.NoError(t, err)
		base, err = filepath.Rel(overlay, base)
		require.NoError(t, err)
		text += "- " + base + "\n"
	}
	require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600))
	for key, object := range kustomize(t, overlay) {
		said, err := object.MarshalJSON()
		require.NoError(t, err)
		assert.NotContains(t, string(said), plainNamespace, "%s %s", key.kind, key.name)
	}
}

// expand replaces the variable as the kubelet does.
func expand(t *testing.T, deployment *unstructured.Unstructured) {
	t.Helper()
	var args []any
	for _, argument := range arguments(t, deployment) {
		args = append(args, strings.ReplaceAll(argument, "$(POD_NAMESPACE)", plainNamespace))
	}
	container(t, deployment)["args"] = args
}

// TestEveryFileOfAFolderIsInItsKustomization: one that is forgotten would be missing for
// some of those who install.
func TestEveryFileOfAFolderIsInItsKustomization(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(manifests, "*", "Kustomization"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		folder := filepath.Dir(path)
		all := readManifests(t, filepath.Base(folder))
		assert.ElementsMatch(t, all.ids(), kustomize(t, folder).ids(), folder)
	}
}

// TestOneEditNamesTheImage: what "kustomize edit set image" writes is enough.
func TestOneEditNamesTheImage(t *testing.T) {
	for program, of := range map[string]struct{ folder, deployment string }{
		"manager":   {"default", plainName + "-controller-manager"},
		"scheduler": {"scheduler", "variant-scheduler"},
	} {
		overlay := t.TempDir()
		base, err := filepath.Abs(filepath.Join(manifests, of.folder))
		require.NoError(t, err)
		base, err = filepath.Rel(overlay, base)
		require.NoError(t, err)
		text := fmt.Sprintf("resources: [%s]\nimages:\n- name: workload-variant-autoscaler/%s\n  newName: mirror/%s\n  newTag: v9\n", base, program, program)
		require.NoError(t, os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600))
		deployment := kustomize(t, overlay).get(t, "Deployment", of.deployment)
		assert.Equal(t, "mirror/"+program+":v9", container(t, deployment)["image"])
	}
}

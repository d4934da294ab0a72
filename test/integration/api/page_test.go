package api_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/test/page"
)

// ofOthers are the kinds that no cluster has by itself; test/page reads those by their
// fields.
var ofOthers = []string{"PodMonitor", "ServiceMonitor", "ScaledObject"}

// ofPages is the namespace into which the objects of the pages would go.
const ofPages = "pages"

// Every object that a page shows is one that the API server takes: it checks each as it
// would on kubectl apply --dry-run=server, and refuses fields that it does not know.
func TestTheObjectsOfThePagesAreTaken(t *testing.T) {
	t.Parallel()
	client, err := dynamic.NewForConfig(cluster.Config())
	require.NoError(t, err)
	served, err := discovery.NewDiscoveryClientForConfig(cluster.Config())
	require.NoError(t, err)
	// Objects of other tests have names that the pages use, too.
	own := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": ofPages}}}
	_, err = client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")).Create(t.Context(), own, metav1.CreateOptions{})
	require.NoError(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served))
	pages, err := page.Pages("../../..")
	require.NoError(t, err)
	taken := 0
	for _, p := range pages {
		for _, block := range p.Blocks {
			if block.Language != "yaml" {
				continue
			}
			for document := range strings.SplitSeq("\n"+block.Text, "\n---\n") {
				object := &unstructured.Unstructured{}
				require.NoError(t, yaml.Unmarshal([]byte(document), &object.Object), block.Place)
				if object.GetKind() == "" || object.GetAPIVersion() == "" || slices.Contains(ofOthers, object.GetKind()) {
					continue
				}
				taken++
				assert.NoError(t, dryRun(t, client, mapper, object), "%s: %s %s", block.Place, object.GetKind(), object.GetName())
			}
		}
	}
	require.Greater(t, taken, 10)
}

// dryRun has the API server check an object, which may exist already.
func dryRun(t *testing.T, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) error {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	var into dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		// That of the page need not exist here.
		object.SetNamespace(ofPages)
		into = client.Resource(mapping.Resource).Namespace(ofPages)
	}
	_, err = into.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
	return err
}

package api_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
)

const (
	manifests = "../../../manifests"
	namespace = "default"
)

var (
	cluster *localcluster.Cluster
	// objects is a client of the VariantAutoscaling objects of one namespace.
	objects dynamic.ResourceInterface
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var err error
	cluster, err = localcluster.Start(ctx, localcluster.Options{
		Components: localcluster.Components{ControllerManager: true},
		Manifests:  []string{manifests + "/crd", manifests + "/rbac", manifests + "/manager"},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer cluster.Stop()
	client, err := dynamic.NewForConfig(cluster.Config())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	objects = client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource)).Namespace(namespace)
	return m.Run()
}

// variant is an object with the given spec in YAML.
func variant(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(),
		"kind":       v1alpha1.Kind,
		"metadata":   map[string]any{"generateName": "variant-"},
	}}
	var content map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &content))
	object.Object["spec"] = content
	return object
}

// create asks the API server for the object the way that kubectl does: a field that
// the schema does not know is an error.
func create(t *testing.T, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	created, err := objects.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err == nil {
		t.Cleanup(func() {
			// The test's own context has ended by now.
			err := objects.Delete(context.Background(), created.GetName(), metav1.DeleteOptions{})
			require.NoError(t, err)
		})
	}
	return created, err
}

// update writes the object's spec.
func update(t *testing.T, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	t.Helper()
	return objects.Update(t.Context(), object, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
}

package migrate

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/cluster"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

// definition is what the cluster's CRD can hold.
type definition struct {
	object *unstructured.Unstructured
	// fields are those of a spec.
	fields map[string]any
}

// readDefinition reads the CRD of VariantAutoscaling.
func readDefinition(ctx context.Context, api client.Reader) (*definition, error) {
	d := &definition{object: &unstructured.Unstructured{}}
	d.object.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := api.Get(ctx, client.ObjectKey{Name: v1alpha1.Resource + "." + v1alpha1.GroupName}, d.object)
	if apierrors.IsNotFound(err) {
		return nil, errors.New("the cluster has no CRD of VariantAutoscaling: install the chart first")
	}
	if err != nil {
		return nil, cluster.Advise(err, "get", "customresourcedefinitions", "")
	}
	versions, _, _ := unstructured.NestedSlice(d.object.Object, "spec", "versions")
	for _, v := range versions {
		version, _ := v.(map[string]any)
		if version["name"] == v1alpha1.GroupVersion.Version {
			d.fields, _, _ = unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec", "properties")
		}
	}
	return d, nil
}

// earlier reports whether the CRD holds the fields of earlier forms, present whether it
// holds those of the present one.
func (d *definition) earlier() bool {
	return d.fields["modelProfile"] != nil || d.fields["variants"] != nil || d.fields["acceleratorType"] != nil
}

func (d *definition) present() bool { return d.fields["scaleTargetRef"] != nil }

// kinds are those that are read from a cluster.
var kinds = []schema.GroupVersionKind{
	v1alpha1.GroupVersion.WithKind(v1alpha1.Kind),
	{Group: "autoscaling", Version: "v2", Kind: migration.KindHPA},
	{Group: "keda.sh", Version: "v1alpha1", Kind: migration.KindScaled},
	{Group: "apps", Version: "v1", Kind: "Deployment"},
}

// readLive reads the objects of a namespace, or of all, as the cluster has them. A CRD of
// the present form has dropped the fields of earlier objects, so that nothing of them is
// left to read.
func readLive(ctx context.Context, api client.Reader, namespace string) ([]migration.Document, error) {
	d, err := readDefinition(ctx, api)
	if err != nil {
		return nil, err
	}
	var all []migration.Document
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		err := api.List(ctx, list, client.InNamespace(namespace))
		if kind.Group == "keda.sh" && (apimeta.IsNoMatchError(err) || apierrors.IsNotFound(err)) {
			continue
		}
		if err != nil {
			return nil, cluster.Advise(err, "list", kind.Kind, namespace)
		}
		for i := range list.Items {
			read, err := liveDocument(list.Items[i].Object)
			if err != nil {
				return nil, err
			}
			if kind.Kind == v1alpha1.Kind && !d.earlier() && migration.IsEarlier(read.Object) {
				return nil, fmt.Errorf("the cluster's CRD is not of the form of VariantAutoscaling %s, so the API server no longer shows its fields: "+
					"give the backup that was taken before the CRD was replaced, with -f backup.yaml", read.Key())
			}
			all = append(all, read)
		}
	}
	return all, nil
}

// liveDocument is an object of the cluster as a file would have it.
func liveDocument(object map[string]any) (migration.Document, error) {
	if metadata, ok := object["metadata"].(map[string]any); ok {
		for _, field := range []string{"managedFields", "resourceVersion", "uid", "generation", "creationTimestamp", "selfLink"} {
			delete(metadata, field)
		}
	}
	d := migration.Of(object)
	d.File = "the cluster"
	var err error
	d.Text, err = migration.Marshal(object)
	return d, err
}

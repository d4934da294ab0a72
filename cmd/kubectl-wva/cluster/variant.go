package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Variant reads the object of that name in the namespace of the flags.
func (f *Flags) Variant(ctx context.Context, api client.Reader, name string) (*v1alpha1.VariantAutoscaling, error) {
	namespace, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	var object v1alpha1.VariantAutoscaling
	err = api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &object)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("there is no VariantAutoscaling %s in namespace %s: %q shows which there are", name, namespace, "kubectl wva status -A")
	}
	if err != nil {
		return nil, Advise(err, "get", v1alpha1.Resource, namespace)
	}
	return &object, Unreadable(&object)
}

// Variants lists the objects of a namespace; without one those of all. Unreadable tells those that
// could not be read.
func Variants(ctx context.Context, api client.Reader, namespace string) (*v1alpha1.VariantAutoscalingList, error) {
	var list v1alpha1.VariantAutoscalingList
	err := api.List(ctx, &list, client.InNamespace(namespace))
	return &list, Advise(err, "list", v1alpha1.Resource, namespace)
}

// Advise adds to an error of the cluster what to do about it.
func Advise(err error, verb, resource, namespace string) error {
	scope := "--all-namespaces"
	if namespace != "" {
		scope = "--namespace " + namespace
	}
	switch {
	case err == nil:
		return nil
	case strings.Contains(err.Error(), "resource name may not be empty"):
		return fmt.Errorf("the name is empty: expected that of one of the %s", resource)
	case apimeta.IsNoMatchError(err):
		return fmt.Errorf("this cluster does not know %s: install the chart, or its CRD with %q", resource, "kubectl apply -f manifests/crd")
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for the permission; `kubectl auth can-i %s %s %s` tells when it is there", err, verb, resource, scope)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("%w: the cluster does not accept these credentials; log in again or choose another --context", err)
	case apierrors.ReasonForError(err) == "":
		return fmt.Errorf("%w: no answer from the cluster; check --context and --kubeconfig, and whether `kubectl version` gets one", err)
	}
	return err
}

// CompleteVariants completes the names of objects in the namespace of the flags.
func (f *Flags) CompleteVariants(command *cobra.Command, given []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	const rest = cobra.ShellCompDirectiveNoFileComp
	if len(given) > 0 {
		return nil, rest
	}
	namespace, err := f.Namespace()
	if err != nil {
		return nil, rest
	}
	api, err := f.Client()
	if err != nil {
		return nil, rest
	}
	list, err := Variants(command.Context(), api, namespace)
	if err != nil {
		return nil, rest
	}
	names := make([]cobra.Completion, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names, rest
}

// CompleteNames completes the names of objects of another kind, as far as they may be read.
func (f *Flags) CompleteNames(kind schema.GroupVersionKind) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, _ string) (names []cobra.Completion, _ cobra.ShellCompDirective) {
		const rest = cobra.ShellCompDirectiveNoFileComp
		namespace, err := f.Namespace()
		if err != nil {
			return nil, rest
		}
		api, err := f.Client()
		if err != nil {
			return nil, rest
		}
		list := partial(kind)
		if api.List(command.Context(), list, client.InNamespace(namespace)) != nil {
			return nil, rest
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, rest
	}
}

// partial is an empty list of the metadata of objects of a kind.
func partial(kind schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	return list
}

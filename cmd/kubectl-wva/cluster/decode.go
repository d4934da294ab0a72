package cluster

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// each is a client that reads VariantAutoscaling objects one by one: one that does not fit the Go
// type, as one that was stored under an earlier schema, then hides no other. Unreadable tells it.
type each struct{ client.WithWatch }

// Get implements client.Reader.
func (e each) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	v, ours := object.(*v1alpha1.VariantAutoscaling)
	if !ours {
		return e.WithWatch.Get(ctx, key, object, options...)
	}
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	if err := e.WithWatch.Get(ctx, key, stored, options...); err != nil {
		return err
	}
	*v = *v1alpha1.Decode(stored)
	return nil
}

// List implements client.Reader.
func (e each) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	variants, ours := list.(*v1alpha1.VariantAutoscalingList)
	if !ours {
		return e.WithWatch.List(ctx, list, options...)
	}
	stored := stored()
	if err := e.WithWatch.List(ctx, stored, options...); err != nil {
		return err
	}
	*variants = *v1alpha1.DecodeList(stored)
	return nil
}

// Watch implements client.WithWatch.
func (e each) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	if _, ours := list.(*v1alpha1.VariantAutoscalingList); !ours {
		return e.WithWatch.Watch(ctx, list, options...)
	}
	changes, err := e.WithWatch.Watch(ctx, stored(), options...)
	if err != nil {
		return nil, err
	}
	return v1alpha1.DecodeWatch(changes), nil
}

// stored is a list of objects as they are stored.
func stored() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind + "List"))
	return list
}

// Unreadable is what is wrong with an object that could not be read; nil for all others.
func Unreadable(v *v1alpha1.VariantAutoscaling) error {
	why := v.Annotations[v1alpha1.AnnotationUndecodable]
	if why == "" {
		return nil
	}
	return fmt.Errorf("VariantAutoscaling %s/%s cannot be read, so the autoscaler leaves it out: %s; correct it with `kubectl -n %s edit %s %s`",
		v.Namespace, v.Name, why, v.Namespace, v1alpha1.Resource, v.Name)
}

// Readable are the objects of a list that could be read, and what is wrong with the others.
func Readable(list *v1alpha1.VariantAutoscalingList) (all []*v1alpha1.VariantAutoscaling, unreadable []string) {
	for i := range list.Items {
		if err := Unreadable(&list.Items[i]); err != nil {
			unreadable = append(unreadable, err.Error())
		} else {
			all = append(all, &list.Items[i])
		}
	}
	return all, unreadable
}

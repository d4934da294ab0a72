package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// decodeEach has the cache read VariantAutoscaling objects of a namespace, or of all where it is
// empty, one by one: one that does not fit the Go type then stops no other.
func decodeEach(options cache.Options, cluster *rest.Config, namespace string) (cache.Options, error) {
	client, err := dynamic.NewForConfig(cluster)
	if err != nil {
		return options, fmt.Errorf("making a client: %w", err)
	}
	objects := client.Resource(v1alpha1.GroupVersion.WithResource(v1alpha1.Resource)).Namespace(namespace)
	options.NewInformer = func(from toolscache.ListerWatcher, object runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		if _, ours := object.(*v1alpha1.VariantAutoscaling); ours {
			from = &toolscache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
					stored, err := objects.List(ctx, o)
					if err != nil {
						return nil, err
					}
					return v1alpha1.DecodeList(stored), nil
				},
				WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					stored, err := objects.Watch(ctx, o)
					if err != nil {
						return nil, err
					}
					return v1alpha1.DecodeWatch(stored), nil
				},
			}
		}
		return toolscache.NewSharedIndexInformer(from, object, resync, indexers)
	}
	return options, nil
}

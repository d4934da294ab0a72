package controller

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// watcher turns changes of the cluster into events for the loop.
type watcher struct {
	ctx     context.Context
	cache   cache.Cache
	trigger *trigger
	access  Access
}

// watched is a kind that is kept in the cache, and what its changes call for; a nil
// handler means that they can wait.
type watched struct {
	object  client.Object
	handler toolscache.ResourceEventHandler
}

// watch starts the informers of everything that the loop reads, and says which
// changes a round should look at before its time.
func (w *watcher) watch() error {
	kinds := []watched{
		{&v1alpha1.VariantAutoscaling{}, w.always(urgent, specChanged)},
		{&appsv1.Deployment{}, w.presence(schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"})},
		{&appsv1.StatefulSet{}, w.presence(schema.GroupKind{Group: appsv1.GroupName, Kind: "StatefulSet"})},
		{&appsv1.ReplicaSet{}, w.presence(schema.GroupKind{Group: appsv1.GroupName, Kind: "ReplicaSet"})},
		{&autoscalingv2.HorizontalPodAutoscaler{}, w.autoscalers(targetOfAutoscaler)},
		{&corev1.Pod{}, nil},
	}
	if w.access.LeaderWorkerSets {
		kinds = append(kinds, watched{empty(kindLeaderWorkerSet), w.presence(kindLeaderWorkerSet.GroupKind())})
	}
	if w.access.ScaledObjects {
		kinds = append(kinds, watched{empty(kindScaledObject), w.autoscalers(targetOfScaledObject)})
	}
	if w.access.Namespaces {
		kinds = append(kinds, watched{&corev1.Namespace{}, nil})
	}
	if w.access.Capacity {
		kinds = append(kinds, watched{&corev1.Node{}, w.always(soon, roomChanged)})
	}
	for _, k := range kinds {
		informer, err := w.cache.GetInformer(w.ctx, k.object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", k.object, err)
		}
		if k.handler == nil {
			continue
		}
		if _, err := informer.AddEventHandler(k.handler); err != nil {
			return fmt.Errorf("watching %T: %w", k.object, err)
		}
	}
	return nil
}

// always calls for a round whenever an object comes, goes or changes.
func (w *watcher) always(u urgency, changed func(before, after any) bool) toolscache.ResourceEventHandler {
	poke := func(any) { w.trigger.poke(u) }
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    poke,
		DeleteFunc: poke,
		UpdateFunc: func(before, after any) {
			if changed(before, after) {
				w.trigger.poke(u)
			}
		},
	}
}

// presence calls for a round when the target of an object comes or goes.
func (w *watcher) presence(gk schema.GroupKind) toolscache.ResourceEventHandler {
	poke := func(o any) {
		if object, ok := final(o); ok && w.isTarget(object.GetNamespace(), targetKey(gk, object.GetName())) {
			w.trigger.poke(urgent)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    poke,
		DeleteFunc: poke,
		UpdateFunc: func(before, after any) {
			was, _ := final(before)
			is, ok := final(after)
			// One that was deleted and created again between two lists is an update.
			if ok && was != nil && (was.GetUID() != is.GetUID() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil)) {
				poke(after)
			}
		},
	}
}

// autoscalers calls for a round when another autoscaler takes or leaves a target.
func (w *watcher) autoscalers(targetOf client.IndexerFunc) toolscache.ResourceEventHandler {
	poke := func(o any) {
		object, ok := final(o)
		if !ok {
			return
		}
		for _, key := range targetOf(object) {
			if w.isTarget(object.GetNamespace(), key) {
				w.trigger.poke(urgent)
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    poke,
		DeleteFunc: poke,
		UpdateFunc: func(before, after any) {
			was, _ := final(before)
			is, _ := final(after)
			if was != nil && is != nil && !slices.Equal(targetOf(was), targetOf(is)) {
				poke(before)
				poke(after)
			}
		},
	}
}

func (w *watcher) isTarget(namespace, key string) bool {
	var list v1alpha1.VariantAutoscalingList
	err := w.cache.List(w.ctx, &list, client.InNamespace(namespace), client.MatchingFields{indexTarget: key}, client.UnsafeDisableDeepCopy)
	return err == nil && len(list.Items) > 0
}

// final is the object of a notification, also of one whose deletion was missed.
func final(o any) (client.Object, bool) {
	if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = gone.Obj
	}
	object, ok := o.(client.Object)
	return object, ok
}

// specChanged leaves out changes of the status, which are our own.
func specChanged(before, after any) bool {
	was, _ := final(before)
	is, _ := final(after)
	return was == nil || is == nil || was.GetGeneration() != is.GetGeneration() || !equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) ||
		(was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil)
}

// roomChanged reports whether a node may take more, fewer or other pods than before.
// Heartbeats are no change.
func roomChanged(before, after any) bool {
	was, ok := before.(*corev1.Node)
	is, isNode := after.(*corev1.Node)
	if !ok || !isNode {
		return true
	}
	return inventory.Out(was) != inventory.Out(is) ||
		!equality.Semantic.DeepEqual(was.Status.Allocatable, is.Status.Allocatable) ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels)
}

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
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// watcher turns changes of the cluster into events for the loop.
type watcher struct {
	ctx     context.Context
	cache   cache.Cache
	trigger *trigger
	access  Access
}

// watch starts the informers of everything that the loop reads, and says which
// changes a round should look at before its time.
func (w *watcher) watch() error {
	anything := func(client.Object) bool { return true }
	workload := func(gk schema.GroupKind) toolscache.ResourceEventHandler {
		return w.on(round.Urgent, w.isTarget(nameOf(gk)), recreated)
	}
	autoscaler := func(target client.IndexerFunc) toolscache.ResourceEventHandler {
		return w.on(round.Urgent, w.isTarget(target), differs(target))
	}
	// Changes of a kind without a handler can wait.
	kinds := map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.VariantAutoscaling{}:           w.on(round.Urgent, anything, specChanged),
		&appsv1.Deployment{}:                     workload(appsKind("Deployment")),
		&appsv1.StatefulSet{}:                    workload(appsKind("StatefulSet")),
		&appsv1.ReplicaSet{}:                     workload(appsKind("ReplicaSet")),
		&autoscalingv2.HorizontalPodAutoscaler{}: autoscaler(targetOfAutoscaler),
		&corev1.Pod{}:                            nil,
	}
	if w.access.LeaderWorkerSets {
		kinds[empty(kindLeaderWorkerSet)] = workload(kindLeaderWorkerSet.GroupKind())
	}
	if w.access.ScaledObjects {
		kinds[empty(kindScaledObject)] = autoscaler(targetOfScaledObject)
	}
	if w.access.Namespaces {
		kinds[&corev1.Namespace{}] = nil
	}
	if w.access.Capacity {
		kinds[&corev1.Node{}] = w.on(round.Soon, anything, roomChanged)
	}
	for object, handler := range kinds {
		informer, err := w.cache.GetInformer(w.ctx, object, cache.BlockUntilSynced(false))
		if err == nil && handler != nil {
			_, err = informer.AddEventHandler(handler)
		}
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
	}
	return nil
}

// on calls for a round when an object that is of concern comes or goes, or changes so that
// it matters. What it was before may be of concern where what it is now is not.
func (w *watcher) on(u round.Urgency, concerns func(client.Object) bool, changed func(was, is client.Object) bool) toolscache.ResourceEventHandler {
	poke := func(o any) {
		if gone, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = gone.Obj // its deletion was missed
		}
		if object, ok := o.(client.Object); ok && concerns(object) {
			w.trigger.poke(u)
		}
	}
	return toolscache.ResourceEventHandlerFuncs{
		AddFunc:    poke,
		DeleteFunc: poke,
		UpdateFunc: func(before, after any) {
			if changed(before.(client.Object), after.(client.Object)) {
				poke(before)
				poke(after)
			}
		},
	}
}

// isTarget reports whether an object is, or names, a target of ours.
func (w *watcher) isTarget(keysOf client.IndexerFunc) func(client.Object) bool {
	return func(o client.Object) bool {
		return slices.ContainsFunc(keysOf(o), func(key string) bool {
			variants, err := variantsOn(w.ctx, w.cache, o.GetNamespace(), key)
			return err == nil && len(variants) > 0
		})
	}
}

// nameOf are the keys of objects of a kind themselves.
func nameOf(gk schema.GroupKind) client.IndexerFunc {
	return func(o client.Object) []string { return []string{targetKey(gk, o.GetName())} }
}

func appsKind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: appsv1.GroupName, Kind: kind}
}

// recreated reports whether an object is deleted, or was deleted and created again between
// two lists.
func recreated(was, is client.Object) bool {
	return was.GetUID() != is.GetUID() || (was.GetDeletionTimestamp() == nil) != (is.GetDeletionTimestamp() == nil)
}

// differs reports whether an object names another target.
func differs(keysOf client.IndexerFunc) func(was, is client.Object) bool {
	return func(was, is client.Object) bool { return !slices.Equal(keysOf(was), keysOf(is)) }
}

// specChanged leaves out changes of the status, which are our own.
func specChanged(was, is client.Object) bool {
	return recreated(was, is) || was.GetGeneration() != is.GetGeneration() || !equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels())
}

// roomChanged reports whether a node may take more, fewer or other pods than before.
// Heartbeats are no change.
func roomChanged(before, after client.Object) bool {
	was, is := before.(*corev1.Node), after.(*corev1.Node)
	return inventory.Out(was) != inventory.Out(is) ||
		!equality.Semantic.DeepEqual(was.Status.Allocatable, is.Status.Allocatable) ||
		!equality.Semantic.DeepEqual(was.Spec.Taints, is.Spec.Taints) ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels)
}

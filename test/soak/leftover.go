package main

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A garbage collector whose API server is killed while it works leaves pods of Deployments
// that are deleted, and those serve on: beside them fewer replicas are needed than the load
// alone says.

// leftovers are the ReplicaSets and pods whose owner is gone, or is itself one of them.
func leftovers(deployments []appsv1.Deployment, sets []appsv1.ReplicaSet, pods []corev1.Pod) (left []client.Object) {
	there := map[types.UID]bool{}
	for i := range deployments {
		there[deployments[i].UID] = true
	}
	look := func(o client.Object) {
		owner := metav1.GetControllerOf(o)
		if owner != nil && !there[owner.UID] {
			left = append(left, o)
			return
		}
		there[o.GetUID()] = true
	}
	for i := range sets {
		look(&sets[i])
	}
	for i := range pods {
		look(&pods[i])
	}
	return left
}

// sweep deletes what is left, so that only the replicas that are asked for serve, and
// returns how many pods that were.
func (w *world) sweep(ctx context.Context) (swept int, err error) {
	err = w.insist(ctx, func(ctx context.Context) error {
		var deployments appsv1.DeploymentList
		var sets appsv1.ReplicaSetList
		var pods corev1.PodList
		// The owners come last: what they own was there before.
		for _, list := range []client.ObjectList{&pods, &sets, &deployments} {
			if err := w.api.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
		}
		for _, object := range leftovers(deployments.Items, sets.Items, pods.Items) {
			if err := ignore(apierrors.IsNotFound, w.api.Delete(ctx, object, client.GracePeriodSeconds(0))); err != nil {
				return err
			}
			if _, ok := object.(*corev1.Pod); ok {
				swept++
			}
		}
		return nil
	})
	return swept, err
}

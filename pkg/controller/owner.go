package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// mostOwners is one more than the longest known chain: a worker pod, its StatefulSet, the
// leader pod, its StatefulSet, the LeaderWorkerSet.
const mostOwners = 6

// nearestOwner asks of a pod's owners, from below, by their targetKey, until one is it. An
// owner that a reader does not have is looked for in the next: a cache may not have one
// that was made a moment ago, with its first pods.
func nearestOwner(ctx context.Context, pod *corev1.Pod, is func(key string) (bool, error), readers ...client.Reader) error {
	owner := metav1.GetControllerOfNoCopy(pod)
	for range mostOwners {
		if owner == nil {
			return nil
		}
		kind := schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind()
		if found, err := is(targetKey(kind, owner.Name)); found || err != nil {
			return err
		}
		var err error
		if owner, err = ownerOf(ctx, kind, pod.Namespace, owner, readers); err != nil {
			return fmt.Errorf("looking for the owner of a pod: %w", err)
		}
	}
	return nil
}

// ownerOf is the owner of an owner of pods; nil where there is none, or nobody knows.
func ownerOf(ctx context.Context, kind schema.GroupKind, namespace string, of *metav1.OwnerReference, readers []client.Reader) (*metav1.OwnerReference, error) {
	object, followed := map[schema.GroupKind]client.Object{
		appsKind("ReplicaSet"):  &appsv1.ReplicaSet{},
		appsKind("Deployment"):  &appsv1.Deployment{},
		appsKind("StatefulSet"): &appsv1.StatefulSet{},
		{Kind: "Pod"}:           &corev1.Pod{},
	}[kind]
	if !followed {
		return nil, nil //nolint:nilnil // nobody knows its owner, which is no error
	}
	for _, reader := range readers {
		err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: of.Name}, object)
		if err == nil && object.GetUID() == of.UID {
			return metav1.GetControllerOf(object), nil
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return nil, nil //nolint:nilnil // it is gone, which is no error
}

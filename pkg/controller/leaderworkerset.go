package controller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// leaderWorkerSet reads one LeaderWorkerSet. Its scale counts groups of pods, and its
// selector finds their leaders.
func (f *targetFinder) leaderWorkerSet(ctx context.Context, key client.ObjectKey, t *target) error {
	u := empty(kindLeaderWorkerSet)
	if err := f.reader.Get(ctx, key, u); err != nil {
		return err
	}
	set, err := inventory.LeaderWorkerSetOf(u)
	if err != nil {
		return err
	}
	t.found(&metav1.ObjectMeta{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), ManagedFields: u.GetManagedFields(),
		DeletionTimestamp: u.GetDeletionTimestamp(), OwnerReferences: u.GetOwnerReferences(),
	}, ptr.To(int32(set.Replicas)), set.Template)
	t.told.Rolling, t.told.Numbered = replacingGroups(u), true
	t.podsPerReplica, t.owners, t.rollout = set.PodsPerReplica, nil, set.Rollout
	t.bySelector(set.Selector)
	// The leaders' StatefulSet has the name of the set.
	var leaders appsv1.StatefulSet
	switch err := f.reader.Get(ctx, key, &leaders, shared); {
	case err == nil:
		if metav1.IsControlledBy(&leaders, u) {
			t.child = targetKey(appsKind("StatefulSet"), leaders.Name)
		}
		t.revision = inventory.RevisionOfLeaderWorkerSet(&set, &leaders)
	case !apierrors.IsNotFound(err):
		return err
	}
	return nil
}

// replacingGroups reports whether groups are replaced by newer ones, of whatever size
// they are. A version of the kind that does not say what it observed has observed it.
func replacingGroups(u *unstructured.Unstructured) bool {
	number := func(path ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, path...) // 0 where there is none
		return n
	}
	observed, known, _ := unstructured.NestedInt64(u.Object, "status", "observedGeneration")
	if known && observed < u.GetGeneration() {
		return true
	}
	left := number("spec", "rolloutStrategy", "rollingUpdateConfiguration", "partition")
	return number("status", "updatedReplicas") < number("status", "replicas")-left
}

package controller

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	t.found(&metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		ptr.To(int32(set.Replicas)), set.Template)
	t.podsPerReplica, t.owners, t.rollout = set.PodsPerReplica, nil, set.Rollout
	t.bySelector(set.Selector)
	return nil
}

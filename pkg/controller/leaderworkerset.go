package controller

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// leaderWorkerSet reads one LeaderWorkerSet. A replica is a group of pods; the one
// that its scale selects, the leader, serves and is counted.
func (f *targetFinder) leaderWorkerSet(ctx context.Context, key client.ObjectKey, t *target) error {
	u := empty(kindLeaderWorkerSet)
	if err := f.reader.Get(ctx, key, u); err != nil {
		return err
	}
	var set struct {
		Spec struct {
			Replicas             *int32 `json:"replicas"`
			LeaderWorkerTemplate struct {
				Size           *int32                  `json:"size"`
				LeaderTemplate *corev1.PodTemplateSpec `json:"leaderTemplate"`
				WorkerTemplate corev1.PodTemplateSpec  `json:"workerTemplate"`
			} `json:"leaderWorkerTemplate"`
			RolloutStrategy struct {
				RollingUpdate struct {
					MaxSurge *intstr.IntOrString `json:"maxSurge"`
				} `json:"rollingUpdateConfiguration"`
			} `json:"rolloutStrategy"`
		} `json:"spec"`
		Status struct {
			Selector string `json:"hpaPodSelector"`
			Replicas int    `json:"replicas"`
			Updated  int    `json:"updatedReplicas"`
			// Observed is not there in older versions of the kind.
			Observed *int64 `json:"observedGeneration"`
		} `json:"status"`
	}
	if err := decode(u, &set); err != nil {
		return fmt.Errorf("decoding LeaderWorkerSet %s: %w", key, err)
	}
	template := &set.Spec.LeaderWorkerTemplate.WorkerTemplate
	size := int(ptr.Deref(set.Spec.LeaderWorkerTemplate.Size, 1))
	if leader := set.Spec.LeaderWorkerTemplate.LeaderTemplate; leader != nil && size == 1 {
		template = leader
	}
	t.found(&metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()}, set.Spec.Replicas, template)
	t.podsPerReplica, t.owners = size, nil
	if size == 1 {
		t.rollout = inventory.Rollout{
			UnderWay:   set.Status.Updated < set.Status.Replicas,
			Unobserved: set.Status.Observed != nil && *set.Status.Observed < u.GetGeneration(),
			Updated:    set.Status.Updated,
		}.Within(set.Spec.RolloutStrategy.RollingUpdate.MaxSurge, int(t.scale.Spec.Replicas))
	}
	t.bySelector(cmp.Or(set.Status.Selector, "leaderworkerset.sigs.k8s.io/name="+key.Name+",leaderworkerset.sigs.k8s.io/worker-index=0"))
	return nil
}

func decode(u *unstructured.Unstructured, into any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into)
}

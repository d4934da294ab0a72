package capacity

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// reserve is the cluster on which the autoscaler counts slots: without the room of
// replicas that wait for a node, that no pod shows yet, or that a rolling update may
// still add. How long a replica has had no pod is not known here; the autoscaler
// ceases to wait for it after two minutes.
func (a *assembly) reserve() *placement.Cluster {
	if !a.seen.podsKnown {
		return a.inventory.Cluster
	}
	snapshot := decision.Snapshot{Time: time.Now(), Cluster: a.inventory.Cluster}
	policy := decision.DefaultPolicy()
	policy.Variants = map[decision.Key]decision.VariantPolicy{}
	models := map[decision.ModelKey][]decision.Variant{}
	shared := map[string]bool{}
	for i := range a.seen.variants {
		v := &a.seen.variants[i]
		key := v.object.Namespace + "/" + v.target.kind + "/" + v.object.Spec.ScaleTargetRef.Name
		c, ok := a.claimed[v.object.Namespace+"/"+v.object.Name]
		if !ok || shared[key] {
			continue
		}
		// The pods of a target that two objects share are there once.
		shared[key] = true
		model := decision.ModelKey{Namespace: v.object.Namespace, ID: v.object.Spec.ModelID}
		models[model] = append(models[model], v.expects(c))
		if p, err := config.VariantPolicy(&v.object.Spec); err == nil {
			policy.Variants[decision.Key{Namespace: v.object.Namespace, Name: v.object.Name}] = p
		}
	}
	for key, variants := range models {
		snapshot.Models = append(snapshot.Models, decision.Model{Namespace: key.Namespace, ID: key.ID, Variants: variants})
	}
	slices.SortFunc(snapshot.Models, func(a, b decision.Model) int {
		return strings.Compare(a.Namespace+"\x00"+a.ID, b.Namespace+"\x00"+b.ID)
	})
	return decision.Reserve(snapshot, policy)
}

// expects is what a variant has and still expects.
func (v *variant) expects(c claim) decision.Variant {
	e := decision.Variant{Name: v.object.Name, Current: v.target.replicas, Request: c.request}
	for _, pod := range c.pods {
		switch {
		case !isReplica(pod):
		case inventory.HeldBy(pod) != "":
			e.Ready++
		default:
			e.Starting = append(e.Starting, decision.Starting{Name: pod.Name})
		}
	}
	e.Surge = v.target.rollout.More(e.Current, e.Ready+len(e.Starting))
	return e
}

// isReplica reports whether a pod is one of its target's replicas: neither ending nor
// ended.
func isReplica(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed
}

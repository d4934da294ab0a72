package placement_test

import (
	"fmt"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// spread makes a variant of five replicas: three on the first node of the kind, which
// somebody else uses too, and two on the second, which they alone use. Kubernetes
// itself removes replicas where most of them are.
func (w *world) spread(t *testing.T, namespace, kind string, victims v1alpha1.VictimChoice) (*appsv1.Deployment, *v1alpha1.VariantAutoscaling) {
	t.Helper()
	shared, own := kind+"-0", kind+"-1"
	w.fill(t, namespace, shared, 5)
	w.cordon(t, true, own)
	d := deployment(namespace, "small", kind, 1, 3)
	w.create(t, d)
	assert.Equal(t, map[string]int{shared: 3}, w.readyOn(t, namespace, "small", 3))
	w.cordon(t, true, shared)
	w.cordon(t, false, own)
	w.patch(t, d, `{"spec":{"replicas":5}}`)
	assert.Equal(t, map[string]int{shared: 3, own: 2}, w.readyOn(t, namespace, "small", 5))
	w.cordon(t, false, shared)

	v := variant(d, limited, "10")
	v.Spec.MinReplicas, v.Spec.MaxReplicas, v.Spec.Victims = ptr.To[int32](5), ptr.To[int32](5), victims
	large := deployment(namespace, "large", kind, 8, 0)
	vLarge := variant(large, limited, "40")
	vLarge.Spec.ModelID = "another"
	vLarge.Spec.MaxReplicas, vLarge.Spec.Actuation = ptr.To[int32](1), v1alpha1.ActuationOff
	w.create(t, v, large, vLarge)
	w.servers.ask(namespace, 1)
	w.shows(t, patience, v, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	return d, v
}

// The two replicas that go are those whose node is empty without them, and no mark of
// the choice stays behind.
func leavesANodeEmpty(t *testing.T, w *world) {
	namespace := w.space(t)
	d, v := w.spread(t, namespace, "a100", "")
	large := &v1alpha1.VariantAutoscaling{}
	large.Namespace, large.Name = namespace, "large"
	conditiontest.Eventually(t, patience, "no room for the large variant", func() (string, bool) {
		return describe(large), w.slots(t, large) == 0
	})

	w.patch(t, v, `{"spec":{"minReplicas":3,"maxReplicas":3}}`)
	w.asks(t, patience, d, v, "three", exactly(3))
	conditiontest.Eventually(t, patience, "the two replicas on the node that nobody else uses go", func() (string, bool) {
		on := w.nodesOf(t, namespace)
		return fmt.Sprint(on), on["a100-0"] == 3 && len(on) == 1
	})
	conditiontest.Eventually(t, patience, "the hole is there for the large variant", func() (string, bool) {
		return describe(large), w.slots(t, large) == 1
	})
	unmarked(t, w, namespace)
}

// With spec.victims: Kubernetes, the ReplicaSet controller thins out the node that
// holds most of them, and the autoscaler writes on no pod.
func leftToKubernetes(t *testing.T, w *world) {
	namespace := w.space(t)
	d, v := w.spread(t, namespace, "l40s", v1alpha1.VictimsKubernetes)
	w.patch(t, v, `{"spec":{"minReplicas":3,"maxReplicas":3}}`)
	w.asks(t, patience, d, v, "three", exactly(3))
	conditiontest.Eventually(t, patience, "three replicas", func() (string, bool) {
		on := w.nodesOf(t, namespace)
		return fmt.Sprint(on), on["l40s-0"]+on["l40s-1"] == 3
	})
	assert.Equal(t, map[string]int{"l40s-0": 1, "l40s-1": 2}, w.nodesOf(t, namespace))
	unmarked(t, w, namespace)
}

// nodesOf is how many replicas of the small variant each node holds.
func (w *world) nodesOf(t *testing.T, namespace string) map[string]int {
	t.Helper()
	on := map[string]int{}
	for _, pod := range w.pods(t, namespace, "small") {
		on[pod.Spec.NodeName]++
	}
	return on
}

// unmarked waits until no replica carries a mark of a choice.
func unmarked(t *testing.T, w *world, namespace string) {
	t.Helper()
	conditiontest.Eventually(t, patience, "no replica is marked", func() (string, bool) {
		marks := map[string]string{}
		for _, pod := range w.pods(t, namespace, "small") {
			for _, key := range []string{"controller.kubernetes.io/pod-deletion-cost", v1alpha1.AnnotationVictim} {
				if value, ok := pod.Annotations[key]; ok {
					marks[pod.Name+" "+key] = value
				}
			}
		}
		return fmt.Sprint(marks), len(marks) == 0
	})
}

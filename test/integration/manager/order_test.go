package manager_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

// A StatefulSet that keeps its order makes one pod after the other. With replicas that take
// long to start, the last ones have no pod for more than the two minutes after which others
// are taken never to get one. They wait for their turn: none is given back, and no other
// variant is bought in their place.
func TestReplicasOfAnOrderedSetWaitForTheirTurn(t *testing.T) {
	// Three are needed, four come up one after the other, and the set has twice as many, so that
	// no estimate of the first moments asks for more.
	const replicas, slow, startup = 8, 4, 45 * time.Second
	servers := serveModels(t)
	namespace := space(t)
	// For three replicas, so that those that never come would be missed.
	servers.ask(namespace, 1.5*serves)
	wanted := int32(replicas)
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"app": "ordered"}, Annotations: map[string]string{emulation.ServerAnnotation: ""},
	}, Spec: podSpec()}
	set := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ordered"},
		Spec:       appsv1.StatefulSetSpec{Replicas: &wanted, Selector: &metav1.LabelSelector{MatchLabels: template.Labels}, Template: template},
	}
	other := deployment(namespace, "other", 0)
	v, dearer := target(variant(namespace, "ordered", "ordered", brisk), "apps/v1", "StatefulSet"), variant(namespace, "other", "other", brisk)
	v.Spec.VariantCost, dearer.Spec.VariantCost = "10", "15"
	// The replicas that are there stay.
	v.Spec.Behavior = nil
	create(t, set, other, v, dearer)

	pod := func(i int) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("ordered-", i)}}
	}
	// serve ends the start-up of a pod.
	serve := func(i int) {
		conditiontest.Eventually(t, patience, fmt.Sprint("pod ", i), func() (string, bool) {
			err := api.Get(t.Context(), client.ObjectKeyFromObject(pod(i)), pod(i))
			return fmt.Sprint(err), err == nil
		})
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"true"}}}`, emulation.ReadyAnnotation)
		require.NoError(t, api.Patch(t.Context(), pod(i), client.RawPatch("application/merge-patch+json", patch)))
	}
	serve(0)
	shows(t, patience, v, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	asked := func() (string, bool) {
		mine, others := *read(t, set).Spec.Replicas, *read(t, other).Spec.Replicas
		found := fmt.Sprintf("%d replicas of the set, %d of the other\n%s\nthe other: %s", mine, others, describe(read(t, v)), describe(read(t, dearer)))
		return found, mine == replicas && others == 0 && !strings.Contains(found, string(decision.ReasonStartupOverdue))
	}
	for i := 1; i < replicas; i++ {
		if i < slow {
			conditiontest.Throughout(t, startup, fmt.Sprint("pod ", i, " starts and the next ones wait"), asked)
		}
		serve(i)
	}
	conditiontest.Eventually(t, patience, "all serve", func() (string, bool) {
		ready := read(t, set).Status.ReadyReplicas
		return fmt.Sprint(ready), ready == replicas
	})
	found, ok := asked()
	assert.True(t, ok, found)
}

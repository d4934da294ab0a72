package llamastack_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
	llmd "llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// A server's replicas are its operator's, or its own autoscaler's. A VariantAutoscaling on the server
// says so in a condition, names who it is, and leaves the replicas alone; the operator, which knows
// nothing of it, goes on.
func TestAVariantOnAServerSaysWhoScalesIt(t *testing.T) {
	for name, c := range map[string]struct {
		spec, reason, who string
	}{
		"its own autoscaler": {"workload: {replicas: 1, autoscaling: {maxReplicas: 3}}", llmd.ReasonAutoscalerOnTarget, "HorizontalPodAutoscaler demo-hpa (which LlamaStackDistribution demo makes: change it there) also scales Deployment demo"},
		"its operator":       {"workload: {replicas: 1}", "ReplicasOverwritten", "field manager llama-stack-operator keeps changing the replicas"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := space(t)
			object := hub(t, namespace, "demo", "distribution: {name: starter}\n"+c.spec)
			create(t, object)
			reaches(t, object, v1alpha2.PhaseReady)
			v := &llmd.VariantAutoscaling{ObjectMeta: named(namespace, "demo"), Spec: llmd.VariantAutoscalingSpec{
				ModelID: "m", ScaleTargetRef: llmd.ScaleTargetReference{Name: "demo"}, MinReplicas: ptr.To[int32](2), Actuation: llmd.ActuationScale,
			}}
			create(t, v)
			var conflict *metav1.Condition
			comes(t, v, "a conflict", func(v *llmd.VariantAutoscaling) bool {
				conflict = apimeta.FindStatusCondition(v.Status.Conditions, llmd.ConditionConflict)
				return conflict != nil && conflict.Status == metav1.ConditionTrue
			})
			assert.Equal(t, c.reason, conflict.Reason)
			assert.Contains(t, conflict.Message, c.who)
			assert.EqualValues(t, 1, *read(t, deploymentOf(object)).Spec.Replicas)
			reaches(t, object, v1alpha2.PhaseReady)
			if c.reason == llmd.ReasonAutoscalerOnTarget {
				owner := metav1.GetControllerOf(read(t, &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: named(namespace, "demo-hpa")}))
				assert.Equal(t, v1alpha2.Kind+" demo", owner.Kind+" "+owner.Name, "where to change it")
			}
		})
	}
}

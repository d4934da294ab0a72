package tenant_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// scarceDevices fills a node with two models, one of the victim and one of the tenant, that shows more load than
// it has replicas for. With a class that is not for its namespace it gets nobody's devices. With one
// that names no namespaces it does, as security.md says: that is what shows that the devices were wanted.
func scarceDevices(t *testing.T, w *world) {
	on := func(namespace, name, model string) *v1alpha1.VariantAutoscaling {
		d := deployment(namespace, name, 2)
		d.Spec.Template.Spec.NodeSelector["nvidia.com/gpu.product"] = localcluster.FourL40S.Product
		v := variant(namespace, name, model)
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: scarce}
		// What is to go goes in the same round.
		v.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScalingRules{StabilizationWindowSeconds: new(int32)}}
		if namespace == theirs {
			w.while(t, d, v)
			return v
		}
		require.NoError(t, w.api.Create(t.Context(), d))
		require.NoError(t, w.api.Create(t.Context(), v))
		return v
	}
	holds, claims := on(victim, "holds", "holds"), on(theirs, "claims", "claims")
	w.loaded(t, holds, 0.7, 0)
	w.shows(t, holds, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	claim := func(model string, class *v1alpha1.SLOClassReference) {
		require.NoError(t, w.tenant.Get(t.Context(), client.ObjectKeyFromObject(claims), claims))
		claims.Spec.ModelID, claims.Spec.SLOClassRef = model, class
		require.NoError(t, w.tenant.Update(t.Context(), claims))
		w.loaded(t, claims, 1, 50)
	}
	lacks := func() {
		t.Helper()
		conditiontest.Eventually(t, patience, "it wants more devices than there are", func() (string, bool) {
			require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claims), claims))
			c := apimeta.FindStatusCondition(claims.Status.Conditions, v1alpha1.ConditionScalingLimited)
			return fmt.Sprintf("%+v", claims.Status.Conditions), c != nil && c.Reason == "NoSlots" && c.ObservedGeneration == claims.Generation
		})
	}
	gold := &v1alpha1.SLOClassReference{Name: "Gold", Key: "golden"}
	for _, model := range []string{"claims", "golden"} {
		for _, class := range []*v1alpha1.SLOClassReference{nil, gold} {
			claim(model, class)
			lacks()
			w.stays(t, holds.Name, 2)
			lacks()
			assert.Empty(t, claims.Status.ServiceClass)
		}
	}
	claim("opened", nil)
	conditiontest.Eventually(t, patience, "the more important model gets devices", func() (string, bool) {
		n := w.replicas(t, holds.Name)
		return fmt.Sprint(n, " replicas"), n == 1
	})
	conditiontest.Eventually(t, patience, "it has the class", func() (string, bool) {
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(claims), claims))
		return claims.Status.ServiceClass, claims.Status.ServiceClass == "Open"
	})
}

// loaded waits for the replicas of an object and shows how full they are, under the name of its model.
func (w *world) loaded(t *testing.T, v *v1alpha1.VariantAutoscaling, use, waiting float64) {
	t.Helper()
	conditiontest.Eventually(t, patience, "ready pods of "+v.Name, func() (string, bool) {
		var pods corev1.PodList
		require.NoError(t, w.api.List(t.Context(), &pods, client.InNamespace(v.Namespace), client.MatchingLabels{"app": v.Name}))
		ready := 0
		for i := range pods.Items {
			for _, c := range pods.Items[i].Status.Conditions {
				if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < 2 {
			return fmt.Sprint(ready, " pods"), false
		}
		w.shown.forget(fmt.Sprintf(`namespace=%q,pod="%s-`, v.Namespace, v.Name))
		for i := range pods.Items {
			w.shown.loaded(&pods.Items[i], v.Spec.ModelID, use, waiting)
		}
		return "", true
	})
	t.Cleanup(func() { w.shown.forget(fmt.Sprintf(`namespace=%q,pod="%s-`, v.Namespace, v.Name)) })
}

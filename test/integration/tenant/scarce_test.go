package tenant_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
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
	holds := w.onDevices(t, victim, "holds", scarce, localcluster.FourL40S)
	claims := w.onDevices(t, theirs, "claims", scarce, localcluster.FourL40S)
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

// growingCluster is the same without limited mode, and with a class for everybody: the tenant's model asks for
// nodes that may come, and takes no replicas away.
func growingCluster(t *testing.T, w *world) {
	keeps := w.onDevices(t, victim, "keeps", "", localcluster.EightA100)
	opened := w.onDevices(t, theirs, "opened", "", localcluster.EightA100)
	w.loaded(t, keeps, 0.7, 0)
	w.shows(t, keeps, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	w.loaded(t, opened, 1, 50)
	conditiontest.Eventually(t, patience, "it asks for more than there is", func() (string, bool) {
		var d appsv1.Deployment
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(opened), &d))
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(opened), opened))
		return fmt.Sprintf("%d replicas, class %q", *d.Spec.Replicas, opened.Status.ServiceClass), *d.Spec.Replicas > 4 && opened.Status.ServiceClass == "Open"
	})
	w.stays(t, keeps.Name, 4)
}

// onDevices makes an object whose replicas, named like it and its model, have half of a machine.
func (w *world) onDevices(t *testing.T, namespace, name, instance string, machine localcluster.Shape) *v1alpha1.VariantAutoscaling {
	t.Helper()
	d := deployment(namespace, name, int32(machine.GPUs/2))
	d.Spec.Template.Spec.NodeSelector["nvidia.com/gpu.product"] = machine.Product
	v := variant(namespace, name, name)
	if instance != "" {
		v.Labels = map[string]string{v1alpha1.LabelControllerInstance: instance}
	}
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

// loaded waits for the replicas of an object and shows how full they are, under the name of its model.
func (w *world) loaded(t *testing.T, v *v1alpha1.VariantAutoscaling, use, waiting float64) {
	t.Helper()
	conditiontest.Eventually(t, patience, "ready pods of "+v.Name, func() (string, bool) {
		var d appsv1.Deployment
		require.NoError(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(v), &d))
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
		if ready < int(*d.Spec.Replicas) {
			return fmt.Sprintf("%d of %d", ready, *d.Spec.Replicas), false
		}
		w.shown.forget(fmt.Sprintf(`namespace=%q,pod="%s-`, v.Namespace, v.Name))
		for i := range pods.Items {
			w.shown.loaded(&pods.Items[i], v.Spec.ModelID, use, waiting)
		}
		return "", true
	})
	t.Cleanup(func() { w.shown.forget(fmt.Sprintf(`namespace=%q,pod="%s-`, v.Namespace, v.Name)) })
}

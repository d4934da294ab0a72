package manager_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

func autoscaler(namespace string) client.Object {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "other"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "server"},
			MinReplicas:    ptr.To[int32](1),
			MaxReplicas:    9,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](50)},
			}}},
		},
	}
}

// scaledObject names its target as KEDA's users do: by name alone.
func scaledObject(namespace string) client.Object {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject",
		"metadata": map[string]any{"namespace": namespace, "name": "other"},
		"spec":     map[string]any{"scaleTargetRef": map[string]any{"name": "server"}},
	}}
}

func TestNobodyFights(t *testing.T) {
	cases := []struct {
		name    string
		other   func(namespace string) client.Object
		reason  string
		message string
	}{
		{"a HorizontalPodAutoscaler", autoscaler, v1alpha1.ReasonAutoscalerOnTarget, "HorizontalPodAutoscaler other also scales Deployment server"},
		{"a ScaledObject", scaledObject, v1alpha1.ReasonAutoscalerOnTarget, "ScaledObject other also scales Deployment server"},
		{"another object of ours", func(namespace string) client.Object { return variant(namespace, "other", "server", "") },
			v1alpha1.ReasonTargetShared, "VariantAutoscaling other also scales Deployment server"},
		{"another object that somebody else handles", func(namespace string) client.Object { return variant(namespace, "other", "server", "somebody") },
			v1alpha1.ReasonTargetShared, "VariantAutoscaling other also scales Deployment server"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			servers := serveModels(t)
			namespace := space(t)
			d, v, other := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", ""), c.other(namespace)
			servers.ask(namespace, 0.5*serves)
			create(t, d, v)
			shows(t, patience, v, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)

			create(t, other)
			condition := shows(t, atOnce, v, v1alpha1.ConditionConflict, c.reason)
			assert.Contains(t, condition.Message, c.message)
			shows(t, atOnce, v, v1alpha1.ConditionReady, "Conflict")
			v.Spec.MinReplicas = ptr.To[int32](3)
			assert.NoError(t, api.Update(t.Context(), v))
			shows(t, atOnce, v, v1alpha1.ConditionConflict, c.reason)
			assert.EqualValues(t, 1, *read(t, d).Spec.Replicas, "nothing is written")

			remove(t, other)
			shows(t, atOnce, v, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)
			hasReplicas(t, atOnce, d, v, 3)
			conditiontest.Eventually(t, patience, "a warning event", func() (string, bool) {
				reasons := told(t, v)
				return fmt.Sprint(reasons), count(reasons, c.reason) == 1 && count(reasons, v1alpha1.ReasonNoConflict) == 1
			})
		})
	}
}

func TestAnAutoscalerOnOurMetricIsNoConflict(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	v := variant(namespace, "llama-h100", "server", brisk)
	v.Spec.Actuation = v1alpha1.ActuationMetric
	create(t, deployment(namespace, "server", 1), autoscaler(namespace), v)
	shows(t, patience, v, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)
	roundsLater(t, brisk, 2)
	shows(t, atOnce, v, v1alpha1.ConditionConflict, v1alpha1.ReasonNoConflict)
}

// A tool that applies its own number of replicas at once, before the next round looks, is
// named, and left alone.
func TestWhoSetsTheReplicasBackAtOnceIsNamed(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.5*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk)
	v.Spec.MinReplicas = ptr.To[int32](3)
	create(t, d)
	conditiontest.Every(t, 50*time.Millisecond, func(ctx context.Context, _ time.Time) {
		now := deployment(namespace, "server", 1)
		if api.Get(ctx, client.ObjectKeyFromObject(d), now) == nil && *now.Spec.Replicas != 1 {
			// A patch that fails is made again.
			_ = api.Patch(ctx, now, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)), client.FieldOwner("argocd-controller"))
		}
	})
	create(t, v)
	found := shows(t, patience, v, v1alpha1.ConditionConflict, string(decision.ReasonReplicasOverwritten))
	assert.Contains(t, found.Message, "field manager argocd-controller keeps changing the replicas")
	assert.LessOrEqual(t, len(writesTo(t, d)), 3)
}

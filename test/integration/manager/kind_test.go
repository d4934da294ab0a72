package manager_test

import (
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// custom is an object with replicas that names its pods by a selector.
func custom(t *testing.T, apiVersion, kind, namespace, selectorField string, replicas int64, spec map[string]any) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{"replicas": replicas}
	for k, v := range spec {
		content[k] = v
	}
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"namespace": namespace, "name": "server"},
		"spec":     content,
	}}
	create(t, u)
	u.Object["status"] = map[string]any{"replicas": replicas, selectorField: "app=server"}
	require.NoError(t, api.Status().Update(t.Context(), u))
	return u
}

// bare makes pods that no workload of Kubernetes owns.
func bare(t *testing.T, namespace string, names ...string) {
	t.Helper()
	for _, name := range names {
		create(t, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "server"}},
			Spec:       podSpec(),
		})
	}
}

func target(v *v1alpha1.VariantAutoscaling, apiVersion, kind string) *v1alpha1.VariantAutoscaling {
	v.Spec.ScaleTargetRef.APIVersion, v.Spec.ScaleTargetRef.Kind = apiVersion, kind
	return v
}

func specReplicas(t *testing.T, u *unstructured.Unstructured) int64 {
	t.Helper()
	replicas, found, err := unstructured.NestedInt64(read(t, u).Object, "spec", "replicas")
	require.NoError(t, err)
	require.True(t, found)
	return replicas
}

func TestAKindWithoutPermissionNamesTheMissingRule(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.9*serves)
	u := custom(t, "example.com/v1", "Server", namespace, "selector", 1, nil)
	bare(t, namespace, "server-0")
	v := target(variant(namespace, "llama-h100", "server", brisk), "example.com/v1", "Server")
	v.Spec.Accelerator, v.Spec.AcceleratorCount = "H100", ptr.To[int32](1)
	create(t, v)

	condition := shows(t, patience, v, v1alpha1.ConditionTargetResolved, "TargetForbidden")
	assert.Contains(t, condition.Message, `the permission to get servers/scale in API group "example.com" is missing`)
	shows(t, patience, v, v1alpha1.ConditionReady, "TargetForbidden")

	grant(t, "get")
	condition = shows(t, patience, v, v1alpha1.ConditionTargetResolved, "TargetForbidden")
	conditiontest.Eventually(t, patience, "the next missing permission", func() (string, bool) {
		condition = shows(t, patience, v, v1alpha1.ConditionTargetResolved, "TargetForbidden")
		return condition.Message, contains(condition.Message, `the permission to update servers/scale in API group "example.com" is missing`)
	})
	assert.EqualValues(t, 1, specReplicas(t, u))

	grant(t, "get", "update")
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	conditiontest.Eventually(t, patience, "more than one replica", func() (string, bool) { return describe(read(t, v)), specReplicas(t, u) > 1 })
	shows(t, patience, v, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityUpperBound)
}

// grant adds to what the manager may do with Servers, in the way that a user adds a
// kind.
func grant(t *testing.T, verbs ...string) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "scale-servers", Labels: map[string]string{"llmd.ai/aggregate-to-workload-variant-autoscaler": "true"}},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"servers/scale"}, Verbs: verbs}},
	}
	if len(verbs) == 1 {
		create(t, role)
		return
	}
	require.NoError(t, api.Update(t.Context(), role))
}

func TestKindsThatCannotBeScaled(t *testing.T) {
	cases := []struct{ name, kind, message string }{
		{"nobody serves it", "Unicorn", "the API server serves no kind Unicorn in example.com/v1"},
		{"no scale subresource", "Stone", "no scale subresource"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			serveModels(t)
			v := target(variant(space(t), "llama-h100", "server", brisk), "example.com/v1", c.kind)
			create(t, v)
			condition := shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonTargetNotScalable)
			assert.Contains(t, condition.Message, c.message)
			shows(t, patience, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetNotScalable)
		})
	}
}

func TestShippedKinds(t *testing.T) {
	labels := map[string]string{"app": "server"}
	template := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec()}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	cases := []struct {
		name, apiVersion, kind string
		create                 func(t *testing.T, namespace string) (replicas func() int64)
	}{
		{"a StatefulSet", "apps/v1", "StatefulSet", func(t *testing.T, namespace string) func() int64 {
			t.Helper()
			s := &appsv1.StatefulSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"},
				Spec:       appsv1.StatefulSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template},
			}
			create(t, s)
			return func() int64 { return int64(*read(t, s).Spec.Replicas) }
		}},
		{"a ReplicaSet", "apps/v1", "ReplicaSet", func(t *testing.T, namespace string) func() int64 {
			t.Helper()
			s := &appsv1.ReplicaSet{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "server"},
				Spec:       appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template},
			}
			create(t, s)
			return func() int64 { return int64(*read(t, s).Spec.Replicas) }
		}},
		{"a LeaderWorkerSet of one pod each", "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", func(t *testing.T, namespace string) func() int64 {
			t.Helper()
			pod, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&template)
			require.NoError(t, err)
			u := custom(t, "leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", namespace, "hpaPodSelector", 0, map[string]any{
				"leaderWorkerTemplate": map[string]any{"size": int64(1), "workerTemplate": pod},
			})
			return func() int64 { return specReplicas(t, u) }
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			serveModels(t)
			namespace := space(t)
			replicas := c.create(t, namespace)
			v := target(variant(namespace, "llama-h100", "server", brisk), c.apiVersion, c.kind)
			create(t, v)
			conditiontest.Eventually(t, patience, "the one replica that a model keeps", func() (string, bool) {
				return describe(read(t, v)), replicas() == 1
			})
			// The scale is written first, the status after it.
			conditiontest.Eventually(t, patience, "the variant's ID in the status", func() (string, bool) {
				object := read(t, v)
				return describe(object), object.Status.CurrentAlloc != nil && object.Status.CurrentAlloc.VariantID == "llama-H100-1"
			})
		})
	}
}

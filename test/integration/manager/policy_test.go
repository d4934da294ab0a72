package manager_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// The manager's account may patch pods, and nothing of them but its own two annotations.
func TestTheManagerMayChangeItsAnnotationsAlone(t *testing.T) {
	namespace := space(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "served", Labels: map[string]string{"app": "served"}, Annotations: map[string]string{"prometheus.io/port": "8000"},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "server", Image: "good"}}, SchedulerName: "nobody"},
	}
	create(t, pod)
	manager, err := client.New(asManager(t), client.Options{Scheme: api.Scheme()})
	require.NoError(t, err)
	patch := func(patch string) error {
		return manager.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
	}
	// The API server takes a moment to know the policy.
	const evil = `{"spec":{"containers":[{"name":"server","image":"evil"}]}}`
	conditiontest.Eventually(t, patience, "the policy is in force", func() (string, bool) {
		err := patch(evil)
		if err == nil {
			require.NoError(t, api.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"containers":[{"name":"server","image":"good"}]}}`))))
		}
		return fmt.Sprint(err), err != nil
	})
	for name, c := range map[string]struct{ patch, message string }{
		"an image":             {evil, "may not change the spec"},
		"a label":              {`{"metadata":{"labels":{"app":"other"}}}`, "may not change the labels"},
		"a new label":          {`{"metadata":{"labels":{"more":"yes"}}}`, "may not change the labels"},
		"an owner":             {`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"x","uid":"y"}]}}`, "may not change the owners"},
		"a finalizer":          {`{"metadata":{"finalizers":["example.com/held"]}}`, "may not change the owners and finalizers"},
		"another annotation":   {`{"metadata":{"annotations":{"prometheus.io/port":"1"}}}`, "may only write its own two annotations"},
		"one more annotation":  {`{"metadata":{"annotations":{"sidecar.istio.io/inject":"true"}}}`, "may only write its own two annotations"},
		"one annotation fewer": {`{"metadata":{"annotations":{"prometheus.io/port":null}}}`, "may only remove its own two annotations"},
		"one beside its own":   {`{"metadata":{"annotations":{"wva.llmd.ai/victim":"-5","prometheus.io/port":"1"}}}`, "may only write its own two annotations"},
	} {
		require.ErrorContains(t, patch(c.patch), c.message, name)
	}
	require.NoError(t, patch(`{"metadata":{"annotations":{"wva.llmd.ai/victim":"","controller.kubernetes.io/pod-deletion-cost":"-5"}}}`))
	require.NoError(t, patch(`{"metadata":{"annotations":{"wva.llmd.ai/victim":null,"controller.kubernetes.io/pod-deletion-cost":null}}}`))
	require.NoError(t, api.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`))), "the policy is for nobody else")
	var now corev1.Pod
	require.NoError(t, api.Get(t.Context(), client.ObjectKeyFromObject(pod), &now))
	assert.Equal(t, "good", now.Spec.Containers[0].Image)
	assert.Equal(t, map[string]string{"prometheus.io/port": "8000"}, now.Annotations)
}

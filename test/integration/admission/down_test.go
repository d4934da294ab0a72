package admission_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// While nobody serves the webhooks, objects and pods are stored as they are. A fault that one got
// so does not keep it from being changed later, and is warned of.
func TestNobodyWaitsForAManagerThatIsDown(t *testing.T) {
	l := listen(t)
	namespace := space(t, optedIn)
	create(t, variant(namespace, "first", "server"))
	l.answers(t, variant(namespace, "second", "server"), shared)

	require.NoError(t, cluster.Terminate("manager"))
	stored := l.Create(t.Context(), variant(namespace, "second", "server"))
	d := deployment(namespace, "server", 1)
	create(t, d)
	pod := madePod(t, d, "a pod", exists)
	require.NoError(t, cluster.Restart(t.Context(), "manager"))
	require.NoError(t, stored)
	assert.Equal(t, corev1.DefaultSchedulerName, pod.Spec.SchedulerName)

	l.answers(t, variant(namespace, "third", "server"), "VariantAutoscaling first, second also scales Deployment server: delete all but one")
	second := &v1alpha1.VariantAutoscaling{}
	require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "second"}, second))
	second.Labels = map[string]string{"team": "chat"}
	require.NoError(t, l.Update(t.Context(), second))
	assert.Equal(t, []string{"spec.scaleTargetRef: VariantAutoscaling first also scales Deployment server: delete all but one"}, l.told())
}

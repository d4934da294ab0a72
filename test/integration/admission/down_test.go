package admission_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
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

// An object that is being deleted goes even where nothing is stored without the manager: with
// propagation in the foreground, Kubernetes itself must still take a finalizer away.
func TestAnObjectMayGoWhileTheManagerIsDown(t *testing.T) {
	failing(t, admissionregistrationv1.Fail)
	namespace := space(t, nil)
	held := variant(namespace, "held", "server")
	held.Finalizers = []string{"example.com/held"}
	create(t, held)

	require.NoError(t, cluster.Terminate("manager"))
	stored := api.Create(t.Context(), variant(namespace, "second", "server"))
	deleted := api.Delete(t.Context(), held)
	freed := api.Patch(t.Context(), held, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	require.NoError(t, cluster.Restart(t.Context(), "manager"))
	assert.True(t, apierrors.IsInternalError(stored), "%v", stored)
	require.NoError(t, deleted)
	require.NoError(t, freed)
	assert.True(t, apierrors.IsNotFound(api.Get(t.Context(), client.ObjectKeyFromObject(held), held)))
}

// failing sets what happens to variants while no manager answers, until the test ends.
func failing(t *testing.T, policy admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	set := func(ctx context.Context, to *admissionregistrationv1.FailurePolicyType) *admissionregistrationv1.FailurePolicyType {
		hooks := &admissionregistrationv1.ValidatingWebhookConfiguration{}
		require.NoError(t, api.Get(ctx, client.ObjectKey{Name: "workload-variant-autoscaler-variants"}, hooks))
		was := hooks.Webhooks[0].FailurePolicy
		hooks.Webhooks[0].FailurePolicy = to
		require.NoError(t, api.Update(ctx, hooks))
		return was
	}
	was := set(t.Context(), &policy)
	t.Cleanup(func() { set(context.Background(), was) })
}

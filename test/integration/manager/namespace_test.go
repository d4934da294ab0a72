package manager_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"
)

// ConfigMaps in the namespaces of models count where that is turned on and the shipped
// Role is there; without the Role a condition says so, and those beside the manager count.
func TestNamespacesMayHaveConfigMapsOfTheirOwn(t *testing.T) {
	const instance = "local"
	servers := serveModels(t)
	own, other, excluded := space(t), space(t), space(t)
	local := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "wva-saturation-scaling-config"},
		Data:       map[string]string{"default": "kvCacheThreshold: 0.5"},
	}
	create(t, local)
	annotated := read(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: excluded}})
	annotated.Annotations = map[string]string{v1alpha1.AnnotationExclude: "true"}
	require.NoError(t, api.Update(t.Context(), annotated))
	variants := map[string]*v1alpha1.VariantAutoscaling{}
	for _, namespace := range []string{own, other, excluded} {
		// Half full: above the thresholds of one namespace alone.
		servers.ask(namespace, 0.5*serves)
		variants[namespace] = variant(namespace, "llama-h100", "server", instance)
		create(t, deployment(namespace, "server", 1), variants[namespace])
	}
	startAs(t, instance, account, "--wva-namespace-config")
	unread := shows(t, patience, variants[own], v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonNamespaceConfigUnread)
	assert.Contains(t, unread.Message, "the permission to list and watch configmaps named wva-saturation-scaling-config, configmaps named saturation-scaling-config")
	assert.Contains(t, unread.Message, `namespaces in API group "" is missing: grant it as manifests/namespace-config does`)
	servers.settle(t, own, 1)
	roundsLater(t, instance, 3)
	assert.EqualValues(t, 1, *read(t, deployment(own, "server", 1)).Spec.Replicas)

	require.NoError(t, cluster.Apply(t.Context(), manifests+"/namespace-config"))
	t.Cleanup(func() { withdraw(t, "namespace-config") })
	require.NoError(t, cluster.Restart(t.Context(), "manager"+instance))
	d := deployment(own, "server", 1)
	hasReplicas(t, patience, d, variants[own], 2)
	shows(t, patience, variants[own], v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonSaturationOnlyMode)
	conditiontest.Eventually(t, patience, "the end of the series of the excluded namespace", func() (string, bool) {
		series := seriesOf(t, instance, excluded)
		return fmt.Sprint(series), len(series) == 0
	})

	local.Data["default"] = "kvCacheThreshold: five"
	require.NoError(t, api.Update(t.Context(), local))
	conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
		reasons := told(t, local)
		return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") > 0
	})
	roundsLater(t, instance, 3)
	assert.GreaterOrEqual(t, int(*read(t, d).Spec.Replicas), 2, "the last good thresholds stay")
	assert.EqualValues(t, 1, *read(t, deployment(other, "server", 1)).Spec.Replicas, "the ConfigMap is that of one namespace")
	before := read(t, variants[excluded]).ResourceVersion
	servers.ask(excluded, 4*serves)
	roundsLater(t, instance, 5)
	assert.Equal(t, before, read(t, variants[excluded]).ResourceVersion, "it is left alone")

	// Without it, those beside the manager count again.
	require.NoError(t, api.Delete(t.Context(), local))
	hasReplicas(t, patience, d, variants[own], 1)
}

// withdraw deletes a ClusterRole of the manager and its binding.
func withdraw(t *testing.T, role string) {
	t.Helper()
	for _, kind := range []string{"ClusterRole", "ClusterRoleBinding"} {
		object := &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{Name: roles + role},
		}
		// The test's own context has ended by now.
		require.NoError(t, client.IgnoreNotFound(api.Delete(context.Background(), object)))
	}
}

package manager_test

import (
	"fmt"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

func TestADeletedTargetIsToldAtOnceAndItsReturnResumesAtOnce(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 1)
	v := variant(namespace, "llama-h100", "server", "")
	create(t, deployment(namespace, "server", 1), v)
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)

	// The manager's full round comes every ten minutes and its fast one every ten
	// seconds; so often in a row sooner than that is no coincidence.
	for range 5 {
		remove(t, deployment(namespace, "server", 1))
		ready := shows(t, atOnce, v, v1alpha1.ConditionReady, v1alpha1.ReasonDeploymentNotFound)
		assert.Equal(t, metav1.ConditionFalse, ready.Status)
		assert.Equal(t, "Target deployment 'server' no longer exists", ready.Message)
		shows(t, atOnce, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetNotFound)
		assert.Equal(t, &v1alpha1.DesiredAlloc{}, v.Status.DesiredOptimizedAlloc, "the desired allocation is cleared")
		assert.Nil(t, v.Status.CurrentAlloc.NumReplicas)
		assert.Nil(t, apimeta.FindStatusCondition(v.Status.Conditions, v1alpha1.ConditionMetricsAvailable), "nothing is claimed of what was not looked at")
		conditiontest.Eventually(t, atOnce, "the end of the series", func() (string, bool) {
			found := seriesOf(t, "", namespace)
			return fmt.Sprint(found), len(found) == 0
		})

		create(t, deployment(namespace, "server", 1))
		shows(t, atOnce, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
		require.NotNil(t, v.Status.DesiredOptimizedAlloc)
		assert.Equal(t, ptr.To[int32](1), v.Status.CurrentAlloc.NumReplicas)
	}
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	assert.Equal(t, "H100", v.Status.CurrentAlloc.Accelerator, "by the node selector of the template")
	assert.Equal(t, "llama-H100-1", v.Status.CurrentAlloc.VariantID)
	conditiontest.Eventually(t, patience, "a warning event for each deletion", func() (string, bool) {
		reasons := told(t, v)
		return fmt.Sprint(reasons), count(reasons, v1alpha1.ReasonTargetNotFound) >= 1 && count(reasons, v1alpha1.ReasonTargetFound) >= 1
	})
}

func TestATargetThatComesLaterThanItsObject(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	v := variant(namespace, "llama-h100", "server", "")
	create(t, v)
	condition := shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonDeploymentNotFound)
	assert.Contains(t, condition.Message, "Deployment server does not exist in namespace "+namespace)
	assert.Equal(t, metav1.ConditionFalse, condition.Status)
	assert.Empty(t, seriesOf(t, "", namespace))
	create(t, deployment(namespace, "server", 1))
	shows(t, atOnce, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
}

func TestADeletedObjectEndsItsSeries(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	v := variant(namespace, "llama-h100", "server", "")
	create(t, deployment(namespace, "server", 2), v)
	series := `{accelerator_type="H100",namespace="` + namespace + `",variant_name="llama-h100"}`
	conditiontest.Eventually(t, patience, "the gauges", func() (string, bool) {
		found := seriesOf(t, "", namespace)
		return fmt.Sprint(found), found["wva_desired_replicas"+series] == 2 && found["wva_current_replicas"+series] == 2 && found["wva_desired_ratio"+series] == 1
	})
	earlier := `inferno_desired_replicas{accelerator_type="H100",namespace="` + namespace + `",variant_id="llama-H100-1",variant_name="llama-h100"}`
	all := prometheustest.Scrape(t, metricsOf[""])
	require.Contains(t, all, earlier)
	assert.InDelta(t, 2, all[earlier], 0)
	remove(t, v)
	conditiontest.Eventually(t, atOnce, "the end of the series", func() (string, bool) {
		found := seriesOf(t, "", namespace)
		return fmt.Sprint(found), len(found) == 0
	})
	assert.NotContains(t, prometheustest.Scrape(t, metricsOf[""]), earlier)
}

func TestAChangedSpecIsAnsweredAtOnce(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 1)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", "")
	create(t, d, v)
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	v.Spec.MinReplicas = ptr.To[int32](3)
	require.NoError(t, api.Update(t.Context(), v))
	hasReplicas(t, atOnce, d, v, 3)
	shows(t, atOnce, v, v1alpha1.ConditionScalingLimited, "MinReplicas")
}

func TestAHangingPrometheusDelaysNoEvent(t *testing.T) {
	serveModels(t)
	namespace := space(t)
	v := variant(namespace, "llama-h100", "server", brisk)
	create(t, deployment(namespace, "server", 1), v)
	shows(t, patience, v, v1alpha1.ConditionTargetResolved, v1alpha1.ReasonTargetFound)
	outage.hang(t)
	roundsBegin(t)
	remove(t, deployment(namespace, "server", 1))
	shows(t, atOnce, v, v1alpha1.ConditionReady, v1alpha1.ReasonDeploymentNotFound)
}

// roundsBegin waits until the manager waits for Prometheus.
func roundsBegin(t *testing.T) {
	t.Helper()
	conditiontest.Eventually(t, patience, "a query that hangs", func() (string, bool) { return "", outage.waiting.Load() > 0 })
}

func count(reasons []string, reason string) int {
	n := 0
	for _, r := range reasons {
		if r == reason {
			n++
		}
	}
	return n
}

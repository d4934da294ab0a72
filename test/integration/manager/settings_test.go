package manager_test

import (
	"context"
	"fmt"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// configMap makes one of the manager's ConfigMaps, which goes with the test.
func configMap(t *testing.T, name string, data map[string]string) *corev1.ConfigMap {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: name}, Data: data}
	create(t, object)
	t.Cleanup(func() { require.NoError(t, api.Delete(context.Background(), object)) })
	return object
}

func TestSaturationThresholdsAreFollowed(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	// Half full: far below the published thresholds.
	servers.ask(namespace, 0.5*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk)
	create(t, d, v)
	shows(t, patience, v, v1alpha1.ConditionReady, v1alpha1.ReasonReady)
	servers.settle(t, namespace, 1)
	roundsLater(t, brisk, 3)
	require.EqualValues(t, 1, *read(t, d).Spec.Replicas)

	thresholds := configMap(t, "wva-saturation-scaling-config", map[string]string{
		"llama": "model_id: llama\nnamespace: " + namespace + "\nkvCacheThreshold: 0.5\n",
	})
	hasReplicas(t, patience, d, v, 2)

	thresholds.Data["llama"] = "model_id: llama\nnamespace: " + namespace + "\nkvCacheThreshold: 5\n"
	require.NoError(t, api.Update(t.Context(), thresholds))
	conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
		reasons := told(t, thresholds)
		return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") > 0
	})
	roundsLater(t, brisk, 3)
	require.EqualValues(t, 2, *read(t, d).Spec.Replicas, "the last good thresholds stay")
}

func TestStaticSettingsNeedARestart(t *testing.T) {
	file := configMap(t, "workload-variant-autoscaler-variantautoscaling-config", map[string]string{
		"config.yaml": "LEADER_ELECTION_ID: another\n",
	})
	conditiontest.Eventually(t, patience, "an event that says so", func() (string, bool) {
		reasons := told(t, file)
		return fmt.Sprint(reasons), count(reasons, "ImmutableConfigChangeRejected") > 0
	})
}

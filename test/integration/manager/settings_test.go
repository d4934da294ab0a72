package manager_test

import (
	"context"
	"fmt"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/localcluster"
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

func TestPricesOfAcceleratorsAreFollowed(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	// Enough for two replicas, one of each variant. The second device of the dear one
	// brings nothing, and without prices its name would come first.
	servers.ask(namespace, 1.3*serves)
	two := deployment(namespace, "two-devices", 1)
	two.Spec.Template.Spec.Containers[0].Resources.Limits[localcluster.GPUResource] = resource.MustParse("2")
	one := deployment(namespace, "one-device", 1)
	dear, cheap := variant(namespace, "a-dear", two.Name, brisk), variant(namespace, "cheap", one.Name, brisk)
	create(t, two, one, dear, cheap)
	servers.settle(t, namespace, 2)

	configMap(t, "accelerator-unit-costs", map[string]string{"H100": `{"device": "NVIDIA-H100-80GB-HBM3", "cost": "100.0"}`})
	roundsLater(t, brisk, 2)
	servers.ask(namespace, 1.9*serves)
	hasReplicas(t, patience, one, cheap, 2)
	assert.EqualValues(t, 1, *read(t, two).Spec.Replicas, "%s", describe(read(t, dear)))
}

func TestServiceClassesAreFollowed(t *testing.T) {
	servers := serveModels(t)
	namespace := space(t)
	servers.ask(namespace, 0.3*serves)
	d, v := deployment(namespace, "server", 1), variant(namespace, "llama-h100", "server", brisk)
	d.Spec.Template.Spec.Containers[0].Command = []string{"vllm", "serve", "llama-3"}
	v.Spec.SLOClassRef = &v1alpha1.SLOClassReference{Name: "premium"}
	create(t, d, v)
	unclear := shows(t, patience, v, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonServiceClassUnclear)
	assert.Contains(t, unclear.Message, `variant llama-h100 names service class "premium", which does not exist`)
	const differs = "spec.modelID is llama and container server serves llama-3"
	assert.Contains(t, unclear.Message, differs)

	configMap(t, "service-classes-config", map[string]string{
		"premium.yaml": "name: Premium\npriority: 1\ndata:\n- model: llama\n  slo-ttft: 500\n",
	})
	named := shows(t, patience, v, v1alpha1.ConditionOptimizationReady, v1alpha1.ReasonModelNameDiffers)
	assert.Contains(t, named.Message, differs, "the class is clear, and the name is not")
}

func TestConfigMapsThatCannotBeUsedAreTold(t *testing.T) {
	for name, data := range map[string]map[string]string{
		"service-classes-config":         {"premium": "{name: Premium, priority: high}"},
		"accelerator-unit-costs":         {"H100": "100"},
		"wva-model-scale-to-zero-config": {"default": "retention_period: 600"},
	} {
		t.Run(name, func(t *testing.T) {
			object := configMap(t, name, data)
			conditiontest.Eventually(t, patience, "an event that refuses it", func() (string, bool) {
				reasons := told(t, object)
				return fmt.Sprint(reasons), count(reasons, "InvalidConfiguration") > 0
			})
		})
	}
}

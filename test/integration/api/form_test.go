package api_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// published holds the single-variant forms that users have in their repositories.
var published = map[string]string{
	"the short form": `
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama-8b}
modelID: meta/llama-3.1-8b
variantCost: "10.0"`,
	"the short form without a cost": `
scaleTargetRef: {kind: Deployment, name: llama-8b}
modelID: default/default`,
	"the short form with an empty version, which meant apps/v1": `
scaleTargetRef: {apiVersion: "", kind: Deployment, name: llama-8b}
modelID: m`,
	"the short form for another kind": `
scaleTargetRef: {apiVersion: leaderworkerset.x-k8s.io/v1, kind: LeaderWorkerSet, name: deepseek}
modelID: deepseek-ai/DeepSeek-R1
variantCost: "96"`,
	"the long form": `
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: vllm-llama}
modelID: meta/llama-3.1-8b
variantID: meta/llama-3.1-8b-A100-1
accelerator: A100
acceleratorCount: 1
sloClassRef: {name: premium, key: slo}
variantProfile:
  perfParms:
    decodeParms: {alpha: "20.58", beta: "0.41"}
    prefillParms: {gamma: "5.2", delta: "0.1"}
  maxBatchSize: 4
variantCost: "10"`,
	"the long form with bounds": `
scaleTargetRef: {kind: Deployment, name: vllm-llama}
modelID: meta/llama-3.1-8b
variantID: meta/llama-3.1-8b-H100-4
accelerator: H100
acceleratorCount: 4
sloClassRef: {name: service-classes-config, key: premium.yaml}
variantProfile:
  perfParms:
    decodeParms: {alpha: "7.470", beta: "0.044"}
    prefillParms: {gamma: "15.415", delta: "0.000337"}
  maxBatchSize: 512
variantCost: "40"
minReplicas: 0
maxReplicas: 10`,
	"the long form without service class and profile": `
scaleTargetRef: {kind: Deployment, name: vllm-llama}
modelID: meta/llama-3.1-8b
variantID: meta/llama-3.1-8b-L40S-2
accelerator: L40S
acceleratorCount: 2`,
	"a profile with one parameter per map": `
scaleTargetRef: {kind: Deployment, name: vllm-llama}
modelID: meta/llama-3.1-8b
variantID: meta/llama-3.1-8b-L40S-2
accelerator: L40S
acceleratorCount: 2
variantProfile:
  perfParms:
    decodeParms: {alpha: "20.58"}
    prefillParms: {gamma: "5.2"}
  maxBatchSize: 1`,
	"an accelerator by its product label": `
scaleTargetRef: {kind: Deployment, name: vllm-llama}
modelID: m
variantID: m-NVIDIA-H100-80GB-HBM3-1
accelerator: NVIDIA-H100-80GB-HBM3
acceleratorCount: 1`,
}

func TestPublishedFormsAreAccepted(t *testing.T) {
	for name, spec := range published {
		t.Run(name, func(t *testing.T) {
			created, err := create(t, variant(t, spec))
			require.NoError(t, err)
			wanted := variant(t, spec).Object["spec"].(map[string]any)
			stored := created.Object["spec"].(map[string]any)
			for field, value := range wanted {
				if field == "scaleTargetRef" {
					continue // defaulted in part
				}
				assert.Equal(t, value, stored[field], "what the user wrote is stored as it is")
			}

			var typed v1alpha1.VariantAutoscaling
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(created.Object, &typed, true),
				"the Go type knows every field")
			_, err = typed.Spec.ScaleTargetRef.GroupVersionKind()
			require.NoError(t, err)
		})
	}
}

func TestDefaults(t *testing.T) {
	created, err := create(t, variant(t, "{scaleTargetRef: {name: x}, modelID: m}"))
	require.NoError(t, err)
	assert.Equal(t, map[string]any{
		"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
		"modelID":        "m",
		"minReplicas":    int64(0),
		"actuation":      "Scale",
		"victims":        "Packing",
	}, created.Object["spec"], "and no other default: a cost that nobody gave stays unknown")
}

func TestEverythingAtOnceIsAccepted(t *testing.T) {
	created, err := create(t, variant(t, `
scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: x}
modelID: m
variantID: m-H100-8
accelerator: H100
acceleratorCount: 8
variantCost: "55.04"
sloClassRef: {name: Premium}
minReplicas: 1
maxReplicas: 1
actuation: Metric
onUnknownCapacity: Hold
victims: Kubernetes
behavior:
  scaleUp:
    stabilizationWindowSeconds: 0
    selectPolicy: Max
    policies:
    - {type: Pods, value: 4, periodSeconds: 60}
    - {type: Percent, value: 100, periodSeconds: 1800}
  scaleDown:
    stabilizationWindowSeconds: 3600
    selectPolicy: Disabled
    tolerance: "0.1"`))
	require.NoError(t, err)
	assert.Equal(t, "Metric", created.Object["spec"].(map[string]any)["actuation"])
}

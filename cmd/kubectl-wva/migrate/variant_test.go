package migrate

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// multi lists two accelerators, as earlier versions stored it.
const multi = `apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata:
  name: llama
  namespace: chat
  uid: 7f
  labels: {inference.optimization/acceleratorName: A100, team: blue}
  ownerReferences: [{apiVersion: apps/v1, kind: Deployment, name: llama, uid: "1"}]
spec:
  modelID: meta/llama-3.1-8b
  sloClassRef: {name: premium, key: opt}
  modelProfile:
    accelerators:
    - {acc: H100, accCount: 2, perfParms: {decodeParms: {alpha: "7.47", beta: "0.044"}, prefillParms: {gamma: "15.4", delta: "0.0003"}}, maxBatchSize: 512}
    - {acc: A100, accCount: 1, perfParms: {decodeParms: {alpha: "20.58", beta: "0.41"}, prefillParms: {gamma: "5.2", delta: "0.1"}}, maxBatchSize: 4}
status: {currentAlloc: {accelerator: A100, numReplicas: 1}}
`

const single = `# spec.modelProfile.accelerators[0] -> VariantAutoscaling llama-h100
# Deployment llama-h100 is to be made, with 2 x H100 for a replica: one object scales one Deployment now
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata:
  labels:
    inference.optimization/acceleratorName: H100
    team: blue
  name: llama-h100
  namespace: chat
spec:
  accelerator: H100
  acceleratorCount: 2
  modelID: meta/llama-3.1-8b
  scaleTargetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: llama-h100
  sloClassRef:
    key: opt
    name: premium
  variantID: meta/llama-3.1-8b-H100-2
  variantProfile:
    maxBatchSize: 512
    perfParms:
      decodeParms:
        alpha: "7.47"
        beta: "0.044"
      prefillParms:
        delta: "0.0003"
        gamma: "15.4"
---
# spec.modelProfile.accelerators[1] -> VariantAutoscaling llama
apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
`

func TestAnObjectWithSeveralAcceleratorsBecomesSeveral(t *testing.T) {
	got, err := migrated(t, multi, "-f", "-")
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(got, single), got)
	for i, text := range strings.Split(got, "---\n") {
		var object v1alpha1.VariantAutoscaling
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &object), "the present form knows every field")
		assert.Equal(t, []string{"llama-h100", "llama"}[i], object.Spec.ScaleTargetRef.Name, "the current one keeps the Deployment")
		_, given, err := object.Spec.Profile()
		require.NoError(t, err)
		assert.True(t, given)
		assert.Equal(t, object.Spec.VariantID, object.Spec.ResolvedVariantID("", 0))
	}
	again, err := migrated(t, got, "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, got, again, "the present form stays as it is")
}

func TestVariantsThatCannotBeTurned(t *testing.T) {
	head := "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\n"
	for name, c := range map[string]struct{ in, want string }{
		"no accelerator":   {head + "spec: {modelID: m}", "spec.modelProfile.accelerators is empty"},
		"no model":         {head + "spec: {modelProfile: {accelerators: [{acc: A100, accCount: 1}]}}", "metadata.name and spec.modelID are needed"},
		"no count":         {head + "spec: {modelID: m, modelProfile: {accelerators: [{acc: A100}]}}", `accelerators[0]: acc is "A100" and accCount is 0`},
		"an unknown field": {head + "spec: {modelID: m, variants: []}", "it is of no form that is known"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := migrated(t, c.in, "-f", "-")
			require.ErrorContains(t, err, c.want)
		})
	}
}

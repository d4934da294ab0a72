package migrate

import (
	"fmt"
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

// each are the documents of a text as objects of the present form, which knows every field.
func each(t *testing.T, text string) (all []v1alpha1.VariantAutoscaling) {
	t.Helper()
	for one := range strings.SplitSeq(text, "---\n") {
		var object v1alpha1.VariantAutoscaling
		require.NoError(t, yaml.UnmarshalStrict([]byte(one), &object), one)
		all = append(all, object)
	}
	return all
}

// The example of the migration guide: one object of two accelerators becomes two objects,
// each on a Deployment of its own name.
func TestAnObjectWithSeveralAcceleratorsBecomesSeveral(t *testing.T) {
	t.Parallel()
	got, err := migrated(t, multi, "-f", "-")
	require.NoError(t, err)
	assert.Contains(t, got, "# spec.modelProfile.accelerators[0] -> VariantAutoscaling llama-h100\n"+
		"# Deployment llama-h100 is to be made, with 2 x H100 for a replica: one object scales one Deployment now\napiVersion:")
	variant := func(accelerator, profile string, count int) map[string]any {
		name := "llama-" + strings.ToLower(accelerator)
		var parameters map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(profile), &parameters))
		return map[string]any{
			"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
			"metadata": map[string]any{"name": name, "namespace": "chat", "labels": map[string]any{"inference.optimization/acceleratorName": accelerator, "team": "blue"}},
			"spec": map[string]any{
				"scaleTargetRef": map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
				"modelID":        "meta/llama-3.1-8b", "variantID": fmt.Sprintf("meta/llama-3.1-8b-%s-%d", accelerator, count),
				"accelerator": accelerator, "acceleratorCount": float64(count),
				"sloClassRef":    map[string]any{"name": "premium", "key": "opt"},
				"variantProfile": parameters,
			},
		}
	}
	want := []map[string]any{
		variant("H100", `{perfParms: {decodeParms: {alpha: "7.47", beta: "0.044"}, prefillParms: {gamma: "15.4", delta: "0.0003"}}, maxBatchSize: 512}`, 2),
		variant("A100", `{perfParms: {decodeParms: {alpha: "20.58", beta: "0.41"}, prefillParms: {gamma: "5.2", delta: "0.1"}}, maxBatchSize: 4}`, 1),
	}
	for i, text := range strings.Split(got, "---\n") {
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		assert.Equal(t, want[i], object)
	}
	for _, object := range each(t, got) {
		_, given, err := object.Spec.Profile()
		require.NoError(t, err)
		assert.True(t, given)
	}
	again, err := migrated(t, got, "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, got, again, "the present form stays as it is")
}

const head = "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\n"

func TestFormsOfVariants(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in    string
		names []string
		check func(t *testing.T, all []v1alpha1.VariantAutoscaling)
	}{
		"one accelerator keeps its name and target": {"spec: {modelID: m, modelProfile: {accelerators: [{acc: A100, accCount: 1}]}}", []string{"a"}, func(t *testing.T, all []v1alpha1.VariantAutoscaling) {
			assert.Equal(t, "a", all[0].Spec.ScaleTargetRef.Name)
			assert.Equal(t, "A100", all[0].Labels[v1alpha1.LabelAcceleratorName], "a label that was missing")
		}},
		"one accelerator twice": {"spec: {modelID: m, modelProfile: {accelerators: [{acc: A100, accCount: 1}, {acc: A100, accCount: 2}, {acc: L40S, accCount: 1}]}}", []string{"a-a100-1", "a-a100-2", "a-l40s"}, func(t *testing.T, all []v1alpha1.VariantAutoscaling) {
			assert.Equal(t, "m-A100-2", all[1].Spec.VariantID)
		}},
		"spec.variants in flat words": {"spec: {modelId: m, variants: [{acceleratorType: A100, acceleratorCount: 1, maxBatchSize: 4, variantCost: 2.5}, {acceleratorType: H100, variantID: m-H100-8, minReplicas: 1, maxReplicas: 3}]}", []string{"a-a100", "a-h100"}, func(t *testing.T, all []v1alpha1.VariantAutoscaling) {
			assert.Equal(t, "m", all[0].Spec.ModelID)
			assert.Equal(t, int32(4), *all[0].Spec.VariantProfile.MaxBatchSize)
			assert.Equal(t, "2.5", all[0].Spec.VariantCost)
			assert.Equal(t, int32(8), *all[1].Spec.AcceleratorCount, "the number stands in the ID")
			assert.Equal(t, int32(3), *all[1].Spec.MaxReplicas)
		}},
		"a flat object": {"spec: {modelId: m, acceleratorType: A100, acceleratorCount: 2, maxBatchSize: 4, scaleTargetRef: {kind: Deployment, name: other}}", []string{"a"}, func(t *testing.T, all []v1alpha1.VariantAutoscaling) {
			assert.Equal(t, "other", all[0].Spec.ScaleTargetRef.Name)
			assert.Equal(t, "A100", all[0].Spec.Accelerator)
		}},
		"numbers without quotes": {"spec: {modelID: m, modelProfile: {accelerators: [{acc: A100, accCount: 1, perfParms: {decodeParms: {alpha: 20.58, beta: 0.41}}}]}}", []string{"a"}, func(t *testing.T, all []v1alpha1.VariantAutoscaling) {
			assert.EqualValues(t, "20.58", all[0].Spec.VariantProfile.PerfParms.DecodeParms.Alpha)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := migrated(t, head+c.in, "-f", "-")
			require.NoError(t, err)
			all := each(t, got)
			var names []string
			for i := range all {
				names = append(names, all[i].Name)
			}
			require.Equal(t, c.names, names)
			c.check(t, all)
		})
	}
}

func TestWhatIsOnlyTheClustersIsDropped(t *testing.T) {
	t.Parallel()
	got, err := migrated(t, strings.Replace(multi, "  labels:", "  annotations: {kubectl.kubernetes.io/last-applied-configuration: '{}', mine: stays}\n  labels:", 1), "-f", "-")
	require.NoError(t, err)
	for _, gone := range []string{"ownerReferences", "status:", "uid", "last-applied"} {
		assert.NotContains(t, got, gone)
	}
	assert.Contains(t, got, "mine: stays")
}

func TestPricesOfAccelerators(t *testing.T) {
	t.Parallel()
	prices := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: accelerator-unit-costs}\ndata:\n  H100: '{\"device\": \"NVIDIA-H100-80GB-HBM3\", \"cost\": \"100\"}'\n"
	got, err := migrated(t, multi+prices, "-f", "-")
	require.NoError(t, err)
	all := each(t, got)
	assert.Equal(t, "200", all[0].Spec.VariantCost, "two devices")
	assert.Empty(t, all[1].Spec.VariantCost, "no price is given")
	_, err = migrated(t, multi+strings.Replace(prices, `"100"`, `"dear"`, 1), "-f", "-")
	require.ErrorContains(t, err, `-, document 2: ConfigMap "accelerator-unit-costs": accelerator prices: `)
}

func TestVariantsThatCannotBeTurned(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"no accelerator":       {"spec: {modelID: m}", "spec.modelProfile.accelerators is empty"},
		"no model":             {"spec: {modelProfile: {accelerators: [{acc: A100, accCount: 1}]}}", "metadata.name and spec.modelID are needed"},
		"no count":             {"spec: {modelID: m, modelProfile: {accelerators: [{acc: A100}]}}", `accelerators[0]: acc is "A100" and accCount is 0`},
		"an unknown field":     {"spec: {modelID: m, more: []}", "it is of no form that is known"},
		"no variant":           {"spec: {modelID: m, variants: []}", "spec.variants is empty"},
		"two lists":            {"spec: {modelID: m, variants: [{acc: A}], modelProfile: {}}", "spec.modelProfile.accelerators and spec.variants are both there"},
		"the same twice":       {"spec: {modelID: m, variants: [{acc: A, accCount: 1}, {acc: a, accCount: 1}]}", "spec.variants[0] and [1] have the same accelerator and number"},
		"another variant's ID": {"spec: {modelID: m, variants: [{acc: A, accCount: 1, variantID: n-A-1}]}", `spec.variants[0].variantID is "n-A-1": expected m-A-1`},
		"a cost of no number":  {"spec: {modelID: m, variants: [{acc: A, accCount: 1, variantCost: [1]}]}", "spec.variants[0].variantCost is [1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := migrated(t, head+c.in, "-f", "-")
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, `-, document 1: VariantAutoscaling "a": `)
			assert.NotContains(t, got, "kind:", "nothing is written")
		})
	}
}

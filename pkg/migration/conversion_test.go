package migration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// multi is the case of the migration guide: a model that two accelerators serve, with every
// field that earlier versions stored.
const multi = `apiVersion: llmd.ai/v1alpha1
kind: VariantAutoscaling
metadata:
  name: llama
  namespace: chat
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

// expected are the two objects that the guide has it become, in the present form.
const expected = `
- apiVersion: llmd.ai/v1alpha1
  kind: VariantAutoscaling
  metadata: {name: llama-h100, namespace: chat, labels: {inference.optimization/acceleratorName: H100, team: blue}}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama-h100}
    modelID: meta/llama-3.1-8b
    variantID: meta/llama-3.1-8b-H100-2
    accelerator: H100
    acceleratorCount: 2
    sloClassRef: {name: premium, key: opt}
    variantProfile: {perfParms: {decodeParms: {alpha: "7.47", beta: "0.044"}, prefillParms: {gamma: "15.4", delta: "0.0003"}}, maxBatchSize: 512}
- apiVersion: llmd.ai/v1alpha1
  kind: VariantAutoscaling
  metadata: {name: llama-a100, namespace: chat, labels: {inference.optimization/acceleratorName: A100, team: blue}}
  spec:
    scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama-a100}
    modelID: meta/llama-3.1-8b
    variantID: meta/llama-3.1-8b-A100-1
    accelerator: A100
    acceleratorCount: 1
    sloClassRef: {name: premium, key: opt}
    variantProfile: {perfParms: {decodeParms: {alpha: "20.58", beta: "0.41"}, prefillParms: {gamma: "5.2", delta: "0.1"}}, maxBatchSize: 4}
`

const autoscaler = `apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llama, namespace: chat}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}
  metrics:
  - type: External
    external: {metric: {name: wva_desired_replicas, selector: {matchLabels: {variant_name: llama}}}, target: {type: AverageValue, averageValue: "1"}}
`

const deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: llama, namespace: chat}\nspec: {replicas: 3}\n"

// documents are those of texts.
func documents(t *testing.T, texts ...string) (all []Document) {
	t.Helper()
	for i, text := range texts {
		read, err := Read(fmt.Sprintf("file %d", i), []byte(text))
		require.NoError(t, err)
		all = append(all, read...)
	}
	return all
}

// texts are documents as they are written.
func texts(t *testing.T, documents []Document) (all []string) {
	t.Helper()
	for i := range documents {
		text, err := documents[i].YAML()
		require.NoError(t, err)
		all = append(all, string(text))
	}
	return all
}

// data are texts without notes and order of fields.
func data(t *testing.T, texts []string) (all []any) {
	t.Helper()
	for _, text := range texts {
		var object any
		require.NoError(t, yaml.Unmarshal([]byte(text), &object))
		all = append(all, object)
	}
	return all
}

func TestTheMigrationGuidesObjectBecomesTwo(t *testing.T) {
	t.Parallel()
	c, err := Convert(documents(t, multi), Options{})
	require.NoError(t, err)
	var want []any
	require.NoError(t, yaml.Unmarshal([]byte(expected), &want))
	assert.Equal(t, want, data(t, texts(t, c.Documents)))
	assert.Equal(t, []string{
		"spec.modelProfile.accelerators[0] -> VariantAutoscaling llama-h100",
		"Deployment llama-h100 is to be made, with 2 x H100 for a replica: one object scales one Deployment now",
	}, c.Documents[0].Notes)
	require.Len(t, c.Replaced, 1)
	assert.Equal(t, "chat/llama", c.Replaced[0].Key())
}

func TestTurningTwiceGivesWhatTurningOnceGives(t *testing.T) {
	t.Parallel()
	given := []string{autoscaler, multi}
	before, err := json.Marshal(documents(t, given...))
	require.NoError(t, err)
	in := documents(t, given...)
	c, err := Convert(in, Options{})
	require.NoError(t, err)
	after, err := json.Marshal(in)
	require.NoError(t, err)
	assert.JSONEq(t, string(before), string(after), "what was given stays as it was")

	once := texts(t, c.Documents)
	assert.Len(t, once, 4)
	again, err := Convert(documents(t, once...), Options{})
	require.NoError(t, err)
	assert.Equal(t, once, texts(t, again.Documents))
	assert.Empty(t, again.Made())
	assert.Empty(t, again.Replaced)
	assert.Empty(t, again.Missing)
}

func TestWhatAConversionAsksFor(t *testing.T) {
	t.Parallel()
	t.Run("the Deployments that there are", func(t *testing.T) {
		t.Parallel()
		// The autoscaler has the object's name: each Deployment is still missing once.
		c, err := Convert(documents(t, autoscaler, multi, deployment), Options{})
		require.NoError(t, err)
		require.Len(t, c.Missing, 2)
		assert.Equal(t, "llama-h100", c.Missing[0].Target())
		assert.Equal(t, "chat/llama", c.Missing[0].Shared)
		assert.Equal(t, "Deployment", c.Missing[0].From.Kind)
		assert.Equal(t, c.Documents[2].Notes[1], c.Missing[0].String())

		c, err = Convert(documents(t, multi, strings.Replace(deployment, "llama", "llama-h100", 1)), Options{})
		require.NoError(t, err)
		require.Len(t, c.Missing, 1)
		assert.Equal(t, "llama-a100", c.Missing[0].Name)
		assert.Nil(t, c.Missing[0].From)
	})
	t.Run("prices", func(t *testing.T) {
		t.Parallel()
		asked := []string{}
		c, err := Convert(documents(t, multi), Options{UnitCost: func(accelerator string) (capacity.Cost, bool) {
			asked = append(asked, accelerator)
			return 2.5, accelerator == "H100"
		}})
		require.NoError(t, err)
		assert.Equal(t, []string{"H100", "A100"}, asked)
		got := texts(t, c.Documents)
		assert.Contains(t, got[0], `variantCost: "5"`, "two devices")
		assert.NotContains(t, got[1], "variantCost")
	})
	t.Run("documents of other kinds", func(t *testing.T) {
		t.Parallel()
		server := "apiVersion: llamastack.io/v1alpha1\nkind: LlamaStackDistribution\nmetadata: {name: a}\n"
		_, err := Convert(documents(t, server), Options{})
		require.EqualError(t, err, `file 0: LlamaStackDistribution "a" of llamastack.io/v1alpha1 has no earlier form that is known: leave it out`)
		c, err := Convert(documents(t, server), Options{Other: func(d *Document) (Document, error) {
			return Document{Kind: d.Kind, Name: d.Name, Text: []byte("done")}, nil
		}})
		require.NoError(t, err)
		assert.Equal(t, []string{"done"}, texts(t, c.Documents))
	})
}

func TestNothingIsLostInSilence(t *testing.T) {
	t.Parallel()
	for place, c := range map[string][2]string{
		"a field of the spec":         {"  sloClassRef:", "  priority: 3\n  sloClassRef:"},
		"a field of an accelerator":   {"accCount: 2,", "accCount: 2, memory: 80,"},
		"a field of the object":       {"spec:\n", "scale: {}\nspec:\n"},
		"accelerators in two lists":   {"  modelProfile:", "  variants: [{acc: L40S, accCount: 1}]\n  modelProfile:"},
		"an accelerator without name": {"acc: H100,", ""},
	} {
		text := strings.Replace(multi, c[0], c[1], 1)
		require.NotEqual(t, multi, text, place)
		_, err := Convert(documents(t, text), Options{})
		require.ErrorContains(t, err, `file 0: VariantAutoscaling "llama": `, place)
	}
}

func TestAListIsTakenApart(t *testing.T) {
	t.Parallel()
	indented := func(text string) string {
		return "- " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
	}
	list := "apiVersion: v1\nkind: List\nitems:\n" + indented(multi) + indented(autoscaler)
	all := documents(t, "# nothing\n", list)
	require.Len(t, all, 2)
	assert.Equal(t, "file 1, item 1", all[1].File)
	c, err := Convert(all, Options{})
	require.NoError(t, err)
	whole, err := Convert(documents(t, multi, autoscaler), Options{})
	require.NoError(t, err)
	assert.Equal(t, data(t, texts(t, whole.Documents)), data(t, texts(t, c.Documents)))
}

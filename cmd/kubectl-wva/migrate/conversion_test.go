package migrate

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/migration"
)

const hpa = `---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: llama-hpa, namespace: chat, uid: "3", labels: {team: blue}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: llama}
  minReplicas: 1
  maxReplicas: 9
  metrics:
  - type: External
    external:
      metric: {name: inferno_desired_replicas, selector: {matchLabels: {variant_name: llama, accelerator_type: A100, exported_namespace: chat}}}
      target: {type: AverageValue, averageValue: "1"}
status: {currentReplicas: 1}
`

const keda = `---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: scaled, namespace: chat}
spec:
  scaleTargetRef: {name: llama}
  triggers:
  - {type: prometheus, metadata: {query: 'wva_desired_replicas{variant_name="llama",exported_namespace="chat"}', threshold: "1"}}
`

const old = `---
apiVersion: apps/v1
kind: Deployment
metadata: {name: llama, namespace: chat, labels: {app: llama}}
spec:
  replicas: 3
  selector: {matchLabels: {app: llama}}
  template:
    metadata: {labels: {app: llama}}
    spec:
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-A100-SXM4-80GB, zone: a}
      containers:
      - {name: s, image: vllm, resources: {limits: {nvidia.com/gpu: "1", cpu: "8"}}}
`

// objects are the documents of a text by kind and name.
func objects(t *testing.T, text string) map[string]map[string]any {
	t.Helper()
	all := map[string]map[string]any{}
	for one := range strings.SplitSeq(text, "---\n") {
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(one), &object))
		d := migration.Of(object)
		all[d.Kind+" "+d.Name] = object
	}
	return all
}

// at is the value at a path of an object.
func at(t *testing.T, object any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case string:
			object = object.(map[string]any)[s]
		case int:
			object = object.([]any)[s]
		}
	}
	return object
}

func TestAutoscalersFollowTheirObjects(t *testing.T) {
	t.Parallel()
	got, err := migrated(t, hpa+"---\n"+multi+keda, "-f", "-")
	require.NoError(t, err)
	all := objects(t, got)
	require.Len(t, all, 6)
	for _, name := range []string{"h100", "a100"} {
		h := all["HorizontalPodAutoscaler llama-hpa-"+name]
		assert.Equal(t, "llama-"+name, at(t, h, "spec", "scaleTargetRef", "name"))
		assert.Equal(t, map[string]any{"variant_name": "llama-" + name, "accelerator_type": strings.ToUpper(name), "exported_namespace": "chat"},
			at(t, h, "spec", "metrics", 0, "external", "metric", "selector", "matchLabels"))
		assert.Equal(t, map[string]any{"name": "llama-hpa-" + name, "namespace": "chat", "labels": map[string]any{"team": "blue"}}, h["metadata"])
		assert.NotContains(t, h, "status")
		s := all["ScaledObject scaled-"+name]
		assert.Equal(t, "llama-"+name, at(t, s, "spec", "scaleTargetRef", "name"))
		assert.Equal(t, `wva_desired_replicas{variant_name="llama-`+name+`",exported_namespace="chat"}`, at(t, s, "spec", "triggers", 0, "metadata", "query"))
		assert.Equal(t, "Metric", at(t, all["VariantAutoscaling llama-"+name], "spec", "actuation"), "the autoscaler acts, as before")
	}
	again, err := migrated(t, got, "-f", "-")
	require.NoError(t, err)
	assert.Equal(t, got, again)
}

func TestAutoscalersOfOthersStay(t *testing.T) {
	t.Parallel()
	one := "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: llama, namespace: chat}\nspec: {modelID: m, modelProfile: {accelerators: [{acc: A100, accCount: 1}]}}\n"
	got, err := migrated(t, one+hpa, "-f", "-")
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(got, hpa), "the object keeps its name, and so does what follows it")
	assert.Contains(t, got, "actuation: Metric")
	other := strings.ReplaceAll(hpa, "llama", "other")
	got, err = migrated(t, multi+other, "-f", "-")
	require.NoError(t, err)
	assert.True(t, strings.HasSuffix(got, other))
	assert.NotContains(t, got, "actuation")
}

func TestSkeletonsOfDeployments(t *testing.T) {
	t.Parallel()
	got, err := migrated(t, multi+old, "-f", "-", "--deployments")
	require.NoError(t, err)
	assert.Contains(t, got, "# its arguments are those of before: set what depends on 2 x H100, such as --tensor-parallel-size\n"+
		"# its node selector is without [nvidia.com/gpu.product]: select the nodes of H100\napiVersion: apps/v1\n")
	d := objects(t, got)["Deployment llama-h100"]
	assert.InDelta(t, 0, at(t, d, "spec", "replicas"), 0, "nothing starts before somebody looked at it")
	assert.Equal(t, map[string]any{"app": "llama", "llm-d.ai/variant": "llama-h100"}, at(t, d, "spec", "selector", "matchLabels"))
	assert.Equal(t, map[string]any{"app": "llama", "llm-d.ai/variant": "llama-h100"}, at(t, d, "spec", "template", "metadata", "labels"), "the Service still finds its pods")
	assert.Equal(t, map[string]any{"nvidia.com/gpu": "2", "cpu": "8"}, at(t, d, "spec", "template", "spec", "containers", 0, "resources", "limits"))
	assert.Equal(t, map[string]any{"zone": "a"}, at(t, d, "spec", "template", "spec", "nodeSelector"))
	assert.NotContains(t, got, "name: llama\n", "the old one is not written again")

	_, err = migrated(t, multi, "-f", "-", "--deployments")
	require.ErrorContains(t, err, "--deployments needs Deployment chat/llama, which all its variants shared: give it with -f")

	there := strings.ReplaceAll(old, "name: llama,", "name: llama-h100,") + strings.ReplaceAll(old, "name: llama,", "name: llama-a100,")
	got, err = migrated(t, multi+there, "-f", "-", "--deployments")
	require.NoError(t, err)
	assert.NotContains(t, got, "to be made")
	assert.NotContains(t, got, "kind: Deployment\nmetadata", "those that are there are not made")
}

func TestAFolderAndJSON(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "new")
	_, err := migrated(t, multi+hpa, "-f", "-", "-o", directory)
	require.NoError(t, err)
	files, err := os.ReadDir(directory)
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	assert.Equal(t, []string{
		"chat-horizontalpodautoscaler-llama-hpa-a100.yaml", "chat-horizontalpodautoscaler-llama-hpa-h100.yaml",
		"chat-variantautoscaling-llama-a100.yaml", "chat-variantautoscaling-llama-h100.yaml",
	}, names)

	got, err := migrated(t, multi, "-f", "-", "-o", "json")
	require.NoError(t, err)
	var list struct {
		Kind  string           `json:"kind"`
		Items []map[string]any `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(got), &list))
	assert.Equal(t, "List", list.Kind)
	assert.Len(t, list.Items, 2)
}

func TestFlagsThatContradict(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"-f a --live":       "-f and --live are both given",
		"--rollback a -f b": "--rollback goes with neither files nor --live nor --apply",
		"-f a --dry-run":    "--dry-run goes with --apply or --rollback only",
		"-f a --backup b":   "--backup goes with --apply only",
		"":                  "no file is given: name one with -f",
	} {
		_, err := migrated(t, "", strings.Fields(line)...)
		require.ErrorContains(t, err, want, line)
	}
}

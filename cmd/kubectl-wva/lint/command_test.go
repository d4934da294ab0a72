package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func linted(t *testing.T, in string, arguments ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	command := NewCommand()
	command.SetIn(strings.NewReader(in))
	command.SetOut(&out)
	command.SetErr(&bytes.Buffer{})
	command.SetArgs(arguments)
	err := command.Execute()
	return out.String(), err
}

// object is a manifest of a variant on a Deployment.
func object(name, target, more string) string {
	return "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: " + name + ", namespace: chat}\nspec:\n  modelID: llama\n  scaleTargetRef: {name: " + target + "}\n" + more + "---\n"
}

func TestLint(t *testing.T) {
	const hpa = "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: chat}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: one}}\n---\n"
	const keda = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: k, namespace: chat}\nspec: {scaleTargetRef: {name: two}}\n---\n"
	const classes = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: service-classes-config}\ndata:\n  a: '{name: Premium, priority: 1, data: [{model: llama, slo-ttft: 5}]}'\n---\n"
	const earlier = "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: old}\nspec: {modelID: m, modelProfile: {accelerators: []}}\n---\n"
	for name, c := range map[string]struct {
		in   string
		want []string
		err  string
	}{
		"all is well": {object("a", "one", "") + object("b", "two", "  sloClassRef: {name: premium}\n") + classes + "kind: Service\napiVersion: v1\n",
			[]string{"VariantAutoscaling objects without an error: 2"}, ""},
		"JSON, one after the other, beside a kind with items of its own": {
			`{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"name":"a"},"spec":{"modelID":"m","scaleTargetRef":{"name":"d"}}}` + "\n" +
				`{"apiVersion":"llmd.ai/v1alpha1","kind":"VariantAutoscaling","metadata":{"name":"b"},"spec":{"modelID":"m","scaleTargetRef":{"name":"e"}}}` + "\n" +
				`{"apiVersion":"example.com/v1","kind":"Shelf","items":["x"]}`,
			[]string{"VariantAutoscaling objects without an error: 2"}, ""},
		"two on one target": {object("a", "one", "") + object("b", "one", ""), []string{
			"-: VariantAutoscaling chat/a: error: spec.scaleTargetRef: VariantAutoscaling b also scales Deployment one: delete all but one",
			"-: VariantAutoscaling chat/b: error: spec.scaleTargetRef: VariantAutoscaling a also scales Deployment one: delete all but one",
		}, "2 errors"},
		"one name twice": {object("a", "one", "") + object("a", "two", ""), []string{
			"-: VariantAutoscaling chat/a: error: - has an object of this name too, and whichever is applied last replaces the other: delete one",
		}, "1 error"},
		"warnings alone": {hpa + keda + object("a", "one", "") + object("b", "two", "  sloClassRef: {name: gold}\n") + classes, []string{
			"-: VariantAutoscaling chat/a: warning: HorizontalPodAutoscaler h also scales Deployment one: delete it, or set spec.actuation to Metric and let it act on the metric wva_desired_replicas",
			"-: VariantAutoscaling chat/b: warning: ScaledObject k also scales Deployment two: delete it, or set spec.actuation to Metric and let it act on the metric wva_desired_replicas",
			`-: VariantAutoscaling chat/b: warning: spec.sloClassRef: variant b names service class "gold", which does not exist: there are Premium`,
			"VariantAutoscaling objects without an error: 2",
		}, ""},
		"kinds of targets": {object("a", "one, kind: DaemonSet", "") + object("b", "two, kind: StatefulSet", "") + object("c", "three, apiVersion: example.com/v1, kind: Server", ""), []string{
			"-: VariantAutoscaling chat/a: error: spec.scaleTargetRef: DaemonSet has no scale subresource, so its replicas cannot be set: name an object that has one, such as a Deployment",
		}, "1 error"},
		"an older form":      {earlier, []string{`-: VariantAutoscaling old: error: spec.scaleTargetRef is missing, so the object is of an older form: run "kubectl wva migrate" and apply what it writes`}, "1 error"},
		"a misspelled field": {object("a", "one", "  modelId: llama\n"), []string{`-: VariantAutoscaling chat/a: error: strict decoding error: unknown field "spec.modelId"`}, "1 error"},
		"a boolean":          {object("a", "one", "  actuation: Off\n"), []string{`-: VariantAutoscaling chat/a: error: spec.actuation is a bool, expected a string: YAML reads Off, On, Yes and No as booleans: write it in quotes, as in "Off"`}, "1 error"},
		"a number as text":   {object("a", "one", "  maxReplicas: many\n"), []string{"-: VariantAutoscaling chat/a: error: spec.maxReplicas is a string, expected a int32"}, "1 error"},
		"a class that nobody can check": {object("a", "one", "  sloClassRef: {name: gold}\n"), []string{
			"-: VariantAutoscaling chat/a: warning: spec.sloClassRef: gold was not checked: no ConfigMap of service classes is among the files",
			"VariantAutoscaling objects without an error: 1",
		}, ""},
		"a list":             {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: a}, spec: {modelID: m, scaleTargetRef: {name: d}}}\n", []string{"VariantAutoscaling objects without an error: 1"}, ""},
		"nothing to look at": {"# nothing\n", nil, "the files have no VariantAutoscaling object"},
		"broken classes":     {strings.Replace(classes, "priority: 1", "priority: high", 1), nil, "-, document 1: ConfigMap service-classes-config: service classes: "},
		"no YAML":            {"a: b: c", nil, "-, document 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := linted(t, c.in, "-")
			var lines []string
			if got != "" {
				lines = strings.Split(strings.TrimSuffix(got, "\n"), "\n")
			}
			assert.Equal(t, c.want, lines)
			if c.err == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.err)
			}
		})
	}
}

func TestFilesAreReadTogether(t *testing.T) {
	directory := t.TempDir()
	var files []string
	for _, name := range []string{"a", "b"} {
		files = append(files, filepath.Join(directory, name+".yaml"))
		require.NoError(t, os.WriteFile(files[len(files)-1], []byte(object(name, "one", "")), 0o600))
	}
	got, err := linted(t, "", files...)
	require.Error(t, err)
	assert.Contains(t, got, files[1]+": VariantAutoscaling chat/b: error: ")
	_, err = linted(t, "", filepath.Join(directory, "none.yaml"))
	require.ErrorContains(t, err, "reading "+directory)
	_, err = linted(t, "", files[0], "")
	require.EqualError(t, err, `FILE is "": expected a file of manifests, or - for the standard input`)
}

// What we ship, we lint.
func TestTheSamplesAreFine(t *testing.T) {
	files, err := filepath.Glob("../../../manifests/samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	got, err := linted(t, "", files...)
	require.NoError(t, err, got)
}

func TestFindingsForPrograms(t *testing.T) {
	got, err := linted(t, object("a", "one", "")+object("b", "one", ""), "-o", "json", "-")
	require.ErrorContains(t, err, "2 errors")
	var found []finding
	require.NoError(t, json.Unmarshal([]byte(got), &found))
	require.Len(t, found, 2)
	assert.Equal(t, finding{"-", "chat/a", levelError, "spec.scaleTargetRef: VariantAutoscaling b also scales Deployment one: delete all but one"}, found[0])

	got, err = linted(t, object("a", "one", ""), "-o", "yaml", "-")
	require.NoError(t, err)
	assert.Equal(t, "[]\n", got, "nothing found is an empty list")
}

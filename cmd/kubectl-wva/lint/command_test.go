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
	"k8s.io/apimachinery/pkg/util/validation"
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

// settings is a ConfigMap with one entry.
func settings(name, namespace, entry, text string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: '" + namespace + "'}\ndata:\n  " + entry + ": '" + text + "'\n---\n"
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
		"an SLO within a bucket of all servers, and one at the end of one": {
			object("a", "one", "") + strings.Replace(classes, "slo-ttft: 5}", "slo-ttft: 1500, slo-tpot: 24}, {model: other, slo-ttft: 400, slo-tpot: 25}, {model: fast, slo-ttft: 0.5}", 1), []string{
				`-: ConfigMap service-classes-config: warning: entry "a", data[2]: slo-ttft is 0.5 milliseconds, which no server keeps: write 500 if seconds were meant`,
				`-: ConfigMap service-classes-config: warning: service class "Premium", model "fast": slo-ttft is 0.5 ms, which is no end of a bucket of the servers' histograms, so that nobody can see how many requests meet it: set it to 1 for vLLM or to 100 for SGLang, unless the servers have other buckets`,
				`-: ConfigMap service-classes-config: warning: service class "Premium", model "llama": slo-ttft is 1500 ms, which is no end of a bucket of the servers' histograms, so that nobody can see how many requests meet it: set it to 1000 or 2500 for vLLM or to 1000 or 2000 for SGLang, unless the servers have other buckets`,
				`-: ConfigMap service-classes-config: warning: service class "Premium", model "llama": slo-tpot is 24 ms, which is no end of a bucket of the servers' histograms, so that nobody can see how many requests meet it: set it to 10 or 25 for vLLM or to 20 or 25 for SGLang, unless the servers have other buckets`,
				"VariantAutoscaling objects without an error: 1",
			}, "",
		},
		"two on one target": {object("a", "one", "") + object("b", "one", ""), []string{
			"-: VariantAutoscaling chat/a: error: spec.scaleTargetRef: VariantAutoscaling b also scales Deployment one: delete all but one",
			"-: VariantAutoscaling chat/b: error: spec.scaleTargetRef: VariantAutoscaling a also scales Deployment one: delete all but one",
		}, "2 errors"},
		"a tolerance that nobody reads, on the target of another": {
			object("a", "one", "  behavior: {scaleUp: {tolerance: 1e-900000000}, scaleDown: {tolerance: \"1e-900000000\"}}\n") + object("b", "one", ""), []string{
				`-: VariantAutoscaling chat/a: error: spec.behavior.scaleDown.tolerance: Invalid value: tolerance must be a fraction of at least 0 and below 1, without an exponent: write "0.1" for ten per cent`,
				"-: VariantAutoscaling chat/b: error: spec.scaleTargetRef: VariantAutoscaling a also scales Deployment one: delete all but one",
			}, "2 errors",
		},
		"a status that nobody reads": {object("a", "one", "status: {placement: {shape: {cpu: \"1e-900000000\"}}}\n"), []string{
			"-: VariantAutoscaling chat/a: error: status.placement.shape.cpu is a number with an exponent that takes too long to read: leave status out",
		}, "1 error"},
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
		"a boolean":          {object("a", "one", "  actuation: Off\n"), []string{`-: VariantAutoscaling chat/a: error: spec.actuation: Invalid value: "boolean": spec.actuation in body must be of type string: "boolean": YAML reads Off, On, Yes and No as booleans: write it in quotes, as in "Off"`, `-: VariantAutoscaling chat/a: error: spec.actuation: Unsupported value: false: supported values: "Scale", "Metric", "Off"`}, "2 errors"},
		"a number as text":   {object("a", "one", "  maxReplicas: many\n"), []string{`-: VariantAutoscaling chat/a: error: spec.maxReplicas: Invalid value: "string": spec.maxReplicas in body must be of type integer: "string"`}, "1 error"},
		"a class that nobody can check": {object("a", "one", "  sloClassRef: {name: gold}\n"), []string{
			"-: VariantAutoscaling chat/a: warning: spec.sloClassRef: gold was not checked: no ConfigMap of service classes is among the files",
			"VariantAutoscaling objects without an error: 1",
		}, ""},
		"values out of range": {object("a", "one", "  minReplicas: -1\n  acceleratorCount: 0\n  variantCost: -4 dollars\n  variantProfile: {perfParms: {decodeParms: {alpha: '-7'}}}\n"), []string{
			"-: VariantAutoscaling chat/a: error: spec.acceleratorCount: Invalid value: 0: spec.acceleratorCount in body should be greater than or equal to 1",
			"-: VariantAutoscaling chat/a: error: spec.minReplicas: Invalid value: -1: spec.minReplicas in body should be greater than or equal to 0",
			`-: VariantAutoscaling chat/a: error: spec.variantCost: Invalid value: "-4 dollars": variantCost must be a decimal number without sign, exponent or unit, such as "4.5"`,
			`-: VariantAutoscaling chat/a: error: spec.variantProfile.perfParms.decodeParms.alpha: Invalid value: "-7": a profile parameter must be a number of milliseconds in quotes, without sign or unit, such as "7.47" or "3.4e-4"`,
		}, "4 errors"},
		"a profile with half of its parameters": {object("a", "one", "  variantProfile: {perfParms: {decodeParms: {alpha: '7', beta: '1'}}}\n"), []string{
			"-: VariantAutoscaling chat/a: error: spec.variantProfile.perfParms.prefillParms.gamma is missing: give all four of alpha, beta, gamma and delta, or no profile",
			"-: VariantAutoscaling chat/a: error: spec.variantProfile.perfParms.prefillParms.delta is missing: give all four of alpha, beta, gamma and delta, or no profile",
		}, "2 errors"},
		"bounds that contradict each other, on a target that is taken": {object("a", "one", "  minReplicas: 3\n  maxReplicas: 2\n") + object("b", "one", ""), []string{
			"-: VariantAutoscaling chat/a: error: spec.minReplicas: Invalid value: minReplicas is above maxReplicas: lower minReplicas or raise maxReplicas",
			"-: VariantAutoscaling chat/b: error: spec.scaleTargetRef: VariantAutoscaling a also scales Deployment one: delete all but one",
		}, "2 errors"},
		"another version":                {strings.Replace(object("a", "one", ""), "v1alpha1", "v1", 1), []string{`-: VariantAutoscaling chat/a: error: apiVersion is "llmd.ai/v1", which has no such kind: write llmd.ai/v1alpha1`}, "1 error"},
		"a spec that is a list":          {"apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec: []\n", []string{`-: VariantAutoscaling a: error: spec: Invalid value: "array": spec in body must be of type object: "array"`}, "1 error"},
		"no metadata":                    {"apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nspec: {modelID: m, scaleTargetRef: {name: d}}\n", []string{"-: VariantAutoscaling (without a name): error: metadata.name: Required value: name or generateName is required"}, "1 error"},
		"names that the cluster makes":   {strings.ReplaceAll(object("a-", "one", "")+object("a-", "two", ""), "{name: a-", "{generateName: a-"), []string{"VariantAutoscaling objects without an error: 2"}, ""},
		"a field twice":                  {object("a", "one", "  maxReplicas: 2\n  maxReplicas: 3\n"), []string{`-: VariantAutoscaling chat/a: error: strict decoding error: yaml: unmarshal errors: line 8: key "maxReplicas" already set in map`}, "1 error"},
		"a name that no object may have": {object("A_b", "one", ""), []string{"-: VariantAutoscaling chat/A_b: error: metadata.name: Invalid value: \"A_b\": " + validation.IsDNS1123Subdomain("A_b")[0]}, "1 error"},
		"thresholds out of range": {settings("saturation-scaling-config", "", "default", "{kvCacheThreshold: 1.5}") + settings("saturation-scaling-config", "chat", "llama", "{model_id: llama, queueLengthThreshold: -1}"), []string{
			`-: ConfigMap saturation-scaling-config: error: entry "default": kvCacheThreshold is 1.5: write a share from 0 to 1`,
			`-: ConfigMap chat/saturation-scaling-config: error: entry "llama": queueLengthThreshold is -1: write a number of requests, at least 0`,
			`-: ConfigMap chat/saturation-scaling-config: error: entry "llama": queueSpareTrigger is 3: write at most queueLengthThreshold (-1)`,
		}, "3 errors"},
		"thresholds of a namespace's own": {settings("saturation-scaling-config", "chat", "llama", "{model_id: llama, queueLengthThreshold: 7}"), []string{"ConfigMaps without an error: 1"}, ""},
		"other settings out of range": {settings("accelerator-unit-costs", "", "H100", "{cost: -4}") + settings("model-scale-to-zero-config", "", "default", "{enable_scale_to_zero: true, retention_period: 5}"), []string{
			`-: ConfigMap accelerator-unit-costs: error: entry "H100": cost is -4: write a number of at least 0`,
			`-: ConfigMap model-scale-to-zero-config: error: entry "default": retention_period is 5: write a duration with its unit, such as 10m or 1h`,
		}, "2 errors"},
		"a list":             {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: a}, spec: {modelID: m, scaleTargetRef: {name: d}}}\n", []string{"VariantAutoscaling objects without an error: 1"}, ""},
		"nothing to look at": {"# nothing\n", nil, "the files have no VariantAutoscaling object"},
		"broken classes": {strings.Replace(strings.Replace(classes, "priority: 1", "priority: high", 1), "slo-ttft: 5", "slo-ttft: -5", 1), []string{
			`-: ConfigMap service-classes-config: error: entry "a": priority is high: write a number, without quotes`,
			`-: ConfigMap service-classes-config: error: entry "a", data[0]: slo-ttft is -5: write milliseconds, at least 0`,
		}, "2 errors"},
		"no YAML": {"a: b: c", nil, "-, document 1: "},
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
	assert.Equal(t, finding{"-", "VariantAutoscaling", "chat/a", levelError, "spec.scaleTargetRef: VariantAutoscaling b also scales Deployment one: delete all but one"}, found[0])

	got, err = linted(t, object("a", "one", ""), "-o", "yaml", "-")
	require.NoError(t, err)
	assert.Equal(t, "[]\n", got, "nothing found is an empty list")
}

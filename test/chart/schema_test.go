package chart

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// ends are the oldest and the newest Kubernetes that the documentation names. Each has its
// schemas in its own module, whose hash says that they are the published ones.
var ends = []*edition{
	{version: "v1.29.6", sum: "h1:jn8kA/oVOAWZOeoorx6xZ4d+KgGp+Evgi90x9bEI/DE="},
	{version: "v1.37.2", sum: "h1:A2VDEiObzkYqFTKhSsn0ZEb0RlLEXpHWj93gi2HqEwE="},
}

// foreign are the kinds of other projects, whose schemas are not at hand: those that the chart
// renders, and one of manifests/.
var (
	fromTheChart = []string{"monitoring.coreos.com/v1 PrometheusRule", "monitoring.coreos.com/v1 ServiceMonitor"}
	foreign      = append([]string{"keda.sh/v1alpha1 ScaledObject"}, fromTheChart...)
)

// edition is one release of Kubernetes.
type edition struct {
	version, sum string

	once  sync.Once
	kinds map[schema.GroupVersionKind]*jsonschema.Schema
	err   error
}

// schemas are those of its kinds and of the kinds of our CRDs.
func (e *edition) schemas(t *testing.T) map[schema.GroupVersionKind]*jsonschema.Schema {
	t.Helper()
	e.once.Do(func() { e.kinds, e.err = e.read(t) })
	require.NoError(t, e.err)
	return e.kinds
}

func (e *edition) read(t *testing.T) (map[schema.GroupVersionKind]*jsonschema.Schema, error) {
	t.Helper()
	// Outside of a module: no go.sum grows by it.
	command := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "k8s.io/kubernetes@"+e.version)
	command.Dir = t.TempDir()
	answer, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("download Kubernetes %s: %w: %s", e.version, err, answer)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(answer, &module); err != nil {
		return nil, fmt.Errorf("read what go mod download says: %w", err)
	}
	if module.Sum != e.sum {
		return nil, fmt.Errorf("k8s.io/kubernetes@%s has the hash %s, expected %s", e.version, module.Sum, e.sum)
	}
	text, err := os.ReadFile(filepath.Join(module.Dir, "api", "openapi-spec", "swagger.json"))
	if err != nil {
		return nil, err
	}
	var swagger struct {
		Definitions map[string]map[string]any `json:"definitions"`
	}
	if err := json.Unmarshal(text, &swagger); err != nil {
		return nil, err
	}
	quantity := swagger.Definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"]
	quantity["type"] = []any{"string", "number"}

	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft4)
	places := map[schema.GroupVersionKind]string{}
	definitions := map[string]any{}
	for name, definition := range swagger.Definitions {
		restrict(definition)
		definitions[name] = definition
		kinds, _ := definition["x-kubernetes-group-version-kind"].([]any)
		// Definitions of several kinds, such as DeleteOptions, are not of objects.
		if len(kinds) == 1 {
			kind := kinds[0].(map[string]any)
			places[schema.GroupVersionKind{Group: kind["group"].(string), Version: kind["version"].(string), Kind: kind["kind"].(string)}] = "kubernetes.json#/definitions/" + name
		}
	}
	if err := c.AddResource("kubernetes.json", map[string]any{"definitions": definitions}); err != nil {
		return nil, err
	}
	for kind, own := range kindsOfOurs(t) {
		place := strings.ToLower(kind.Kind) + "." + kind.Version + ".json"
		restrict(own)
		if err := c.AddResource(place, own); err != nil {
			return nil, err
		}
		places[kind] = place
	}
	kinds := map[schema.GroupVersionKind]*jsonschema.Schema{}
	for kind, place := range places {
		if kinds[kind], err = c.Compile(place); err != nil {
			return nil, err
		}
	}
	return kinds, nil
}

// kindsOfOurs are the schemas in our CRDs.
func kindsOfOurs(t *testing.T) map[schema.GroupVersionKind]map[string]any {
	t.Helper()
	found := map[schema.GroupVersionKind]map[string]any{}
	for _, folder := range []string{"crd", "llamastack"} {
		for key, object := range readManifests(t, folder) {
			if key.kind != "CustomResourceDefinition" {
				continue
			}
			group, _, err := unstructured.NestedString(object.Object, "spec", "group")
			require.NoError(t, err)
			kind, _, err := unstructured.NestedString(object.Object, "spec", "names", "kind")
			require.NoError(t, err)
			versions, _, err := unstructured.NestedSlice(object.Object, "spec", "versions")
			require.NoError(t, err)
			for _, version := range versions {
				version := version.(map[string]any)
				own, given, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema")
				require.NoError(t, err)
				require.True(t, given, key.name)
				found[schema.GroupVersionKind{Group: group, Version: version["name"].(string), Kind: kind}] = own
			}
		}
	}
	return found
}

// restrict has a schema and all within it refuse fields that it does not name, and puts into
// words of JSON Schema what only Kubernetes' own say: numbers where a text or a number may be.
func restrict(s map[string]any) {
	if s["format"] == "int-or-string" || s["x-kubernetes-int-or-string"] == true {
		s["type"] = []any{"string", "integer"}
		delete(s, "format")
	}
	fields, named := s["properties"].(map[string]any)
	if _, open := s["additionalProperties"]; named && !open && s["x-kubernetes-preserve-unknown-fields"] != true {
		s["additionalProperties"] = false
	}
	for _, field := range fields {
		restrict(field.(map[string]any))
	}
	for _, within := range []string{"additionalProperties", "items"} {
		if inner, ok := s[within].(map[string]any); ok {
			restrict(inner)
		}
	}
}

// accepts is the error of an API server of this edition that checks fields strictly, as far
// as schemas tell. Of a foreign kind nothing is said.
func (e *edition) accepts(t *testing.T, object *unstructured.Unstructured) error {
	t.Helper()
	kind := object.GroupVersionKind()
	wanted, known := e.schemas(t)[kind]
	if !known {
		if slices.Contains(foreign, kindOf(object)) {
			return nil
		}
		return fmt.Errorf("the kind %s is unknown to Kubernetes %s", kindOf(object), e.version)
	}
	return wanted.Validate(object.Object)
}

func kindOf(object *unstructured.Unstructured) string {
	return object.GetAPIVersion() + " " + object.GetKind()
}

// setsOfValues are all that the tests of single values and the files of values ask for.
func setsOfValues(t *testing.T) map[string]values {
	t.Helper()
	sets := map[string]values{"nothing": {}}
	for path, effect := range effects {
		sets[path] = chartutil.MergeTables(nested(path, effect.change), effect.given)
	}
	files, err := filepath.Glob(filepath.Join(chartDir, "values-*.yaml"))
	require.NoError(t, err)
	for _, path := range files {
		sets[filepath.Base(path)] = valuesFile(t, path)
	}
	return sets
}

// TestTheOldestAndTheNewestKubernetesTakeAllThatTheChartGives: an API server refuses a field
// that came later, and a kind that came later or is gone.
func TestTheOldestAndTheNewestKubernetesTakeAllThatTheChartGives(t *testing.T) {
	// What the oldest one is too old for, which the chart says instead of rendering it.
	tooOld := []string{"llamastack.enabled"}
	for _, e := range ends {
		t.Run(e.version, func(t *testing.T) {
			t.Parallel()
			met := map[string]bool{}
			for name, set := range setsOfValues(t) {
				r := release{name: plainName, namespace: plainNamespace, values: withScheduler(set), kubernetes: e.version}
				if e == ends[0] {
					r.values = chartutil.MergeTables(nested("scheduler.enabled", false), set)
				}
				files, err := r.files(t)
				if e == ends[0] && slices.Contains(tooOld, name) {
					assert.ErrorContains(t, err, name+": ")
					assert.ErrorContains(t, err, "or newer knows, and this cluster has "+e.version)
					continue
				}
				require.NoError(t, err, name)
				for key, object := range objectsIn(t, files) {
					met[kindOf(object)] = true
					assert.NoError(t, e.accepts(t, object), "%s: %s %s", name, key.kind, key.name)
				}
			}
			all := slices.Collect(maps.Keys(met))
			assert.Subset(t, all, []string{"apps/v1 Deployment", "llmd.ai/v1alpha1 VariantAutoscaling", "autoscaling/v2 HorizontalPodAutoscaler"})
			assert.Subset(t, all, fromTheChart, "a kind that nothing has needs no exception")
		})
	}
}

// TestTheOldestAndTheNewestKubernetesTakeTheManifests says which files of manifests/ have
// fields or kinds that came after the oldest one; the documentation names them.
func TestTheOldestAndTheNewestKubernetesTakeTheManifests(t *testing.T) {
	later := map[string]string{
		"rbac/victims-policy.yaml": "the kind admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy",
		"hpa/hpa.yaml":             "'tolerance' not allowed",
		"llamastack/crd.yaml":      "'selectableFields' not allowed",
	}
	// Files of programs, which no API server reads.
	programs := []string{"scheduler-one-process/config.yaml", "stock-scheduler/config.yaml"}
	paths, err := filepath.Glob(filepath.Join(manifests, "*", "*.yaml"))
	require.NoError(t, err)
	for _, path := range paths {
		name, err := filepath.Rel(manifests, path)
		require.NoError(t, err)
		if filepath.Base(name) == "kustomization.yaml" || slices.Contains(programs, name) {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		found := objects{}
		found.read(t, path, text)
		for key, object := range found {
			assert.NoError(t, ends[1].accepts(t, object), "%s: %s", name, key.name)
			err := ends[0].accepts(t, object)
			if says, is := later[name]; is {
				assert.ErrorContains(t, err, says, "%s: %s", name, key.name)
			} else {
				assert.NoError(t, err, "%s: %s", name, key.name)
			}
		}
	}
}

func TestTheSchemasRefuseWhatAnAPIServerRefuses(t *testing.T) {
	const deployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, %s}]}}}}`
	const variant = `{apiVersion: llmd.ai/v1alpha1, kind: VariantAutoscaling, metadata: {name: a}, spec: {modelID: m, scaleTargetRef: {name: a}%s}}`
	const policy = `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: a}, spec: {validations: [{expression: "true"}]}}`
	const budget = `{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1}}`
	both := []string{"v1.29.6", "v1.37.2"}
	for name, c := range map[string]struct {
		text, refused string
		// by are the editions that refuse it; the others take it.
		by []string
	}{
		"a good Deployment":                {text: fmt.Sprintf(deployment, `image: i, env: [{name: A, value: "5"}], resources: {limits: {cpu: 1, memory: 1Gi}}, ports: [{containerPort: 80}], livenessProbe: {httpGet: {port: http}}`)},
		"a misspelled field":               {fmt.Sprintf(deployment, `imagePullpolicy: Always`), "'imagePullpolicy' not allowed", both},
		"a field in a list in a list":      {fmt.Sprintf(deployment, `env: [{name: A, valeu: "5"}]`), "'valeu' not allowed", both},
		"a number where a text belongs":    {fmt.Sprintf(deployment, `env: [{name: A, value: 5}]`), "got number, want string", both},
		"a text where a number belongs":    {fmt.Sprintf(deployment, `ports: [{containerPort: "80"}]`), "got string, want integer", both},
		"no name of the container":         {strings.Replace(fmt.Sprintf(deployment, "image: i"), "name: c, ", "", 1), "missing property 'name'", both},
		"a field that came later":          {fmt.Sprintf(deployment, `resizePolicy: [], restartPolicyRules: []`), "'restartPolicyRules' not allowed", both[:1]},
		"a good variant":                   {text: fmt.Sprintf(variant, `, acceleratorCount: 1`)},
		"a misspelled field of a variant":  {fmt.Sprintf(variant, `, accelaratorCount: 1`), "'accelaratorCount' not allowed", both},
		"a text for the variant's devices": {fmt.Sprintf(variant, `, acceleratorCount: "1"`), "got string, want integer", both},
		"a kind that came later":           {policy, "is unknown to Kubernetes", both[:1]},
		"a kind that is gone":              {budget, "is unknown to Kubernetes", both},
		"a kind of another project":        {text: `{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitor, metadata: {name: a}, spec: {any: thing}}`},
		"a kind that nobody knows":         {`{apiVersion: monitoring.coreos.com/v1, kind: ServiceMonitors}`, "is unknown to Kubernetes", both},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			require.NoError(t, yaml.Unmarshal([]byte(c.text), &object.Object))
			for _, e := range ends {
				if slices.Contains(c.by, e.version) {
					assert.ErrorContains(t, e.accepts(t, object), c.refused, e.version)
				} else {
					assert.NoError(t, e.accepts(t, object), e.version)
				}
			}
		})
	}
}

package page_test

import (
	"fmt"
	"strings"
	"testing"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// metadata is what the kinds of others share, of which no types are linked here.
type metadata struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

// podMonitor has the fields of a PodMonitor and a ServiceMonitor that the pages use.
type podMonitor struct {
	metadata `json:",inline"`
	Spec     struct {
		NamespaceSelector   map[string]any        `json:"namespaceSelector"`
		Selector            *metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []endpoint            `json:"podMetricsEndpoints"`
		Endpoints           []endpoint            `json:"endpoints"`
	} `json:"spec"`
}

type endpoint struct {
	Port            string         `json:"port"`
	TargetPort      any            `json:"targetPort"`
	Path            string         `json:"path"`
	Scheme          string         `json:"scheme"`
	Interval        string         `json:"interval"`
	TLSConfig       map[string]any `json:"tlsConfig"`
	BearerTokenFile string         `json:"bearerTokenFile"`
	HonorLabels     bool           `json:"honorLabels"`
}

// scaledObject has the fields of KEDA's ScaledObject that the pages use.
type scaledObject struct {
	metadata `json:",inline"`
	Spec     struct {
		ScaleTargetRef   map[string]string `json:"scaleTargetRef"`
		MinReplicaCount  *int32            `json:"minReplicaCount"`
		MaxReplicaCount  *int32            `json:"maxReplicaCount"`
		IdleReplicaCount *int32            `json:"idleReplicaCount"`
		PollingInterval  *int32            `json:"pollingInterval"`
		CooldownPeriod   *int32            `json:"cooldownPeriod"`
		Fallback         map[string]any    `json:"fallback"`
		Advanced         map[string]any    `json:"advanced"`
		Triggers         []struct {
			Type              string            `json:"type"`
			Name              string            `json:"name"`
			MetricType        string            `json:"metricType"`
			UseCachedMetrics  bool              `json:"useCachedMetrics"`
			Metadata          map[string]string `json:"metadata"`
			AuthenticationRef map[string]string `json:"authenticationRef"`
		} `json:"triggers"`
	} `json:"spec"`
}

// foreign are the kinds of others by their group.
var foreign = map[string]func() any{
	"monitoring.coreos.com/PodMonitor":     func() any { return &podMonitor{} },
	"monitoring.coreos.com/ServiceMonitor": func() any { return &podMonitor{} },
	"keda.sh/ScaledObject":                 func() any { return &scaledObject{} },
}

// parts are the blocks that are a part of another program's object, by the comment on their
// first line, and the fields of that part.
var parts = map[string]func() any{
	"# a part of the picker's configuration, whose apiVersion depends on its version": func() any {
		return &struct {
			FeatureGates []string `json:"featureGates"`
		}{}
	},
}

// Every block of YAML is what a cluster would take.
func TestEveryBlockOfYAMLIsGood(t *testing.T) {
	t.Parallel()
	schemas := readSchemas(t)
	tried := 0
	for _, p := range pages(t) {
		for _, block := range p.Blocks {
			if block.Language != "yaml" && block.Language != "yml" {
				continue
			}
			for document := range strings.SplitSeq("\n"+block.Text, "\n---\n") {
				tried++
				assert.NoError(t, schemas.check(t, document), block.Place)
			}
		}
	}
	require.Positive(t, tried)
}

// check says what a cluster would not take of a document.
func (s schemas) check(t *testing.T, document string) error {
	t.Helper()
	var raw map[string]any
	data, err := yaml.YAMLToJSONStrict([]byte(document))
	if err != nil {
		return err
	}
	// Whole numbers stay whole, as the rules of a schema want them.
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	kind, _ := raw["kind"].(string)
	version, _ := raw["apiVersion"].(string)
	group, _, grouped := strings.Cut(version, "/")
	if kind == "" || version == "" {
		return s.part(document, raw)
	}
	if schema, ok := s[version+"/"+kind]; ok {
		return schema.check(t.Context(), raw)
	}
	if into, ok := foreign[group+"/"+kind]; grouped && ok {
		return yaml.UnmarshalStrict([]byte(document), into())
	}
	object, known, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
	if err != nil {
		return fmt.Errorf("%s of %s is not known here: give it its fields in test/page: %w", kind, version, err)
	}
	if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
		return fmt.Errorf("%s: %w", known.Kind, err)
	}
	if m, ok := object.(*corev1.ConfigMap); ok {
		return settings(m)
	}
	return nil
}

// part checks a block without a kind: the specification of a pod, values of the chart, or
// a part that says of what.
func (s schemas) part(document string, raw map[string]any) error {
	remark, _, _ := strings.Cut(strings.TrimSpace(document), "\n")
	if remark == httpConfig {
		_, err := promconfig.LoadHTTPConfig(document)
		return err
	}
	if into, ok := parts[remark]; ok {
		return yaml.UnmarshalStrict([]byte(document), into())
	}
	if yaml.UnmarshalStrict([]byte(document), &corev1.PodSpec{}) == nil {
		return nil
	}
	values, err := chartValues()
	if err != nil {
		return err
	}
	for name, value := range raw {
		if err := inValues(values, name, value); err != nil {
			return fmt.Errorf("neither an object, nor a pod's specification, nor values of the chart: %w", err)
		}
	}
	return nil
}

// httpConfig is the remark of a file that PROMETHEUS_HTTP_CONFIG_PATH names.
const httpConfig = "# http.yaml"

// settings reads a ConfigMap as the manager does, by its name.
func settings(m *corev1.ConfigMap) error {
	var warnings []string
	var err error
	switch m.Name {
	case "service-classes-config":
		_, warnings, err = config.ParseServiceClasses(m.Name, m.Data)
	case "accelerator-unit-costs":
		_, warnings, err = config.ParseUnitCosts(m.Data)
	case "wva-model-scale-to-zero-config":
		_, warnings, err = config.ParseScaleToZero(m.Data)
	case "wva-saturation-scaling-config":
		_, warnings, err = config.ParseSaturation(m.Data)
	case "workload-variant-autoscaler-variantautoscaling-config":
		return knownSettings(m.Data)
	}
	if err == nil && len(warnings) > 0 {
		err = fmt.Errorf("%s: %s", m.Name, strings.Join(warnings, "; "))
	}
	return err
}

func knownSettings(data map[string]string) error {
	known := map[string]bool{"config.yaml": true}
	for _, key := range config.Keys() {
		known[key.Name] = true
	}
	inner := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(data["config.yaml"]), &inner); err != nil {
		return err
	}
	for name := range data {
		inner[name] = nil
	}
	for name := range inner {
		if !known[name] {
			return fmt.Errorf("%s is no setting of the manager", name)
		}
	}
	return nil
}

func TestABadBlockOfYAMLIsFound(t *testing.T) {
	t.Parallel()
	schemas := readSchemas(t)
	variant := "apiVersion: llmd.ai/v1alpha1\nkind: VariantAutoscaling\nmetadata: {name: a}\nspec:\n  modelID: m\n  scaleTargetRef: {name: a}\n"
	require.NoError(t, schemas.check(t, variant))
	for name, test := range map[string]struct{ document, want string }{
		"a field that there is not":      {variant + "  replicas: 3\n", "spec.replicas"},
		"a value of the wrong form":      {variant + "  minReplicas: many\n", "spec.minReplicas"},
		"a rule of the schema":           {variant + "  minReplicas: 3\n  maxReplicas: 2\n", "minReplicas is above maxReplicas"},
		"a bare Off is false":            {variant + "  actuation: Off\n", "spec.actuation"},
		"a version that there is not":    {strings.Replace(variant, "v1alpha1", "v9", 1), "is not known here"},
		"a typo in a kind of Kubernetes": {"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 1}\n", `unknown field "replica"`},
		"a typo in a kind of others":     {"apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\nspec: {selectors: {}}\n", `unknown field "selectors"`},
		"a setting that there is not": {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: workload-variant-autoscaler-variantautoscaling-config}\n" +
			"data: {config.yaml: 'WVA_RISKS: 0.9'}\n", "WVA_RISKS is no setting"},
		"a class with a typo":                    {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: service-classes-config}\ndata: {a: '{name: A, priorities: 1}'}\n", "priorities"},
		"a value of the chart that there is not": {"wva: {imagePullPolicies: Always}\n", "wva.imagePullPolicies"},
		"a part that nobody knows":               {"# a part of something\nfeatureGates: []\n", "neither an object"},
		"a part with a typo":                     {"# a part of the picker's configuration, whose apiVersion depends on its version\nfeatureGate: []\n", "featureGate"},
		"no YAML":                                {"a: [\n", "yaml"},
		"twice the same":                         {"a: 1\na: 2\n", "already set"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.ErrorContains(t, schemas.check(t, test.document), test.want)
		})
	}
}

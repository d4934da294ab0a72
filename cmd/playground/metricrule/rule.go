package metricrule

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/template"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/yaml"
)

// Rule is one of the externalRules of the Prometheus adapter, with the fields that ours have.
type Rule struct {
	// SeriesQuery selects the series: their name and what their labels must be.
	SeriesQuery string `json:"seriesQuery"`
	// Resources say which label is which resource: the namespace of whoever asks must be that of the label.
	Resources struct {
		Overrides map[string]struct {
			Resource string `json:"resource"`
		} `json:"overrides"`
	} `json:"resources"`
	// Name is what the metric is called; empty means as the series.
	Name struct {
		As string `json:"as"`
	} `json:"name"`
	// MetricsQuery is a template of <<.Series>> and <<.LabelMatchers>>.
	MetricsQuery string `json:"metricsQuery"`
}

// Read reads the configuration that a ConfigMap in a file holds as its entry config.yaml.
func Read(path string) ([]Rule, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the rules: %w", err)
	}
	var object corev1.ConfigMap
	if err := yaml.UnmarshalStrict(content, &object); err != nil {
		return nil, fmt.Errorf("read the rules, which are expected in a ConfigMap in %s: %w", path, err)
	}
	var config struct {
		ExternalRules []Rule `json:"externalRules"`
	}
	if err := yaml.UnmarshalStrict([]byte(object.Data["config.yaml"]), &config); err != nil {
		return nil, fmt.Errorf("read the entry config.yaml of the ConfigMap in %s: %w", path, err)
	}
	if len(config.ExternalRules) == 0 {
		return nil, fmt.Errorf("the entry config.yaml of the ConfigMap in %s has no externalRules", path)
	}
	for _, r := range config.ExternalRules {
		if _, err := r.series(); err != nil {
			return nil, fmt.Errorf("read the rules of %s: %w", path, err)
		}
	}
	return config.ExternalRules, nil
}

var seriesQuery = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{.*\})?$`)

// series is the name of the series. What the matchers of a seriesQuery ask decides which series the adapter
// finds, and not what it queries then.
func (r Rule) series() (string, error) {
	parts := seriesQuery.FindStringSubmatch(r.SeriesQuery)
	if parts == nil {
		return "", fmt.Errorf("the seriesQuery %q is expected as a name with matchers, such as up{job!=\"\"}", r.SeriesQuery)
	}
	return parts[1], nil
}

// Metric is the name of the metric.
func (r Rule) Metric() string {
	if r.Name.As != "" {
		return r.Name.As
	}
	name, _ := r.series() // it was read before
	return name
}

// Query is the PromQL for whoever asks from a namespace with a selector.
func (r Rule) Query(namespace string, selector labels.Selector) (string, error) {
	series, err := r.series()
	if err != nil {
		return "", err
	}
	var matchers []string
	for label, is := range r.Resources.Overrides {
		if is.Resource == "namespace" {
			matchers = append(matchers, fmt.Sprintf("%s=%q", label, namespace))
		}
	}
	requirements, _ := selector.Requirements()
	for _, one := range requirements {
		matcher, err := matcherOf(one)
		if err != nil {
			return "", err
		}
		matchers = append(matchers, matcher)
	}
	slices.Sort(matchers)
	text, err := template.New("metricsQuery").Delims("<<", ">>").Option("missingkey=error").Parse(r.MetricsQuery)
	if err != nil {
		return "", fmt.Errorf("read the metricsQuery %q: %w", r.MetricsQuery, err)
	}
	var query strings.Builder
	if err := text.Execute(&query, map[string]string{"Series": series, "LabelMatchers": strings.Join(matchers, ",")}); err != nil {
		return "", fmt.Errorf("fill in the metricsQuery %q: %w", r.MetricsQuery, err)
	}
	return query.String(), nil
}

// matcherOf is a requirement as PromQL writes it.
func matcherOf(one labels.Requirement) (string, error) {
	values := one.Values().List()
	for i := range values {
		values[i] = regexp.QuoteMeta(values[i])
	}
	alternatives := strings.Join(values, "|")
	switch one.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		return fmt.Sprintf("%s=~%q", one.Key(), alternatives), nil
	case selection.NotEquals, selection.NotIn:
		return fmt.Sprintf("%s!~%q", one.Key(), alternatives), nil
	case selection.Exists:
		return one.Key() + `!=""`, nil
	case selection.DoesNotExist:
		return one.Key() + `=""`, nil
	default:
		return "", fmt.Errorf("the selector %s cannot be asked of Prometheus", one.String())
	}
}

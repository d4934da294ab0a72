package lint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// kindConfigMap is the kind of the settings.
const kindConfigMap = "ConfigMap"

// parser reads a ConfigMap as the manager does.
type parser func(*corev1.ConfigMap) (warnings []string, err error)

// readSettings reads a ConfigMap that has a published name, and says what the manager would say of
// it. Others are passed over.
func (m *manifests) readSettings(file string, text []byte, h header) error {
	parse := m.parserOf(h.Metadata.Name)
	if parse == nil {
		return nil
	}
	m.settings++
	name := nameOf(h.Metadata)
	var object corev1.ConfigMap
	if err := yaml.Unmarshal(text, &object); err != nil {
		return fmt.Errorf("ConfigMap %s: %w", name, err)
	}
	warnings, err := parse(&object)
	for _, err := range each(err) {
		m.refused = append(m.refused, finding{file, kindConfigMap, name, levelError, err.Error()})
	}
	if err != nil {
		warnings = nil // they may follow from the error
	}
	for _, warning := range warnings {
		m.refused = append(m.refused, finding{file, kindConfigMap, name, levelWarning, warning})
	}
	return nil
}

// parserOf is nil for a ConfigMap that has no settings.
func (m *manifests) parserOf(name string) parser {
	switch published := (config.Static{}); {
	case slices.Contains(published.ServiceClassConfigMaps(), name):
		return m.readClasses
	case slices.Contains(published.SaturationConfigMaps(), name):
		return local(config.ParseSaturation, config.ParseLocalSaturation)
	case slices.Contains(published.ScaleToZeroConfigMaps(), name):
		return local(config.ParseScaleToZero, config.ParseLocalScaleToZero)
	case slices.Contains(published.UnitCostConfigMaps(), name):
		return func(c *corev1.ConfigMap) ([]string, error) {
			_, warnings, err := config.ParseUnitCosts(c.Data)
			return warnings, err
		}
	}
	return nil
}

func (m *manifests) readClasses(c *corev1.ConfigMap) ([]string, error) {
	classes, warnings, err := config.ParseServiceClasses(c.Name, c.Data)
	// The names of those that cannot be used are not known.
	if m.classes = nil; err == nil {
		m.classes = &classes
		for i := range classes.Classes {
			warnings = append(warnings, withinBuckets(&classes.Classes[i])...)
		}
	}
	return warnings, err
}

// withinBuckets warns of targets that lie within a bucket of every server's histogram. Which
// server a model has is not known here.
func withinBuckets(class *config.ServiceClass) (warnings []string) {
	for _, model := range slices.Sorted(maps.Keys(class.Targets)) {
		slo := class.Targets[model]
		for _, one := range []struct {
			name   string
			target capacity.Milliseconds
			ends   func(modelserver.Engine) []capacity.Milliseconds
		}{
			{"slo-ttft", slo.TTFT, modelserver.Engine.FirstTokenEnds}, {"slo-tpot", slo.ITL, modelserver.Engine.InterTokenEnds},
		} {
			vllm, end := beside(one.ends(modelserver.VLLM), one.target)
			sglang, other := beside(one.ends(modelserver.SGLang), one.target)
			if one.target > 0 && !end && !other {
				warnings = append(warnings, fmt.Sprintf(
					"service class %q, model %q: %s is %v ms, which is no end of a bucket of the servers' histograms, so that nobody can see how many requests meet it: set it to %s for vLLM or to %s for SGLang, unless the servers have other buckets",
					class.Name, model, one.name, one.target, vllm, sglang))
			}
		}
	}
	return warnings
}

// beside are the ends of buckets next to a target that is none of them.
func beside(ends []capacity.Milliseconds, target capacity.Milliseconds) (text string, end bool) {
	above, end := slices.BinarySearch(ends, target)
	var next []string
	for _, i := range []int{above - 1, above} {
		if i >= 0 && i < len(ends) {
			next = append(next, fmt.Sprintf("%.10g", float64(ends[i])))
		}
	}
	return strings.Join(next, " or "), end
}

// local reads a ConfigMap that a namespace may have of its own. No file says in which namespace
// the manager is, so that it may be as it has to be there or as in any other.
func local[T any](beside func(map[string]string) (T, []string, error), of func(string, map[string]string) (T, []string, error)) parser {
	return func(c *corev1.ConfigMap) ([]string, error) {
		_, warnings, err := beside(c.Data)
		if err != nil && c.Namespace != "" {
			_, warnings, err = of(c.Namespace, c.Data)
		}
		return warnings, err
	}
}

// each are the errors that were joined in one.
func each(err error) (all []error) {
	var several interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &several):
		return []error{err}
	}
	for _, one := range several.Unwrap() {
		all = append(all, each(one)...)
	}
	return all
}

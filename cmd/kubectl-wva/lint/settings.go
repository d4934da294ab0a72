package lint

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
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
	}
	return warnings, err
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

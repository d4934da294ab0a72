package scenario

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"llmd.ai/workload-variant-autoscaler/pkg/config"
)

// settings is the manager's configuration as it would read it.
type settings struct {
	config.Dynamic
	collection collection
	// locals are what namespaces say for themselves; nil without a cluster.
	locals map[string]config.Local
}

// windowKey is the setting that collection.window says too.
const windowKey = "PROMETHEUS_METRICS_WINDOW"

// settings reads the configuration through the manager's own code. What is over goes
// over what is in the file.
func (d *document) settings(base []byte, over map[string]any) (settings, error) {
	values, err := baseValues(base)
	if err != nil {
		return settings{}, err
	}
	own := map[string]any{}
	maps.Copy(own, d.Configuration)
	maps.Copy(own, over)
	if err := checkNames(own); err != nil {
		return settings{}, err
	}
	if w := d.Collection.Window; w != nil {
		if given, twice := own[windowKey]; twice {
			return settings{}, fmt.Errorf("collection.window and configuration.%s (%v) are both given: expected one of them", windowKey, given)
		}
		own[windowKey] = time.Duration(*w).String()
	}
	maps.Copy(values, own)
	text, err := yaml.Marshal(values)
	if err != nil {
		return settings{}, fmt.Errorf("configuration: %w", err)
	}
	loaded, err := config.Load(config.Sources{File: text, FileName: "the scenario", Lookup: noPrometheus(values)})
	if err != nil {
		return settings{}, errors.New(oneLine(err))
	}
	s := settings{Dynamic: loaded.Dynamic, collection: d.Collection}
	return s, d.maps(&s)
}

// baseValues are those of a manager's configuration file.
func baseValues(base []byte) (map[string]any, error) {
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(base, &values); err != nil {
		return nil, fmt.Errorf("the manager's configuration file: %s", oneLine(err))
	}
	if values == nil {
		values = map[string]any{}
	}
	return values, nil
}

// checkNames refuses what is no setting.
func checkNames(values map[string]any) error {
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !known[name] {
			return fmt.Errorf("configuration.%s is not a setting: expected a name of the manager's configuration, such as GLOBAL_OPT_INTERVAL", name)
		}
	}
	return nil
}

// noPrometheus stands for the address that only a real manager needs.
func noPrometheus(values map[string]any) func(string) (string, bool) {
	const address = "PROMETHEUS_BASE_URL"
	_, given := values[address]
	return func(name string) (string, bool) {
		return "https://prometheus", name == address && !given
	}
}

// maps reads what the manager has in ConfigMaps of their own. What they only warn of
// is an error here: whoever tries something out wants to know that it had no effect.
func (d *document) maps(s *settings) error {
	if err := readEntries("saturation", d.Saturation, config.ParseSaturation, &s.Saturation); err != nil {
		return err
	}
	if err := readEntries("scaleToZero", d.ScaleToZero, config.ParseScaleToZero, &s.ScaleToZero); err != nil {
		return err
	}
	if err := d.told.read(d, s); err != nil || len(d.ServiceClasses) == 0 {
		return err
	}
	const at = "serviceClasses"
	text, err := yaml.Marshal(map[string]any{at: d.ServiceClasses})
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	var warnings []string
	s.ServiceClasses, warnings, err = config.ParseServiceClasses(at, map[string]string{at: string(text)})
	return firstOf(at, warnings, err)
}

// readEntries reads the entries of one such ConfigMap, if there are any.
func readEntries[T any](at string, given map[string]any, parse func(map[string]string) (T, []string, error), to *T) error {
	if len(given) == 0 {
		return nil
	}
	entries, err := entriesOf(at, given)
	if err != nil {
		return err
	}
	parsed, warnings, err := parse(entries)
	*to = parsed
	return firstOf(at, warnings, err)
}

func firstOf(at string, warnings []string, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("%s: %s", at, oneLine(err))
	case len(warnings) > 0:
		return fmt.Errorf("%s: %s", at, warnings[0])
	}
	return nil
}

// entriesOf writes entries as a ConfigMap has them, one YAML text each.
func entriesOf(at string, given map[string]any) (map[string]string, error) {
	entries := make(map[string]string, len(given))
	for name, value := range given {
		if _, ok := value.(map[string]any); !ok {
			return nil, fmt.Errorf("%s is %s: expected a map of fields", key(at, name), shown(value))
		}
		text, err := yaml.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key(at, name), err)
		}
		entries[name] = string(text)
	}
	return entries, nil
}

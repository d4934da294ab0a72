package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// Sources are the places that values come from. The zero Sources has none.
type Sources struct {
	// Flags are the flags that were given, by name without dashes in front. Those
	// that are not settings of this package are ignored.
	Flags map[string]string
	// Lookup finds a variable of the environment.
	Lookup func(name string) (string, bool)
	// File is the configuration file: YAML, one key and value per line.
	File []byte
	// FileName names the file in messages.
	FileName string
}

// Load reads every setting and validates the whole. Its error names each wrong
// setting, the place that it came from and what was expected. What
// comes from other ConfigMaps is what holds without them; it is read later.
func Load(from Sources) (Config, error) {
	file, err := parseFile(from)
	if err != nil {
		return Config{}, err
	}
	return resolve(from, file)
}

// resolve reads every setting with the values of the file in hand.
func resolve(from Sources, file map[string]string) (Config, error) {
	config := Config{}
	config.Saturation = DefaultSaturation()
	var errs []error
	places := map[string]string{}
	for _, key := range Keys() {
		value, place := from.find(key, file)
		places[key.Name] = place
		if err := key.set(&config, value); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", place, err))
		}
	}
	if len(errs) == 0 {
		errs = config.validate(places)
	}
	if len(errs) > 0 {
		return Config{}, fmt.Errorf("configuration: %w", errors.Join(errs...))
	}
	config.ServiceClasses.configMap = config.ServiceClassConfigMap
	config.Warnings = unknownKeys(from.fileName(), file)
	return config, nil
}

// find is the value of a setting and the name of the place that it came from.
// Empty values of the environment and of the file count as not given, because
// templates often render them.
func (s Sources) find(key Key, file map[string]string) (value, place string) {
	for _, name := range append([]string{key.Flag()}, key.Aliases...) {
		if value, ok := s.Flags[name]; ok {
			return value, "flag --" + name
		}
	}
	if s.Lookup != nil {
		if value, ok := s.Lookup(key.Name); ok && value != "" {
			return value, "environment variable " + key.Name
		}
	}
	if value := file[key.Name]; value != "" {
		return value, key.Name + " in " + s.fileName()
	}
	return key.Default, key.Name
}

func (s Sources) fileName() string {
	if s.FileName == "" {
		return "the configuration file"
	}
	return s.FileName
}

func parseFile(from Sources) (map[string]string, error) {
	var raw map[string]any
	if err := yaml.UnmarshalStrict(from.File, &raw); err != nil {
		return nil, fmt.Errorf("reading %s: %w; write it as YAML, one KEY: value per line", from.fileName(), err)
	}
	values := make(map[string]string, len(raw))
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		text, ok := scalar(raw[name])
		if !ok {
			return nil, fmt.Errorf("reading %s: %s is a list or a map: write a single value", from.fileName(), name)
		}
		values[name] = text
	}
	return values, nil
}

// scalar writes a single YAML value the way that the environment would.
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), true
	default:
		return "", false
	}
}

func unknownKeys(place string, file map[string]string) []string {
	known := map[string]bool{}
	for _, key := range Keys() {
		known[key.Name] = true
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(file)) {
		if !known[name] {
			warnings = append(warnings, fmt.Sprintf("%s in %s is not a setting and has no effect: correct its name or remove it", name, place))
		}
	}
	return warnings
}

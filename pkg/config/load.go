package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Load reads every setting and validates the whole. Its error has one line for each
// wrong setting, wherever it is: the setting, the place that it came from and what was
// expected. What comes from other ConfigMaps is what holds without them; it is read
// later.
func Load(from Sources) (Config, error) {
	levels, warnings, errs := from.levels()
	config, more := resolve(levels, nil)
	if errs = append(errs, more...); len(errs) > 0 {
		return Config{}, problems(errs)
	}
	config.Warnings = slices.Concat(warnings, remarks(levels))
	return config, nil
}

// Located is the namespace and the name of the main ConfigMap, which must be known
// before it can be read.
func Located(from Sources) (namespace, name string) {
	from.Map = nil
	levels, _, _ := from.levels()
	for _, key := range Keys() {
		switch value := find(key, levels).value; key.Name {
		case "POD_NAMESPACE":
			namespace = value
		case "CONFIG_MAP_NAME":
			name = value
		}
	}
	return namespace, name
}

// Files finds in one pass the files that settings name and that are not there, as errors of one
// line each; missing tells why one cannot be read, or nil.
func Files(from Sources, missing func(path string) error) error {
	levels, _, _ := from.levels()
	var errs []error
	for _, key := range Keys() {
		given := find(key, levels)
		if !key.file || given.value == "" {
			continue
		}
		if err := missing(given.value); err != nil {
			errs = append(errs, fmt.Errorf("%s is %q, which cannot be read (%w): mount the file, or correct its path", given.place, given.value, err))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return problems(errs)
}

// resolve reads every setting. Held are the values that count whatever the places say.
func resolve(levels []level, held map[string]found) (Config, []error) {
	config := Config{inForce: map[string]found{}}
	config.Saturation = DefaultSaturation()
	var errs []error
	places := map[string]string{}
	for _, key := range Keys() {
		from, ok := held[key.Name]
		if !ok {
			from = find(key, levels)
		}
		places[key.Name], config.inForce[key.Name] = from.place, from
		if err := key.set(&config, from.value); err != nil {
			errs = append(errs, fmt.Errorf("%s %w", from.place, err))
			// What is said of other settings beside it must not follow from it.
			_ = key.set(&config, key.Default)
			places[key.Name] = ""
		}
	}
	if errs = append(errs, config.validate(places)...); len(errs) > 0 {
		return Config{}, errs
	}
	config.ServiceClasses.configMap = config.ServiceClassConfigMap
	return config, nil
}

// problems are several errors as one, of one line each.
func problems(errs []error) error {
	lines := make([]string, 0, len(errs))
	for _, err := range errs {
		lines = append(lines, oneLine(err))
	}
	return errors.New("configuration: " + strings.Join(lines, "\nconfiguration: "))
}

package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// FileEntry is the entry of the main ConfigMap that holds a whole configuration file.
// Every other entry is one setting.
const FileEntry = "config.yaml"

// Sources are the places that values come from. The zero Sources has none.
type Sources struct {
	// Flags are the flags that were given, by name without dashes in front. Those
	// that are not settings of this package are ignored.
	Flags map[string]string
	// Lookup finds a variable of the environment.
	Lookup func(name string) (string, bool)
	// Map is the data of the main ConfigMap: settings as entries of their own, and in
	// FileEntry. It is nil where there is no such ConfigMap.
	Map map[string]string
	// MapName names the ConfigMap in messages.
	MapName string
	// File is the file of the command line: YAML, one key and value per line. It counts
	// while the ConfigMap has no FileEntry.
	File []byte
	// FileName names the file in messages.
	FileName string
}

// level is one of the places, those of higher precedence first.
type level struct {
	// names are the names of a key there.
	names func(Key) []string
	value func(name string) string
	// has reports whether the name is there at all, with an empty value too.
	has   func(name string) bool
	place func(name string) string
	// strict is set for flags, where an empty value is given by hand and never by a template.
	strict bool
	// listed are all names that are there; nil where there are others than settings.
	listed []string
	// ours is set for the ConfigMap, which cannot say where it is itself.
	ours bool
}

// The first two of the places.
const flagLevel, environmentLevel = 0, 1

// levels are the places with what they hold, and what of them cannot be read.
func (s Sources) levels() (levels []level, warnings []string, errs []error) {
	local, localErrs := parseFile(s.File, s.fileName())
	fileName, file, ofMap := s.fileName(), local, false
	errs = append(errs, localErrs...)
	if text := s.Map[FileEntry]; text != "" {
		fileName, ofMap = FileEntry+" of "+s.mapName(), true
		file, localErrs = parseFile([]byte(text), fileName)
		errs = append(errs, localErrs...)
	}
	entries := maps.Clone(s.Map)
	delete(entries, FileEntry)
	if ofMap {
		warnings = doubled(entries, file, s.mapName())
	}
	levels = []level{flagLevel: s.flags(), environmentLevel: s.environment(), 2: from(entries, s.mapName(), true), from(file, fileName, ofMap)}
	if ofMap {
		// What says where the ConfigMap is counts from the file all the same.
		levels = append(levels, from(local, s.fileName(), false).places())
	}
	return levels, warnings, errs
}

// doubled names the settings that the ConfigMap has in both of its forms.
func doubled(entries, file map[string]string, mapName string) (warnings []string) {
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if entries[name] != "" && file[name] != "" {
			warnings = append(warnings, fmt.Sprintf("%s in %s of %s has no effect, because it is an entry of its own there, which counts: remove one of them", name, FileEntry, mapName))
		}
	}
	return warnings
}

func (s Sources) flags() level {
	return level{
		names:  Key.flags,
		value:  func(name string) string { return s.Flags[name] },
		has:    func(name string) bool { _, ok := s.Flags[name]; return ok },
		place:  func(name string) string { return "flag --" + name },
		strict: true,
	}
}

// environment are variables. The space around a value does not count, here as in a ConfigMap: a Secret
// that was made from a file has a line break at its end.
func (s Sources) environment() level {
	lookup := s.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	return level{
		names: Key.variables,
		value: func(name string) string { text, _ := lookup(name); return strings.TrimSpace(text) },
		has:   func(name string) bool { _, ok := lookup(name); return ok },
		place: func(name string) string { return "environment variable " + name },
	}
}

// from is a map of settings by their names in the environment.
func from(values map[string]string, where string, ours bool) level {
	return level{
		names: Key.variables, ours: ours,
		value:  func(name string) string { return strings.TrimSpace(values[name]) },
		has:    func(name string) bool { _, ok := values[name]; return ok },
		place:  func(name string) string { return name + " in " + where },
		listed: slices.Sorted(maps.Keys(values)),
	}
}

// given reports whether the level has a value for a key under one of its names. Templates often render
// empty values, so that one counts only where the key means something by it.
func (l level) given(key Key, name string) bool {
	return l.has(name) && (l.strict || l.value(name) != "" || key.emptyCounts())
}

// places is the level as it counts for the settings alone that say where the ConfigMap is.
func (l level) places() level {
	names := l.names
	l.listed = nil
	l.names = func(k Key) []string {
		if !k.locates {
			return nil
		}
		return names(k)
	}
	return l
}

// found is a value and where it came from. Level is that of its place, or -1 for the
// default.
type found struct {
	value, place string
	level        int
}

// find is the value of a setting.
func find(key Key, levels []level) found {
	for i, l := range levels {
		if l.ours && key.locates {
			continue
		}
		for _, name := range l.names(key) {
			if l.given(key, name) {
				return found{l.value(name), l.place(name), i}
			}
		}
	}
	return found{key.Default, key.Name, -1}
}

// remarks say what of the places has no effect.
func remarks(levels []level) (warnings []string) {
	known := map[string]bool{}
	for _, key := range Keys() {
		for _, name := range key.variables() {
			known[name] = true
		}
		for _, l := range levels {
			warnings = append(warnings, l.remark(key)...)
		}
		warnings = append(warnings, hidden(key, levels)...)
	}
	for _, idle := range WithoutEffect() {
		known[idle.Name] = true
		for _, l := range levels {
			for _, name := range l.names(Key{Name: idle.Name}) {
				if l.given(Key{Name: idle.Name}, name) {
					warnings = append(warnings, fmt.Sprintf("%s has no effect: %s", l.place(name), idle.Why))
				}
			}
		}
	}
	for _, l := range levels {
		for _, name := range l.listed {
			if !known[name] {
				warnings = append(warnings, l.place(name)+" is not a setting and has no effect: correct its name or remove it")
			}
		}
	}
	return warnings
}

// hidden says which value of a key in the ConfigMap does not count, because a flag or a variable
// gives another one. Whoever edits the ConfigMap does not see those.
func hidden(key Key, levels []level) (warnings []string) {
	counts := find(key, levels)
	if counts.level < 0 || key.locates || levels[counts.level].listed != nil {
		return nil
	}
	for _, l := range levels {
		for _, name := range l.names(key) {
			if l.ours && l.given(key, name) && !key.same(l.value(name), counts.value) {
				warnings = append(warnings, fmt.Sprintf("%s has no effect, because %s counts: remove one of them", l.place(name), counts.place))
			}
		}
	}
	return warnings
}

// remark says what of a key has no effect in one place.
func (l level) remark(key Key) (warnings []string) {
	first := ""
	for _, name := range l.names(key) {
		switch {
		case !l.given(key, name):
		case l.ours && key.locates:
			warnings = append(warnings, l.place(name)+" has no effect, because it says where that ConfigMap is: give it as a flag or in the environment")
		case first == "":
			first = name
		case l.value(name) != l.value(first):
			warnings = append(warnings, fmt.Sprintf("%s has no effect, because it is another name of %s: remove one of them", l.place(name), l.place(first)))
		}
	}
	return warnings
}

func (s Sources) fileName() string {
	if s.FileName == "" {
		return "the configuration file"
	}
	return s.FileName
}

func (s Sources) mapName() string {
	if s.MapName == "" {
		return "the ConfigMap"
	}
	return "ConfigMap " + s.MapName
}

// parseFile reads what can be read of a file.
func parseFile(text []byte, name string) (map[string]string, []error) {
	var raw map[string]any
	if n := documents(string(text)); n > 1 {
		return nil, []error{fmt.Errorf("%s: %s", name, surplus(n))}
	}
	if err := yaml.UnmarshalStrict(text, &raw); err != nil {
		return nil, []error{fmt.Errorf("%s: %s; write it as YAML, one KEY: value per line", name, oneLine(err))}
	}
	values := make(map[string]string, len(raw))
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		text, ok := scalar(raw[key])
		if !ok {
			errs = append(errs, fmt.Errorf("%s in %s is a list or a map: write a single value", key, name))
			continue
		}
		values[key] = text
	}
	return values, errs
}

// AsFile is the data of the main ConfigMap as one configuration file: its entries of their
// own over those of FileEntry. It fails on a file that is no YAML map of single values.
func AsFile(data map[string]string) ([]byte, error) {
	values, errs := parseFile([]byte(data[FileEntry]), FileEntry)
	if len(errs) > 0 {
		return nil, problems(errs)
	}
	for name, value := range data {
		if name != FileEntry && value != "" {
			values[name] = value
		}
	}
	return yaml.Marshal(values)
}

// File is what was given of the settings in force, wherever it came from, as one configuration
// file. Secrets are left out.
func (c Config) File() ([]byte, error) {
	values := map[string]string{}
	for _, key := range Keys() {
		if given := c.inForce[key.Name]; given.level >= 0 && (given.value != "" || key.emptyCounts()) && !key.Secret {
			values[key.Name] = given.value
		}
	}
	return yaml.Marshal(values)
}

// Fixed reports whether a flag or the environment gave a setting, which no ConfigMap changes.
func (c Config) Fixed(name string) bool {
	given, known := c.inForce[name]
	return known && (given.level == flagLevel || given.level == environmentLevel)
}

// oneLine is an error as one line of many.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

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

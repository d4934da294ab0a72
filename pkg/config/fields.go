package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/util/yaml"
)

// fields are one YAML or JSON map of a ConfigMap's entry while it is read. What is
// wrong is collected, so that all of it is said at once.
type fields struct {
	// place names the map in messages.
	place string
	raw   map[string]any
	said  *said
}

// said is what there is to say of an entry.
type said struct {
	warnings []string
	errs     []error
}

func (s *said) err() error { return errors.Join(s.errs...) }

// parseFields reads the value of an entry.
func parseFields(name, text string, s *said) (fields, bool) {
	f := fields{place: fmt.Sprintf("entry %q", name), said: s}
	if n := documents(text); n > 1 {
		f.wrong("%s, or as an entry of its own each", surplus(n))
		return f, false
	}
	if err := yaml.UnmarshalStrict([]byte(text), &f.raw); err != nil {
		s.errs = append(s.errs, fmt.Errorf("%s: %w; write it as YAML, one field: value per line", f.place, err))
		return f, false
	}
	return f, true
}

// parseList reads the value of an entry that is a list of maps; ok says that it is a list.
func parseList(name, text string, s *said) (items []fields, ok bool) {
	var raw []any
	if documents(text) > 1 {
		return nil, false
	}
	if yaml.UnmarshalStrict([]byte(text), &raw) != nil || raw == nil {
		return nil, false
	}
	f := fields{place: fmt.Sprintf("entry %q", name), raw: map[string]any{"item": raw}, said: s}
	items, _ = f.list("item")
	return items, true
}

func (f fields) wrong(format string, args ...any) {
	f.said.errs = append(f.said.errs, fmt.Errorf("%s: %s", f.place, fmt.Sprintf(format, args...)))
}

func (f fields) warn(format string, args ...any) {
	f.said.warnings = append(f.said.warnings, fmt.Sprintf("%s: %s", f.place, fmt.Sprintf(format, args...)))
}

// take is the value of a field, which then counts as read. One that is null counts as
// not given.
func (f fields) take(name string) (any, bool) {
	value := f.raw[name]
	delete(f.raw, name)
	return value, value != nil
}

func (f fields) text(name string) string {
	value, given := f.take(name)
	text, ok := value.(string)
	if given && !ok {
		f.wrong("%s is %v: write a text, in quotes", name, value)
	}
	return text
}

// boolean is nil where it is not given.
func (f fields) boolean(name string) *bool {
	value, given := f.take(name)
	if !given {
		return nil
	}
	b, ok := value.(bool)
	if !ok {
		f.wrong("%s is %v: write true or false, without quotes", name, value)
		return nil
	}
	return &b
}

// number is nil where it is not given.
func (f fields) number(name string) *float64 {
	return f.numeric(name, "a number, without quotes")
}

// numeric is a number of something that the message names.
func (f fields) numeric(name, what string) *float64 {
	value, given := f.take(name)
	if !given {
		return nil
	}
	number, ok := toNumber(value)
	if !ok || math.IsNaN(number) || math.IsInf(number, 0) {
		f.wrong("%s is %v: write %s", name, value, what)
		return nil
	}
	return &number
}

// list are the maps of a field that is a list of maps.
func (f fields) list(name string) (items []fields, given bool) {
	value, given := f.take(name)
	if !given {
		return nil, false
	}
	list, ok := value.([]any)
	if !ok {
		f.wrong("%s is no list: write one item per line, each after a hyphen", name)
		return nil, true
	}
	for i, item := range list {
		at := fields{place: fmt.Sprintf("%s, %s[%d]", f.place, name, i), said: f.said}
		if at.raw, ok = item.(map[string]any); !ok {
			at.wrong("is %v: write fields such as model: name", item)
			continue
		}
		items = append(items, at)
	}
	return items, true
}

// rest names the fields that nothing read.
func (f fields) rest() {
	for _, name := range slices.Sorted(maps.Keys(f.raw)) {
		f.warn("%s has no effect: correct its name or remove it", name)
	}
}

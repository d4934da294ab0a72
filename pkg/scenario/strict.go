package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// decode reads a file. The decoder of JSON names neither the place of an unknown key
// nor what is expected in its stead, so that is found out first.
func decode(data []byte) (document, error) {
	var d document
	// Strict: a key that is there twice is an error with its line.
	plain, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return d, fmt.Errorf("%s; expected YAML", oneLine(err))
	}
	var raw any
	if err := json.Unmarshal(plain, &raw); err != nil {
		return d, err
	}
	if err := check("", raw, reflect.TypeFor[document]()); err != nil {
		return d, err
	}
	return d, json.Unmarshal(plain, &d)
}

// oneLine puts several mistakes, which have a line each, on one.
func oneLine(err error) string {
	lines := strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.Join(strings.Fields(lines[i]), " ")
	}
	return strings.Join(lines, "; ")
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// check reports the first value that does not fit its type. A null counts as not given.
func check(at string, value any, t reflect.Type) error {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if value == nil || t.Kind() == reflect.Interface {
		return nil
	}
	if reflect.PointerTo(t).Implements(unmarshaler) {
		return checkOwn(at, value, t)
	}
	switch t.Kind() {
	case reflect.Struct:
		return checkStruct(at, value, t)
	case reflect.Map:
		return checkMap(at, value, t)
	case reflect.Slice:
		return checkSlice(at, value, t)
	default:
		return checkScalar(at, value, t)
	}
}

// checkOwn is for types that read themselves.
func checkOwn(at string, value any, t reflect.Type) error {
	data, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(data, reflect.New(t).Interface())
	}
	if err != nil {
		return fmt.Errorf("%s is %s: %w", at, shown(value), err)
	}
	return nil
}

func checkStruct(at string, value any, t reflect.Type) error {
	given, ok := value.(map[string]any)
	fields, names := map[string]reflect.Type{}, []string(nil)
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[name] = f.Type
		names = append(names, name)
	}
	if !ok {
		return fmt.Errorf("%s is %s: expected the keys %s", whole(at), shown(value), strings.Join(names, ", "))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		f, known := fields[name]
		if !known {
			return fmt.Errorf("%s is not a key: expected one of %s", key(at, name), strings.Join(names, ", "))
		}
		if err := check(key(at, name), given[name], f); err != nil {
			return err
		}
	}
	return nil
}

// whole names the place of a value, of which the outermost is the file.
func whole(at string) string {
	if at == "" {
		return "the file"
	}
	return at
}

func checkMap(at string, value any, t reflect.Type) error {
	given, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("%s is %s: expected a name and a value on each line", at, shown(value))
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if err := check(key(at, name), given[name], t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func checkSlice(at string, value any, t reflect.Type) error {
	given, ok := value.([]any)
	if !ok {
		return fmt.Errorf("%s is %s: expected a list, each item after a hyphen", at, shown(value))
	}
	for i := range given {
		if err := check(index(at, i), given[i], t.Elem()); err != nil {
			return err
		}
	}
	return nil
}

func checkScalar(at string, value any, t reflect.Type) error {
	number, isNumber := value.(float64)
	var ok bool
	var expected string
	switch t.Kind() {
	case reflect.String:
		_, ok = value.(string)
		expected = "a text, in quotes"
	case reflect.Bool:
		_, ok = value.(bool)
		expected = "true or false, without quotes"
	case reflect.Float64:
		ok, expected = isNumber, "a number, without quotes"
	default:
		// What int32 cannot hold is no count of anything here.
		ok = isNumber && number == math.Trunc(number) && math.Abs(number) <= math.MaxInt32
		expected = "a whole number, without quotes"
	}
	if !ok {
		return fmt.Errorf("%s is %s: expected %s", at, shown(value), expected)
	}
	return nil
}

// shown is a value as the user knows it, cut short.
func shown(value any) string {
	const most = 60
	switch value.(type) {
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > most {
		text = append(text[:most:most], "…"...)
	}
	return string(text)
}

package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// longExponent matches a number that a quantity takes minutes to be read from, and much memory: 1e-10000000
// takes 8 seconds, and the time grows with the square of the exponent (apimachinery 0.36).
var longExponent = regexp.MustCompile(`^[+-]?[0-9.]+[eE][+-]?[0-9.]{4,}$`)

// LongExponent is where an object has such a number in a field that may be a quantity, in what it asks
// for or in its status; empty where it has none. The schema refuses it in new objects before anybody reads
// them, but a file has no schema yet, an object may be older than it, and a status has no such rule.
func LongExponent(object map[string]any) string {
	spec, _ := object["spec"].(map[string]any)
	if at := longIn("spec.behavior", spec["behavior"]); at != "" {
		return at
	}
	return longIn("status", object["status"])
}

func longIn(at string, value any) string {
	switch v := value.(type) {
	case string:
		if longExponent.MatchString(v) {
			return at
		}
	case []any:
		for i := range v {
			if found := longIn(at+"["+strconv.Itoa(i)+"]", v[i]); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if found := longIn(at+"."+key, v[key]); found != "" {
				return found
			}
		}
	}
	return ""
}

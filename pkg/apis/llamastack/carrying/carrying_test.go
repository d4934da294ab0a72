package carrying_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/carrying"
)

const prefix, whole = "version.example.org/", "example.org/version"

type value = map[string]json.RawMessage

func written(t *testing.T, v any) map[string]string {
	t.Helper()
	annotations := map[string]string{"other": "kept"}
	require.NoError(t, carrying.Write(annotations, prefix, v))
	return annotations
}

func TestWrite(t *testing.T) {
	assert.Equal(t, map[string]string{
		"other":                      "kept",
		"version.example.org/a":      `{}`,
		"version.example.org/a.b":    `{"c.d":1}`,
		"version.example.org/a.b.e":  `12345678901234567890`,
		"version.example.org/list":   `[{"x":1}]`,
		"version.example.org/a.none": `null`,
	}, written(t, value{"a": json.RawMessage(`{"b":{"c.d":1,"e":12345678901234567890},"none":null}`), "list": json.RawMessage(`[{"x":1}]`)}))
	assert.Error(t, carrying.Write(map[string]string{}, prefix, []int{1}))
	assert.Error(t, carrying.Write(map[string]string{}, prefix, func() {}))
}

func TestRead(t *testing.T) {
	type form struct {
		Name  string         `json:"name"`
		Of    map[string]any `json:"of"`
		Count int            `json:"count"`
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        form
		keys        []string
	}{
		"nothing":                    {nil, form{}, nil},
		"the earlier form":           {map[string]string{whole: `{"name":"a","count":1}`}, form{Name: "a", Count: 1}, []string{whole}},
		"the earlier form, broken":   {map[string]string{whole: `{"name":`}, form{}, nil},
		"the earlier form, of lists": {map[string]string{whole: `{"name":[]}`}, form{}, nil},
		"the later form counts":      {map[string]string{whole: `{"name":"a","of":{"x":1}}`, prefix + "of": "{}"}, form{Name: "a", Of: map[string]any{}}, []string{whole, prefix + "of"}},
		"an object that is missing":  {map[string]string{prefix + "of.x": "true"}, form{Of: map[string]any{"x": true}}, []string{prefix + "of.x"}},
		"a text that is no JSON":     {map[string]string{prefix + "name": "a", prefix + "count": "2"}, form{Count: 2}, []string{prefix + "count"}},
		"another type":               {map[string]string{prefix + "name": "1", prefix + "count": "2"}, form{Count: 2}, []string{prefix + "count"}},
		"a field of no object":       {map[string]string{prefix + "count": "2", prefix + "count.x": "1"}, form{Count: 2}, []string{prefix + "count"}},
		"no path":                    {map[string]string{prefix: "2"}, form{}, nil},
	} {
		got, keys := carrying.Read[form](c.annotations, prefix, whole)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.keys, keys, name)
	}
}

// Any value comes back, its annotations are valid, and those of a value with a field less are the
// same without some.
func TestValues(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		v := map[string]any{"a": object(random, 3), "b": random.IntN(3)}
		annotations := written(t, v)
		for key := range annotations {
			require.Empty(t, validation.IsQualifiedName(strings.ToLower(key)))
		}
		got, keys := carrying.Read[map[string]any](annotations, prefix, whole)
		require.Equal(t, asText(t, v), asText(t, got))
		assert.Len(t, keys, len(annotations)-1)

		less(random, v["a"].(map[string]any))
		for key, text := range written(t, v) {
			require.Contains(t, annotations, key)
			if text != "{}" && strings.HasPrefix(text, "{") || annotations[key] != text && strings.HasPrefix(annotations[key], `{"`) {
				continue // an object that holds entries that are not fit
			}
			require.Equal(t, annotations[key], text, key)
		}
	}
}

// object is a random object of some depth.
func object(random *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for _, key := range []string{"a", "b_c", "D-1", "un.fit", "un fit", "_", "", strings.Repeat("long", 13)} {
		switch random.IntN(6) {
		case 0:
			o[key] = random.IntN(5)
		case 1:
			o[key] = []any{"x", nil, map[string]any{"y": 1.5}}
		case 2:
			if depth > 0 {
				o[key] = object(random, depth-1)
			}
		}
	}
	return o
}

// less takes one entry away, somewhere.
func less(random *rand.Rand, o map[string]any) {
	keys := slices.Sorted(maps.Keys(o))
	if len(keys) == 0 {
		return
	}
	key := keys[random.IntN(len(keys))]
	if below, ok := o[key].(map[string]any); ok && random.IntN(2) == 0 {
		less(random, below)
		return
	}
	delete(o, key)
}

func asText(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}

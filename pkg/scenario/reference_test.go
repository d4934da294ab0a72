package scenario

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// keysOf adds the keys of a type and of what is in it. What belongs to the
// VariantAutoscaling object is described there.
func keysOf(t reflect.Type, keys map[string]bool) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		keysOf(t.Elem(), keys)
	case reflect.Struct:
		if t.PkgPath() != reflect.TypeFor[document]().PkgPath() {
			return
		}
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			keys[name] = true
			keysOf(f.Type, keys)
		}
	}
}

func TestTheBuiltInScenarioTellsOfEveryKey(t *testing.T) {
	keys := map[string]bool{}
	keysOf(reflect.TypeFor[document](), keys)
	assert.Greater(t, len(keys), 40)
	for _, name := range slices.Sorted(maps.Keys(keys)) {
		assert.Regexp(t, `\b`+name+`\b`, string(builtin))
	}
}

// Whatever a file holds is read or refused in one line.
func FuzzParse(f *testing.F) {
	f.Add(builtin)
	f.Add([]byte("nodes: [{name: a, accelerator: H100, devices: 8, busy: 85%, count: 3}]\nprices: {H100: 1}\nmodels: [{id: m, slo: {itl: 1}, variants: [{name: v, accelerator: H100, acceleratorCount: 2, profile: {base: 1}}]}]"))
	f.Add([]byte("clusters: {a: {nodes: [{name: a, used: [1], devices: 1, accelerator: L4}]}}\nserviceClasses: [{name: x}]\nsaturation: {default: {}}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, Options{})
		if err != nil {
			assert.NotContains(t, err.Error(), "\n")
			return
		}
		for _, n := range s.Cluster.Nodes {
			assert.True(t, n.Free.Devices >= 0 && n.Free.Devices <= n.Allocatable.Devices)
			assert.True(t, n.Free.MilliCPU >= 0 && n.Free.MemoryBytes >= 0 && n.Free.Pods >= 0)
		}
		assert.NotEmpty(t, s.Models)
	})
}

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/randfill"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/apis/llamastack/v1alpha2"
)

func up(view *v1alpha1.LlamaStackDistribution) *v1alpha2.LlamaStackDistribution {
	hub := &v1alpha2.LlamaStackDistribution{}
	v1alpha1.ConvertToHub(view, hub)
	return hub
}

func down(hub *v1alpha2.LlamaStackDistribution) *v1alpha1.LlamaStackDistribution {
	view := &v1alpha1.LlamaStackDistribution{}
	v1alpha1.ConvertFromHub(hub, view)
	return view
}

func TestNothingIsLostOfV1alpha1(t *testing.T) {
	manyObjects(t, objects, func(filler *randfill.Filler) (want, got any) {
		view := &v1alpha1.LlamaStackDistribution{}
		filler.Fill(&view.ObjectMeta)
		filler.Fill(&view.Spec)
		filler.Fill(&view.Status)
		return view, down(up(view))
	})
}

func TestNothingIsLostOfV1alpha2(t *testing.T) {
	manyObjects(t, objects, func(filler *randfill.Filler) (want, got any) {
		hub := &v1alpha2.LlamaStackDistribution{}
		filler.Fill(&hub.ObjectMeta)
		filler.Fill(&hub.Spec)
		filler.Fill(&hub.Status)
		return hub, up(down(hub))
	})
}

// An object that was written as v1alpha1, and then got what only v1alpha2 has.
func TestNothingIsLostOfBothVersionsAtOnce(t *testing.T) {
	manyObjects(t, objects/10, func(filler *randfill.Filler) (want, got any) {
		view := &v1alpha1.LlamaStackDistribution{}
		filler.Fill(&view.ObjectMeta)
		filler.Fill(&view.Spec)
		hub := up(view)
		filler.Fill(&hub.Spec.Providers)
		filler.Fill(&hub.Spec.Resources)
		filler.Fill(&hub.Spec.Storage)
		filler.Fill(&hub.Spec.Disabled)
		filler.Fill(&hub.Spec.ExternalProviders)
		filler.Fill(&hub.Status.ResolvedDistribution)
		filler.Fill(&hub.Status.ConfigGeneration)
		return hub, up(down(hub))
	})
}

// The same, with every object written and read between the steps, as the API server does.
func TestNothingIsLostOnTheWay(t *testing.T) {
	manyObjects(t, objects/50, func(filler *randfill.Filler) (want, got any) {
		view := &v1alpha1.LlamaStackDistribution{}
		filler.Fill(&view.ObjectMeta)
		filler.Fill(&view.Spec)
		hub := carry(t, up(carry(t, view)))
		filler.Fill(&hub.Spec.Providers)
		filler.Fill(&hub.Status.ConfigGeneration)
		return asJSON(t, hub), asJSON(t, carry(t, up(carry(t, down(hub)))))
	})
}

// carry writes and reads an object.
func carry[T any](t *testing.T, object *T) *T {
	t.Helper()
	read := new(T)
	assert.NoError(t, json.Unmarshal([]byte(asJSON(t, object)), read))
	return read
}

// The properties above mean little where the random objects lack something: every
// optional field is there in some of them and not in others.
func TestRandomObjectsHaveEverything(t *testing.T) {
	seen := map[string][2]bool{}
	filler := newFiller(1)
	for range 10_000 {
		view, hub := &v1alpha1.LlamaStackDistribution{}, &v1alpha2.LlamaStackDistribution{}
		for _, part := range []any{&view.Spec, &view.Status, &hub.Spec, &hub.Status} {
			filler.Fill(part)
			look(reflect.ValueOf(part).Elem(), fmt.Sprintf("%T", part), seen)
		}
	}
	assert.Contains(t, seen, "*v1alpha2.LlamaStackDistributionSpec.Workload.Overrides.Env")
	for path, states := range seen {
		assert.Equal(t, [2]bool{true, true}, states, path)
	}
}

// look notes for each optional field of the API whether it is absent or present.
func look(v reflect.Value, path string, seen map[string][2]bool) {
	switch v.Kind() {
	case reflect.Struct:
		if !strings.Contains(v.Type().PkgPath(), "llamastack") {
			return
		}
		for i := range v.NumField() {
			look(v.Field(i), path+"."+v.Type().Field(i).Name, seen)
		}
	case reflect.Pointer, reflect.Slice, reflect.Map:
		states := seen[path]
		states[0] = states[0] || v.IsZero()
		states[1] = states[1] || !v.IsZero()
		seen[path] = states
		if v.Kind() == reflect.Pointer && !v.IsNil() {
			look(v.Elem(), path, seen)
		}
		if v.Kind() == reflect.Slice && v.Len() > 0 {
			look(v.Index(0), path+"[]", seen)
		}
	}
}

// manyObjects tries a property on random objects, on all processors, until it fails or
// holds for all.
func manyObjects(t *testing.T, objects int64, try func(*randfill.Filler) (want, got any)) {
	t.Helper()
	const batch = 1000
	var next, failed atomic.Int64
	var workers sync.WaitGroup
	begin := time.Now()
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for seed := next.Add(1); seed <= objects/batch && failed.Load() == 0; seed = next.Add(1) {
				filler := newFiller(seed)
				for range batch {
					if want, got := try(filler); !reflect.DeepEqual(want, got) && failed.Add(1) == 1 {
						assert.Equal(t, describe(want), describe(got), "seed %d", seed)
						assert.Fail(t, "not the same after a round trip")
						return
					}
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d objects, %d per second", objects, int(float64(objects)/time.Since(begin).Seconds()))
}

package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// passing marks the names of what comes and goes.
const passing = "passing-"

// crowd shows gateways of models that come and go, while there are any: each in another namespace than
// its model.
type crowd struct{ models int }

func (c *crowd) Read(_ context.Context, at time.Time, _, _ time.Duration) (map[types.NamespacedName]decision.Replica, map[decision.ModelKey]decision.Model, error) {
	models := map[decision.ModelKey]decision.Model{}
	for i := range c.models {
		key := decision.ModelKey{Namespace: "stranger", ID: fmt.Sprint(passing, "model-", i)}
		models[key] = decision.Model{Namespace: key.Namespace, ID: key.ID, Queue: sample(1, at), Arrival: sample(1, at)}
	}
	if c.models == 0 {
		return nil, models, nil
	}
	return nil, models, errors.New("one pod is silent")
}

// Objects that were created and deleted leave no memory of them, and no series, however many they were.
func TestObjectsThatAreGoneLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 100
		b := newBench(t, 1)
		from := &crowd{models: many}
		b.metrics = from
		b.decide = func(s decision.Snapshot, p decision.Policy, m decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
			b.note(kind, s)
			return decision.Decide(s, p, m, kind)
		}
		registry := prometheus.NewRegistry()
		require.NoError(t, b.reporter.metrics.Register(registry))
		var objects []client.Object
		for i := range many {
			namespace, replicas := fmt.Sprint(passing, "namespace-", i%10), int32(i%3) // #nosec G115: 0 to 2
			name := fmt.Sprint(passing, i)
			objects = append(objects,
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(passing + "d" + name)}, Spec: appsv1.DeploymentSpec{Replicas: &replicas}},
				&v1alpha1.VariantAutoscaling{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(passing + "v" + name)},
					Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: fmt.Sprint(passing, "model-", i), ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}, AlsoServes: []string{passing + "name"}},
				})
		}
		for _, object := range objects {
			require.NoError(t, b.api.Create(t.Context(), object))
		}
		b.run(t, 65*time.Second)
		drained(b.recorder)
		require.NotEmpty(t, remembered(b.Loop), "what is there is remembered")
		require.NotEmpty(t, seriesOf(t, registry))
		for _, object := range objects {
			require.NoError(t, b.api.Delete(t.Context(), object))
		}
		from.models = 0
		b.run(t, 10*time.Minute)
		assert.Empty(t, remembered(b.Loop))
		assert.Empty(t, seriesOf(t, registry))
	})
}

// seriesOf are the series of what comes and goes.
func seriesOf(t *testing.T, registry *prometheus.Registry) (series []string) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if text := m.String(); strings.Contains(text, passing) {
				series = append(series, family.GetName()+" "+text)
			}
		}
	}
	return series
}

// remembered are the places of a loop that hold a name of what comes and goes.
func remembered(l *Loop) []string {
	w := walker{seen: map[uintptr]bool{}}
	w.walk("loop", reflect.ValueOf(l))
	return w.found
}

// walker looks through what this module's types hold.
type walker struct {
	seen  map[uintptr]bool
	found []string
}

func (w *walker) walk(place string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), passing) && !slices.Contains(w.found, place) {
			w.found = append(w.found, place)
		}
	case reflect.Interface:
		w.walk(place, v.Elem())
	case reflect.Pointer:
		if !v.IsNil() && !w.seen[v.Pointer()] {
			w.seen[v.Pointer()] = true
			w.walk(place, v.Elem())
		}
	case reflect.Struct:
		// The API server and the recorder are of other modules; Kubernetes' objects are looked through.
		if path := v.Type().PkgPath(); !strings.HasPrefix(path, "llmd.ai/") && !strings.HasPrefix(path, "k8s.io/api") || v.Type() == reflect.TypeFor[bench]() {
			return
		}
		for i := range v.NumField() {
			w.walk(place+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Map:
		for entries := v.MapRange(); entries.Next(); {
			w.walk(place+"[key]", entries.Key())
			w.walk(place+"[]", entries.Value())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			w.walk(place+"[]", v.Index(i))
		}
	}
}

package controller

import (
	"errors"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

func sample(value float64, at time.Time) decision.Sample {
	return decision.Sample{Value: value, Time: at, Present: true}
}

func TestAFailedReadingKeepsWhatWasKnown(t *testing.T) {
	later := noon.Add(10 * time.Second)
	a, b := types.NamespacedName{Namespace: "n", Name: "a"}, types.NamespacedName{Namespace: "n", Name: "b"}
	model := decision.ModelKey{Namespace: "n", ID: "m"}
	before := readings{
		at:   noon,
		pods: map[types.NamespacedName]decision.Replica{a: {Name: "a", KVUse: sample(0.1, noon), Served: sample(1, noon)}, b: {Name: "b", KVUse: sample(0.2, noon)}},
		models: map[decision.ModelKey]decision.Model{model: {
			Namespace: "n", ID: "m", Queue: sample(3, noon), Arrival: sample(4, noon), Recent: sample(5, noon), RecentSpan: 15 * time.Second,
		}},
	}
	now := readings{
		at:     later,
		pods:   map[types.NamespacedName]decision.Replica{a: {Name: "a", KVUse: sample(0.5, later)}},
		models: map[decision.ModelKey]decision.Model{model: {Namespace: "n", ID: "m", Queue: sample(7, later)}},
	}
	assert.Equal(t, now, now.over(before, 5*time.Minute), "a reading that succeeded stands alone")

	now.err = errors.New("one query failed")
	filled := now.over(before, 5*time.Minute)
	assert.Equal(t, decision.Replica{Name: "a", KVUse: sample(0.5, later), Served: sample(1, noon)}, filled.pods[a])
	assert.Equal(t, before.pods[b], filled.pods[b], "with its own time")
	assert.Equal(t, decision.Model{
		Namespace: "n", ID: "m", Queue: sample(7, later), Arrival: sample(4, noon), Recent: sample(5, noon), RecentSpan: 15 * time.Second,
	}, filled.models[model])
	assert.Equal(t, now.err, filled.err)
	assert.Equal(t, 0.1, before.pods[a].KVUse.Value, "the reading before is not changed")
}

func TestReadingsThatKeepFailingForgetWhatIsOld(t *testing.T) {
	const stale = 5 * time.Minute
	pod := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: "n", Name: name} }
	model := func(id string) decision.ModelKey { return decision.ModelKey{Namespace: "n", ID: id} }
	failed := errors.New("one pod is silent")
	known := readings{
		at: noon,
		pods: map[types.NamespacedName]decision.Replica{
			pod("gone"): {Name: "gone", KVUse: sample(0.1, noon), Recent: sample(2, noon), RecentSpan: time.Minute},
			pod("half"): {Name: "half", KVUse: sample(0.1, noon.Add(time.Second)), Recent: sample(2, noon), RecentSpan: time.Minute},
		},
		models: map[decision.ModelKey]decision.Model{
			model("gone"): {Namespace: "n", ID: "gone", Queue: sample(3, noon)},
			model("half"): {Namespace: "n", ID: "half", Arrival: sample(1, noon.Add(time.Second)), Queue: sample(3, noon), Recent: sample(2, noon), RecentSpan: time.Minute},
		},
	}
	almost := readings{at: noon.Add(stale - time.Nanosecond), err: failed}.over(known, stale)
	assert.Equal(t, known.pods, almost.pods)
	assert.Equal(t, known.models, almost.models)

	then := readings{at: noon.Add(stale), err: failed}.over(almost, stale)
	assert.Equal(t, map[types.NamespacedName]decision.Replica{pod("half"): {Name: "half", KVUse: sample(0.1, noon.Add(time.Second))}}, then.pods)
	assert.Equal(t, map[decision.ModelKey]decision.Model{model("half"): {Namespace: "n", ID: "half", Arrival: sample(1, noon.Add(time.Second))}}, then.models)
	assert.Len(t, known.pods, 2, "the reading before is not changed")

	then = readings{at: noon.Add(stale + time.Second), err: failed}.over(then, stale)
	assert.Empty(t, then.pods)
	assert.Empty(t, then.models)
}

func TestNoSampleOfAReplicaIsForgotten(t *testing.T) {
	later := noon.Add(10 * time.Second)
	var before, now decision.Replica
	known := 0
	for i, fields := 0, reflect.ValueOf(&before).Elem(); i < fields.NumField(); i++ {
		if s, ok := fields.Field(i).Addr().Interface().(*decision.Sample); ok {
			*s = sample(float64(i), noon)
			known++
		}
	}
	assert.Len(t, samplesOf(&before).all, known, "list every sample in samplesOf")
	before.RecentSpan = 15 * time.Second
	filled := now
	samplesOf(&filled).fill(samplesOf(&before))
	assert.Equal(t, before, filled, "the span goes with its sample")
	filled = decision.Replica{Recent: sample(7, later), RecentSpan: 5 * time.Second}
	samplesOf(&filled).fill(samplesOf(&before))
	assert.Equal(t, sample(7, later), filled.Recent)
	assert.Equal(t, 5*time.Second, filled.RecentSpan)
}

func TestSamplesOfAnEarlierPodOfTheSameNameDoNotCount(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "server-0", CreationTimestamp: metav1.NewTime(noon)}}
	replicas := replicas([]*corev1.Pod{pod}, map[types.NamespacedName]decision.Replica{{Namespace: "n", Name: "server-0"}: {
		Name: "server-0", KVUse: sample(0.9, noon.Add(-time.Second)), Recent: sample(2, noon.Add(-time.Second)), RecentSpan: time.Minute, Waiting: sample(1, noon.Add(time.Second)),
	}})
	assert.Equal(t, []decision.Replica{{Name: "server-0", Waiting: sample(1, noon.Add(time.Second))}}, replicas)
}

func TestWhoseRequestsGatewaysCount(t *testing.T) {
	counted := func(queue float64, namespace, id string) decision.Model {
		return decision.Model{Namespace: namespace, ID: id, Queue: sample(queue, noon), Recent: sample(queue+1, noon), RecentSpan: time.Minute}
	}
	cases := []struct {
		name string
		// ours are the namespaces that have the model ID, gateways those that gateways
		// say; the queue of each is its position, from 1. The gateways in t1 and t2 are trusted.
		ours, gateways []string
		// want are the queues of ours, 0 for unknown, and distrusted those that are told of.
		want       []float64
		distrusted []string
	}{
		{"its own namespace", []string{"a"}, []string{"a"}, []float64{1}, nil},
		{"its own before all others", []string{"a"}, []string{"", "a", "t1"}, []float64{2}, nil},
		{"no namespace", []string{"a"}, []string{""}, []float64{1}, nil},
		{"a trusted one before no namespace", []string{"a"}, []string{"t1", ""}, []float64{1}, nil},
		{"only a trusted one", []string{"a"}, []string{"t1"}, []float64{1}, nil},
		{"two that are trusted", []string{"a"}, []string{"t1", "t2"}, []float64{3}, nil},
		{"one of two is trusted", []string{"a"}, []string{"x", "t2"}, []float64{2}, nil},
		{"only a stranger", []string{"a"}, []string{"x"}, []float64{0}, []string{"a"}},
		{"a stranger and no namespace", []string{"a"}, []string{"x", ""}, []float64{2}, nil},
		{"nothing", []string{"a"}, nil, []float64{0}, nil},
		{"two of ours, no namespace", []string{"a", "b"}, []string{""}, []float64{1, 1}, nil},
		{"two of ours, a trusted one", []string{"a", "b"}, []string{"t1"}, []float64{1, 1}, nil},
		{"two of ours, one is asked for", []string{"a", "b"}, []string{"b"}, []float64{0, 1}, nil},
		{"two of ours, one and no namespace", []string{"a", "b"}, []string{"b", ""}, []float64{2, 1}, nil},
		{"the trusted one has the model itself", []string{"a", "t1"}, []string{"t1"}, []float64{0, 1}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			models, gateways := map[decision.ModelKey]*decision.Model{}, map[decision.ModelKey]decision.Model{
				{Namespace: "c", ID: "else"}: counted(9, "c", "else"),
			}
			var want []decision.Model
			for i, namespace := range c.ours {
				models[decision.ModelKey{Namespace: namespace, ID: "m"}] = &decision.Model{Namespace: namespace, ID: "m"}
				m := decision.Model{Namespace: namespace, ID: "m"}
				if c.want[i] > 0 {
					m = counted(c.want[i], namespace, "m")
				}
				want = append(want, m)
			}
			for i, namespace := range c.gateways {
				gateways[decision.ModelKey{Namespace: namespace, ID: "m"}] = counted(float64(i+1), namespace, "m")
			}
			var told []string
			got, odd := join(models, hear(slices.Collect(maps.Values(models)), []string{"t1", "t2"}), gateways, nil, nil)
			for key := range odd.distrusted {
				told = append(told, key.Namespace)
			}
			for i := range got {
				if got[i].Recent.Present {
					got[i].Recent = sample(got[i].Queue.Value+1, noon) // of two parts it is 1 more
				}
			}
			assert.Equal(t, want, got, "sorted")
			assert.Equal(t, c.distrusted, told)
		})
	}
}

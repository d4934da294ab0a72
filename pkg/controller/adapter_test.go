package controller

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// servers are a variant of a model of a namespace with pods of these names.
func servers(namespace, id string, pods ...string) *variant {
	v := &variant{object: &v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: id}, Spec: v1alpha1.VariantAutoscalingSpec{ModelID: id}}, key: decision.Key{Namespace: namespace, Name: id}}
	for _, name := range pods {
		v.pods = append(v.pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	return v
}

func podIn(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// namedAs are the further names that models have after servers showed some; a model's own names come first.
func namedAs(a adapters, told map[string][]string, variants ...*variant) map[string][]string {
	models := map[decision.ModelKey]*decision.Model{}
	for _, v := range variants {
		key := v.model()
		models[key] = &decision.Model{Namespace: key.Namespace, ID: key.ID}
		addNames(models[key], told[key.ID])
	}
	a.name(models)
	all := map[string][]string{}
	for key, m := range models {
		all[key.Namespace+"/"+key.ID] = m.Names
	}
	return all
}

func TestWhatPodsShowIsAFurtherNameOfTheirModel(t *testing.T) {
	llama, other, elsewhere := servers("n", "llama", "a", "b"), servers("n", "other", "c"), servers("x", "theirs", "a")
	for name, c := range map[string]struct {
		shown map[types.NamespacedName][]string
		told  map[string][]string
		want  map[string][]string
	}{
		"of several pods":           {map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}, podIn("n", "b"): {"chat", "sql"}}, nil, map[string][]string{"n/llama": {"chat", "sql"}, "n/other": nil, "x/theirs": nil}},
		"beside those it lists":     {map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}}, map[string][]string{"llama": {"alias", "sql"}}, map[string][]string{"n/llama": {"alias", "sql"}, "n/other": nil, "x/theirs": nil}},
		"each in its namespace":     {map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}, podIn("x", "a"): {"sql"}}, nil, map[string][]string{"n/llama": {"sql"}, "n/other": nil, "x/theirs": {"sql"}}},
		"of two models of one":      {map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}, podIn("n", "c"): {"chat", "sql"}}, nil, map[string][]string{"n/llama": nil, "n/other": {"chat"}, "x/theirs": nil}},
		"a model's own":             {map[types.NamespacedName][]string{podIn("n", "a"): {"llama", "other"}}, nil, map[string][]string{"n/llama": nil, "n/other": nil, "x/theirs": nil}},
		"a model's elsewhere":       {map[types.NamespacedName][]string{podIn("n", "a"): {"theirs"}}, nil, map[string][]string{"n/llama": {"theirs"}, "n/other": nil, "x/theirs": nil}},
		"what another lists":        {map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}}, map[string][]string{"other": {"sql"}}, map[string][]string{"n/llama": nil, "n/other": {"sql"}, "x/theirs": nil}},
		"of pods that nobody knows": {map[types.NamespacedName][]string{podIn("n", "z"): {"sql"}, podIn("y", "a"): {"sql"}}, nil, map[string][]string{"n/llama": nil, "n/other": nil, "x/theirs": nil}},
	} {
		var a adapters
		a.see([]*variant{llama, other, elsewhere}, c.shown, noon)
		assert.Equal(t, c.want, namedAs(a, c.told, llama, other, elsewhere), name)
	}
}

// A name is known while nobody asks for it, for some days, and so is one of a model that sleeps.
func TestAdaptersAreRememberedForAWhile(t *testing.T) {
	var a adapters
	awake, asleep, other := servers("n", "llama", "a"), servers("n", "llama"), servers("n", "other", "c")
	names := func() []string { return namedAs(a, nil, asleep, other)["n/llama"] }
	sql := map[types.NamespacedName][]string{podIn("n", "a"): {"sql"}}
	a.see([]*variant{awake, other}, sql, noon)
	a.see([]*variant{asleep, other}, nil, noon.Add(3*24*time.Hour))
	assert.Equal(t, []string{"sql"}, names())
	a.see([]*variant{asleep, other}, nil, noon.Add(8*24*time.Hour))
	assert.Empty(t, names())
	assert.Empty(t, a, "nothing is left of it")

	a.see([]*variant{awake, other}, sql, noon)
	a.see([]*variant{awake, other}, map[types.NamespacedName][]string{podIn("n", "c"): {"sql"}}, noon.Add(time.Minute))
	assert.Equal(t, map[string][]string{"n/llama": nil, "n/other": {"sql"}}, namedAs(a, nil, awake, other), "it moved")

	a.see([]*variant{awake}, nil, noon.Add(2*time.Minute))
	assert.Empty(t, a, "the object of its model is gone")
}

// However many names a server makes up, no more are remembered than an object may list: the newest.
func TestTheNumberOfAdaptersIsBounded(t *testing.T) {
	var a adapters
	v := servers("n", "llama", "a")
	for i := range 5 * mostAdapters {
		a.see([]*variant{v}, map[types.NamespacedName][]string{podIn("n", "a"): {fmt.Sprintf("name-%04d", i)}}, noon.Add(time.Duration(i)*time.Second))
	}
	names := namedAs(a, nil, v)["n/llama"]
	assert.Len(t, names, mostAdapters)
	assert.Contains(t, names, fmt.Sprintf("name-%04d", 5*mostAdapters-1))
}

// They are asked for in full rounds, what they show counts at the gateway, and a failure keeps nobody from deciding.
func TestAdaptersAreReadInFullRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", UID: "s", OwnerReferences: []metav1.OwnerReference{{Name: "d", UID: "d", Controller: ptr.To(true)}}}}
		pod := server("d-0", 0, func(p *corev1.Pod) {
			p.Namespace = "n"
			p.OwnerReferences = []metav1.OwnerReference{{Name: "s", UID: "s", Controller: ptr.To(true)}}
		})
		b := newBench(t, 1, set, pod)
		asked := 0
		b.adapters = func(context.Context, time.Time) (map[types.NamespacedName][]string, error) {
			if asked++; asked > 1 {
				return nil, errors.New("query timed out")
			}
			return map[types.NamespacedName][]string{podIn("n", "d-0"): {"sql"}}, nil
		}
		var names [][]string
		b.decide = func(s decision.Snapshot, p decision.Policy, memory decision.Memory, kind decision.Round) (decision.Plan, decision.Memory) {
			names = append(names, s.Models[0].Names)
			return b.wakes(s, p, memory, kind)
		}
		assert.Len(t, b.run(t, 65*time.Second), 7)
		assert.Equal(t, 2, asked, "once in a full round")
		for _, each := range names {
			assert.Equal(t, []string{"sql"}, each)
		}
		assert.Len(t, b.logged("Some metrics could not be read"), 1)
	})
}

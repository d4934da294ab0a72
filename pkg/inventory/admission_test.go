package inventory

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// onNodes is a pod with a required node affinity.
func onNodes(terms ...corev1.NodeSelectorTerm) *corev1.Pod {
	required := &corev1.NodeSelector{NodeSelectorTerms: terms}
	return &corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}}}}
}

func among(key string, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}}}
}

func TestPodsThatGoElsewhereHaveAnotherKey(t *testing.T) {
	fields := corev1.NodeSelectorTerm{MatchFields: among("a", "b").MatchExpressions}
	both := corev1.NodeSelectorTerm{MatchExpressions: append(among("a", "b").MatchExpressions, among("c", "d").MatchExpressions...)}
	not := among("a", "b")
	not.MatchExpressions[0].Operator = corev1.NodeSelectorOpNotIn
	seen := map[string]int{}
	for i, terms := range [][]corev1.NodeSelectorTerm{
		{}, {among("a", "b")}, {among("a", "b"), among("c", "d")}, {both}, {fields}, {not}, {among("a", "b", "c")}, {among("a", "bc")}, {among("a", "b"), {}}, {among("a")}, {among("")},
	} {
		key := admissionKey(onNodes(terms...), capacity.Shape{}, "")
		other, found := seen[key]
		assert.False(t, found, "%d and %d", i, other)
		seen[key] = i
		assert.Equal(t, key, admissionKey(onNodes(terms...), capacity.Shape{}, ""))
	}
}

// Eight times as many terms take eight times as much, and not 64 times.
func TestManyTermsTakeNoMoreEach(t *testing.T) {
	takes := func(many int) float64 {
		var terms []corev1.NodeSelectorTerm
		for i := range many {
			terms = append(terms, among(fmt.Sprint("k", i), "a", "b"))
		}
		pod := onNodes(terms...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		admissionKey(pod, capacity.Shape{}, "")
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc - before.TotalAlloc)
	}
	assert.Less(t, takes(4000), 20*takes(500))
}

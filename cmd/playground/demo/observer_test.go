package demo

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

func newObserver() *observer {
	return &observer{
		nodes:  map[string]capacity.Accelerator{"h100-0": "H100"},
		states: map[string][]replicaState{},
		pods:   map[types.UID]*podState{},
		wanted: map[string]int{},
		start:  time.Now(),
	}
}

func aDeployment(name string, desired, ready int32) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       appsv1.DeploymentSpec{Replicas: &desired},
		Status:     appsv1.DeploymentStatus{ReadyReplicas: ready},
	}
}

func aPod(name, variant string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{variantLabel: variant}}}
	pod.Spec.SchedulerName = schedulerName
	if change != nil {
		change(pod)
	}
	return pod
}

func TestObserverRemembersChangesAndNothingElse(t *testing.T) {
	o := newObserver()
	for _, d := range []*appsv1.Deployment{
		aDeployment("v", 1, 0), aDeployment("v", 1, 1), aDeployment("v", 1, 1), aDeployment("v", 3, 1), aDeployment("v", 3, 3),
	} {
		o.deployment(d)
	}
	o.deploymentGone(aDeployment("v", 3, 3))
	variants := o.observedVariants([]model{{Variants: []variant{{Name: "v"}, {Name: "other"}}}})
	require.Len(t, variants, 2)
	var seen [][2]int
	for _, s := range variants[0].Replicas {
		seen = append(seen, [2]int{s.Desired, s.Ready})
	}
	assert.Equal(t, [][2]int{{1, 0}, {1, 1}, {3, 1}, {3, 3}, {0, 0}}, seen)
	assert.Empty(t, variants[1].Replicas)
}

func TestObserverFollowsAPodFromItsNodeToItsEnd(t *testing.T) {
	o := newObserver()
	bind := func(p *corev1.Pod) { p.Spec.NodeName = "h100-0" }
	o.pod(aPod("v-1", "v", nil))
	assert.Empty(t, o.placements(), "no node found for it yet")
	_, _, pending := o.counts("v")
	assert.Equal(t, 1, pending)

	o.pod(aPod("v-1", "v", bind))
	assert.Equal(t, []report.Placement{{Pod: "v-1", Variant: "v", Node: "h100-0", Accelerator: "H100", Scheduler: schedulerName}}, o.placements())
	o.pod(aPod("v-1", "v", func(p *corev1.Pod) {
		bind(p)
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}))
	_, _, pending = o.counts("v")
	assert.Zero(t, pending)
	held := o.observedVariants([]model{{Variants: []variant{{Name: "v"}}}})[0].Held
	require.Len(t, held, 1)
	assert.True(t, held[0].Open)

	// Nothing was heard of its end; the watch only says that it is gone.
	handle(o.pod, o.podGone).OnDelete(cache.DeletedFinalStateUnknown{Obj: aPod("v-1", "v", bind)})
	held = o.observedVariants([]model{{Variants: []variant{{Name: "v"}}}})[0].Held
	assert.False(t, held[0].Open)
	assert.GreaterOrEqual(t, held[0].To, held[0].From)
	assert.Len(t, o.placements(), 1, "a placement stays one")
	var steps []simulation.Stage
	for _, m := range o.moves() {
		steps = append(steps, m.Stage)
		assert.Equal(t, m.Stage == simulation.Created, m.Node == "", "no node holds what was only asked for")
	}
	assert.Equal(t, []simulation.Stage{simulation.Created, simulation.Placed, simulation.Serving, simulation.Gone}, steps)
}

func TestObserverLeavesOutTheLlamaStackServer(t *testing.T) {
	o := newObserver()
	o.pod(aPod("llama-stack-1", stackName, func(p *corev1.Pod) { p.Spec.NodeName, p.Spec.SchedulerName = "cpu-0", "default-scheduler" }))
	assert.Empty(t, o.placements())
	assert.Empty(t, o.moves())
}

func TestAPodWithoutANodeHoldsNothing(t *testing.T) {
	o := newObserver()
	o.pod(aPod("v-1", "v", nil))
	o.podGone(aPod("v-1", "v", nil))
	assert.Empty(t, o.observedVariants([]model{{Variants: []variant{{Name: "v"}}}})[0].Held)
}

func TestObserverTellsDecisionsFromRounds(t *testing.T) {
	o := newObserver()
	show := func(current, desired int32, reason, message string) {
		v := v1alpha1.VariantAutoscaling{ObjectMeta: metav1.ObjectMeta{Name: "v"}}
		v.Status.CurrentAlloc = &v1alpha1.CurrentAlloc{NumReplicas: &current}
		v.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{NumReplicas: &desired}
		v.Status.Decision = &v1alpha1.Decision{Reason: reason, Message: message}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&v)
		require.NoError(t, err)
		o.variant(&unstructured.Unstructured{Object: object})
	}
	o.variant(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "v"}}})
	show(1, 1, "Steady", "")
	show(1, 3, "Saturated", "two more are needed")
	show(1, 3, "Saturated", "two more are needed still")
	show(3, 3, "Steady", "")
	show(3, 1, "SpareCapacity", "")
	var got []report.Decision
	for _, d := range o.decisionsSoFar() {
		assert.GreaterOrEqual(t, d.T, 0.0)
		d.T = 0
		got = append(got, d)
	}
	assert.Equal(t, []report.Decision{
		{Variant: "v", From: 1, To: 3, Reason: "Saturated: two more are needed"},
		{Variant: "v", From: 3, To: 1, Reason: "SpareCapacity"},
	}, got)
}

func TestGaugesOfAVariantAreUnknownRatherThanZero(t *testing.T) {
	g := gauges{
		kvUse:      map[string]float64{"a": 0.2, "b": 0.4, "other": 1},
		waiting:    map[string]float64{"a": 3, "b": 4, "other": 100},
		ttftSum:    map[string]float64{"a": 0.3, "b": 0.1},
		ttftCount:  map[string]float64{"a": 1, "b": 3},
		tokenSum:   map[string]float64{"a": 0},
		tokenCount: map[string]float64{"a": 0},
	}
	var v, none report.LiveVariant
	g.ofVariant(&v, []string{"a", "b", "starting"})
	assert.InDelta(t, 0.3, *v.KVUse, 1e-9)
	assert.InDelta(t, 7, *v.Waiting, 1e-9)
	assert.InDelta(t, 100, *v.TTFT, 1e-9, "by request, not by pod")
	assert.Nil(t, v.ITL, "no tokens, no latency")
	g.ofVariant(&none, []string{"starting"})
	assert.Equal(t, report.LiveVariant{}, none)
}

package dashboard

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// noon is when the tests' dashboards begin.
var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// variantOf is a variant of the namespace chat whose last decision wants so many replicas.
func variantOf(name string, wanted int32) *v1alpha1.VariantAutoscaling {
	return &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Name: name},
		Spec:       v1alpha1.VariantAutoscalingSpec{ModelID: "meta/llama", ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: name}},
		Status: v1alpha1.VariantAutoscalingStatus{
			CurrentAlloc:          &v1alpha1.CurrentAlloc{Accelerator: "H100", NumReplicas: new(wanted)},
			DesiredOptimizedAlloc: &v1alpha1.DesiredAlloc{Accelerator: "H100", NumReplicas: new(wanted)},
			Placement:             &v1alpha1.Placement{Shape: &v1alpha1.Shape{Accelerator: "H100", Devices: new(int32(2))}, Slots: new(int32(4)), SlotsBound: "volumes"},
			Conditions:            []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady}},
		},
	}
}

func decidedTo(v *v1alpha1.VariantAutoscaling, from, to int32, at time.Time) *v1alpha1.VariantAutoscaling {
	v.Status.DesiredOptimizedAlloc = &v1alpha1.DesiredAlloc{NumReplicas: new(to), LastRunTime: &metav1.Time{Time: at}}
	v.Status.Decision = &v1alpha1.Decision{Reason: "Saturated", Message: "2 of 2 replicas are saturated", Steps: []v1alpha1.DecisionStep{
		{Stage: "demand", Before: from, After: from, Reason: "Steady", Detail: "6.0 req/s"},
		{Stage: "requirement", Before: from, After: to, Reason: "Saturated"},
	}}
	return v
}

// podOf is a pod of a variant's Deployment.
func podOf(variant, name, node string, made int, ready bool) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "chat", Name: variant + "-5f7c-" + name, UID: types.UID(variant + name), Labels: map[string]string{templateHash: "5f7c"},
			CreationTimestamp: metav1.Time{Time: after(made)},
			OwnerReferences:   []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: variant + "-5f7c", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: devices("2")}}}},
	}
	condition := func(kind corev1.PodConditionType, at int) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: after(at)}})
	}
	if node != "" {
		condition(corev1.PodScheduled, made+1)
	}
	if ready {
		condition(corev1.PodReady, made+30)
	}
	return pod
}

func look(h *history, at int, variants []*v1alpha1.VariantAutoscaling, pods ...*corev1.Pod) {
	h.look(listing{at: after(at), podsKnown: true, variants: variants, pods: pods}, newOwners(variants, nil))
}

func TestTheHistoryIsThatOfTheListings(t *testing.T) {
	h := newHistory(noon)
	key := types.NamespacedName{Namespace: "chat", Name: "a"}
	look(h, 100, []*v1alpha1.VariantAutoscaling{variantOf("a", 1)}, podOf("a", "x", "n1", -500, true), podOf("of-nobody", "x", "n1", 0, true))
	assert.Equal(t, []state{{after(100), 1, 1}}, h.replicas[key])
	assert.Empty(t, h.decisions, "what is there at first was not decided now")
	changed := h.changed

	look(h, 102, []*v1alpha1.VariantAutoscaling{variantOf("a", 1)}, podOf("a", "x", "n1", -500, true))
	assert.Equal(t, changed, h.changed, "nothing has changed")

	look(h, 104, []*v1alpha1.VariantAutoscaling{decidedTo(variantOf("a", 1), 1, 2, after(103))}, podOf("a", "x", "n1", -500, true))
	require.Len(t, h.decisions, 1)
	assert.Equal(t, []any{1, 2, "Saturated", 2}, []any{h.decisions[0].from, h.decisions[0].to, h.decisions[0].reason, len(h.decisions[0].steps)})

	next := decidedTo(variantOf("a", 1), 1, 2, after(103))
	look(h, 140, []*v1alpha1.VariantAutoscaling{next}, podOf("a", "x", "n1", -500, true), podOf("a", "y", "n2", 105, true))
	assert.Equal(t, []state{{after(100), 1, 1}, {after(104), 2, 1}, {after(140), 2, 2}}, h.replicas[key])
	life := h.lives["ay"]
	assert.Equal(t, []time.Time{after(105), after(106), after(135)}, []time.Time{life.Made, life.Placed, life.Serving}, "at the times that the pod tells")

	look(h, 150, []*v1alpha1.VariantAutoscaling{next}, podOf("a", "y", "n2", 105, true))
	assert.Equal(t, after(150), h.lives["ax"].Gone, "and gone when it is not listed any more")
	next.Status.Conditions[0] = metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "DeploymentNotFound", Message: "Deployment a does not exist"}
	look(h, 160, []*v1alpha1.VariantAutoscaling{next}, podOf("a", "y", "n2", 105, true))
	require.Len(t, h.decisions, 2, "a state that becomes another one")
	assert.Equal(t, []any{2, 2, "DeploymentNotFound"}, []any{h.decisions[1].from, h.decisions[1].to, h.decisions[1].reason})
	look(h, 170, nil)
	assert.Empty(t, h.replicas, "a variant that is gone")
}

func TestTheLastDecisionBeforeTheStartIsKnown(t *testing.T) {
	h := newHistory(noon)
	look(h, 100, []*v1alpha1.VariantAutoscaling{decidedTo(variantOf("a", 2), 2, 3, after(40)), decidedTo(variantOf("steady", 2), 2, 2, after(40)), decidedTo(variantOf("old", 2), 2, 3, after(-40))})
	require.Len(t, h.decisions, 1)
	assert.Equal(t, after(40), h.decisions[0].at)
	key := types.NamespacedName{Namespace: "chat", Name: "a"}
	h.add([]decided{{at: after(42), variant: key, from: 2, to: 3}, {at: after(5), variant: key, from: 1, to: 2}, {at: after(-5), variant: key, from: 0, to: 1}})
	assert.Len(t, h.decisions, 2, "the event of a known decision is no other one, and what is too old is left out")
}

func TestAVariantOfWhichNothingIsKnownHasNoReplicas(t *testing.T) {
	h := newHistory(noon)
	v := variantOf("a", 1)
	v.Status = v1alpha1.VariantAutoscalingStatus{}
	look(h, 10, []*v1alpha1.VariantAutoscaling{v})
	assert.Empty(t, h.replicas, "unknown is not zero")
}

func TestWhatIsTooOldIsForgotten(t *testing.T) {
	h := newHistory(noon)
	v := variantOf("a", 1)
	for i, wanted := range []int32{1, 2, 3} {
		look(h, 100*(i+1), []*v1alpha1.VariantAutoscaling{decidedTo(v, wanted, wanted, after(0))}, podOf("a", "x", "n", 0, i == 0))
	}
	look(h, 310, []*v1alpha1.VariantAutoscaling{v})
	h.forget(after(250))
	assert.Equal(t, []int{2, 3}, []int{h.replicas[keyOf(v)][0].wanted, h.replicas[keyOf(v)][1].wanted}, "the last state of before counts on")
	assert.Len(t, h.decisions, 1)
	assert.Len(t, h.lives, 1)
	h.forget(after(311))
	assert.Empty(t, h.lives)
}

func TestThePodsOfATarget(t *testing.T) {
	owned := func(kind, name string, labels map[string]string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "chat", Labels: labels}}
		if kind != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
		}
		return pod
	}
	deployment, set, group, other := variantOf("d", 1), variantOf("s", 1), variantOf("g", 1), variantOf("o", 1)
	set.Spec.ScaleTargetRef.Kind, group.Spec.ScaleTargetRef.Kind, other.Spec.ScaleTargetRef.Kind = "StatefulSet", leaderWorkerSet, "Other"
	selector, err := labels.Parse("serves=o")
	require.NoError(t, err)
	o := newOwners([]*v1alpha1.VariantAutoscaling{deployment, set, group, other}, map[string][]selected{"chat": {{keyOf(other), selector}}})
	hash := map[string]string{templateHash: "77"}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"of a Deployment":                     {owned("ReplicaSet", "d-77", hash), "d"},
		"of a StatefulSet":                    {owned("StatefulSet", "s", nil), "s"},
		"of a group":                          {owned("StatefulSet", "g-0", map[string]string{leaderWorkerLabel: "g"}), "g"},
		"found by a selector":                 {owned("", "", map[string]string{"serves": "o"}), "o"},
		"of a ReplicaSet of its own":          {owned("ReplicaSet", "d", nil), ""},
		"of a Deployment whose name goes on":  {owned("ReplicaSet", "d-x-77", hash), ""},
		"of a StatefulSet of the same name":   {owned("StatefulSet", "d", nil), ""},
		"of nobody":                           {owned("", "", nil), ""},
		"of a ReplicaSet that is only a hash": {owned("ReplicaSet", "-77", hash), ""},
	} {
		t.Run(name, func(t *testing.T) {
			key, ok := o.of(test.pod)
			assert.Equal(t, test.want, key.Name)
			assert.Equal(t, test.want != "", ok)
		})
	}
	elsewhere := owned("StatefulSet", "s", nil)
	elsewhere.Namespace = "other"
	_, ok := o.of(elsewhere)
	assert.False(t, ok)
}

func TestWithoutPodsTheStatusTellsWhatServes(t *testing.T) {
	h := newHistory(noon)
	v := variantOf("a", 3)
	v.Status.Placement.Pending = new(int32(1))
	h.look(listing{at: after(10), variants: []*v1alpha1.VariantAutoscaling{v}}, newOwners(nil, nil))
	assert.Equal(t, []state{{after(10), 3, 2}}, h.replicas[keyOf(v)])
}

package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/config"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// ruled is one node of sixteen H100 whose taint the template of the variant does not
// tolerate, the variant, and the objects that are added.
func ruled(t *testing.T, access Access, change func(*appsv1.Deployment), objects ...client.Object) (slots int, bound string) {
	t.Helper()
	x := indexed{}
	require.NoError(t, addIndexes(t.Context(), x, Access{}))
	require.NoError(t, x.of(&corev1.Node{}).Add(bigNode(0)))
	d, set := bigTarget("team", "v")
	d.Annotations, d.Spec.Template.Spec.Tolerations = map[string]string{"deployment.kubernetes.io/revision": "2"}, nil
	set.Annotations = map[string]string{"deployment.kubernetes.io/revision": "2"}
	if change != nil {
		change(d)
	}
	va := &v1alpha1.VariantAutoscaling{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "v", UID: "va", Generation: 1},
		Spec:       v1alpha1.VariantAutoscalingSpec{ScaleTargetRef: v1alpha1.ScaleTargetReference{Name: "v"}, ModelID: "m"},
	}
	for _, object := range append([]client.Object{d, set, va}, objects...) {
		kept := any(object)
		switch object.(type) {
		case *corev1.Pod:
			var err error
			kept, err = stripPod(object)
			require.NoError(t, err)
		case *appsv1.ReplicaSet:
			var err error
			kept, err = stripReplicaSet(object)
			require.NoError(t, err)
		}
		require.NoError(t, x.of(object).Add(kept))
	}
	x.of(&autoscalingv2.HorizontalPodAutoscaler{})
	access.Capacity = true
	o := &observer{
		reader: x, targets: &targetFinder{reader: x, access: access, overlay: newOverlay()}, access: access,
		names: &inventory.Names{}, startups: &round.Startups{},
	}
	seen, err := o.observe(t.Context(), noon, &config.Dynamic{}, readings{at: noon})
	require.NoError(t, err)
	request := seen.snapshot.Models[0].Variants[0].Request
	require.NotNil(t, request, "%v", seen.variants)
	slots, err = seen.snapshot.Cluster.Slots(request)
	require.NoError(t, err)
	return slots, request.Bound
}

// live is a pod of the variant's template as admission made it.
func live(tolerations ...corev1.Toleration) *corev1.Pod {
	d, set := bigTarget("team", "v")
	pod := bigPod(d, set, 0, 0)
	pod.Generation, pod.Spec.Tolerations = 1, tolerations
	return pod
}

func TestTheCountIsThatOfLivePods(t *testing.T) {
	tolerant := corev1.Toleration{Key: "nvidia.com/gpu", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	slots, bound := ruled(t, Access{}, nil)
	assert.Equal(t, 16, slots, "admission may add the toleration")
	assert.Equal(t, "what admission adds", bound)
	slots, bound = ruled(t, Access{}, nil, live(tolerant))
	assert.Equal(t, 15, slots)
	assert.Empty(t, bound)
	slots, bound = ruled(t, Access{}, nil, live())
	assert.Equal(t, 0, slots, "it does not")
	assert.Empty(t, bound)
	_, bound = ruled(t, Access{}, func(d *appsv1.Deployment) { d.Generation = 2 }, live(tolerant))
	assert.Equal(t, "what admission adds", bound, "the template may be another one now")
}

func TestWhatTheClusterSaysOfPodsIsRead(t *testing.T) {
	low := bigPod(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "other"}}, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "pause"}}, 0, 0)
	low.UID, low.Spec.Priority = "low", ptr.To[int32](-10)
	low.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resource.MustParse("16")
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("88")}}}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gpus"}}
	quota.Spec.Hard = corev1.ResourceList{"requests.nvidia.com/gpu": resource.MustParse("3")}
	quota.Status.Hard = quota.Spec.Hard
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	priority := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "low"}, Value: -10}
	sandboxed := func(d *appsv1.Deployment) { d.Spec.Template.Spec.RuntimeClassName = ptr.To("kata") }
	for name, c := range map[string]struct {
		access  Access
		change  func(*appsv1.Deployment)
		objects []client.Object
		slots   int
		bound   string
	}{
		"a runtime class":               {Access{}, sandboxed, []client.Object{class}, 2, "what admission adds"},
		"a runtime class, unread":       {Access{Unread: inventory.Unread{RuntimeClasses: true}}, sandboxed, nil, 16, "what admission adds, runtime class"},
		"a quota":                       {Access{}, nil, []client.Object{quota}, 3, "what admission adds"},
		"a quota, unread":               {Access{Unread: inventory.Unread{Quotas: true}}, nil, []client.Object{quota}, 16, "what admission adds, resource quotas"},
		"a lower priority":              {Access{}, nil, []client.Object{low}, 16, "what admission adds"},
		"a lower priority that budgets": {Access{}, nil, []client.Object{low, budget}, 16, "what admission adds, disruption budgets"},
		"budgets, unread":               {Access{Unread: inventory.Unread{Budgets: true}}, nil, []client.Object{low}, 16, "what admission adds, disruption budgets"},
		"a class as low":                {Access{}, func(d *appsv1.Deployment) { d.Spec.Template.Spec.PriorityClassName = "low" }, []client.Object{low, priority}, 0, "what admission adds"},
		"priorities, unread":            {Access{Unread: inventory.Unread{PriorityClasses: true}}, nil, []client.Object{low}, 16, "what admission adds, priority class"},
	} {
		t.Run(name, func(t *testing.T) {
			slots, bound := ruled(t, c.access, c.change, c.objects...)
			assert.Equal(t, c.slots, slots)
			assert.Equal(t, c.bound, bound)
		})
	}
}

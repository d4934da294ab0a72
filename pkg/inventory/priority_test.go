package inventory

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// bound is a pod of that priority on the node.
func prioritized(name, node string, priority int32, pairs ...string) *corev1.Pod {
	pod := boundPod(node, container(pairs...))
	pod.Namespace, pod.Name, pod.UID = "n", name, types.UID(name)
	pod.Labels = map[string]string{"app": name}
	pod.Spec.Priority = ptr.To(priority)
	return pod
}

func class(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
}

// Pods that only keep room warm yield to replicas: the scheduler would preempt them.
func TestPodsOfLowerPriorityYield(t *testing.T) {
	never := class("patient", 1000)
	never.PreemptionPolicy = ptr.To(corev1.PreemptNever)
	global := class("usual", 7)
	global.GlobalDefault = true
	o := Objects{
		Nodes: []*corev1.Node{h100("a"), h100("b"), h100("c")},
		Pods: []*corev1.Pod{
			prioritized("pause-a", "a", -10, "nvidia.com/gpu", "8", "cpu", "100"),
			prioritized("pause-b", "b", -10, "nvidia.com/gpu", "4"), prioritized("server-b", "b", 0, "nvidia.com/gpu", "4"),
			prioritized("system-c", "c", 2_000_000_000, "nvidia.com/gpu", "8"),
		},
		PriorityClasses: []*schedulingv1.PriorityClass{class("high", 1000), class("low", -10), never},
	}
	usual := o
	usual.PriorityClasses = append([]*schedulingv1.PriorityClass{global}, o.PriorityClasses...)
	unread := o
	unread.Unread.PriorityClasses = true
	for name, c := range map[string]struct {
		objects Objects
		class   string
		slots   int
		bound   string
	}{
		"no class is priority 0":                {o, "", 2 + 1, "what admission adds"},
		"a higher one":                          {o, "high", 2 + 2, "what admission adds"},
		"one as low yields to nobody":           {o, "low", 0, "what admission adds"},
		"one that never preempts":               {o, "patient", 0, "what admission adds"},
		"the default of the cluster":            {usual, "", 2 + 2, "what admission adds"},
		"not known":                             {unread, "high", 2 + 2, "what admission adds, priority class"},
		"what the default is nobody knows then": {unread, "", 2 + 2, "what admission adds, priority class"},
		"of the cluster's own":                  {unread, "system-node-critical", 2 + 2 + 2, "what admission adds, priority class"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := new(Names).Read(c.objects)
			tmpl := template(container("nvidia.com/gpu", "4", "cpu", "1"))
			tmpl.Spec.PriorityClassName = c.class
			r, err := inv.Request(tmpl, nil, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.slots, slotsOf(t, inv, r))
			assert.Equal(t, c.bound, r.Bound)
		})
	}
	inv := new(Names).Read(o)
	missing := template(container("nvidia.com/gpu", "4"))
	missing.Spec.PriorityClassName = "gone"
	_, err := inv.Request(missing, nil, Normalize("H100"))
	require.ErrorContains(t, err, "priority class gone, which does not exist")
}

// A live pod shows its priority itself.
func TestThePriorityOfALivePod(t *testing.T) {
	inv := new(Names).Read(Objects{
		Nodes:  []*corev1.Node{h100("a")},
		Pods:   []*corev1.Pod{prioritized("pause", "a", -10, "nvidia.com/gpu", "8")},
		Unread: Unread{PriorityClasses: true},
	})
	tmpl := template(container("nvidia.com/gpu", "4"))
	for name, c := range map[string]struct {
		change func(*corev1.PodSpec)
		slots  int
	}{
		"nothing said":   {func(*corev1.PodSpec) {}, 2},
		"lower":          {func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](-11) }, 0},
		"the same":       {func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](-10) }, 0},
		"higher":         {func(s *corev1.PodSpec) { s.Priority = ptr.To[int32](-9) }, 2},
		"never preempts": {func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(corev1.PreemptNever) }, 0},
		"preempts":       {func(s *corev1.PodSpec) { s.PreemptionPolicy = ptr.To(corev1.PreemptLowerPriority) }, 2},
	} {
		t.Run(name, func(t *testing.T) {
			like := PodOf(tmpl)
			c.change(&like.Spec)
			r, err := inv.Request(tmpl, like, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.slots, slotsOf(t, inv, r))
			assert.Empty(t, r.Bound)
		})
	}
}

// Room that is kept for a pod of lower priority is taken even by who never preempts.
func TestNominatedPodsYieldToWhoNeverPreempts(t *testing.T) {
	nominated := prioritized("nominated", "", -10, "nvidia.com/gpu", "4")
	nominated.Status.NominatedNodeName = "a"
	inv := new(Names).Read(Objects{
		Nodes:   []*corev1.Node{h100("a")},
		Pods:    []*corev1.Pod{nominated, prioritized("pause", "a", -10, "nvidia.com/gpu", "4")},
		Budgets: []*policyv1.PodDisruptionBudget{{ObjectMeta: metav1.ObjectMeta{Namespace: "n"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}},
	})
	tmpl := template(container("nvidia.com/gpu", "1"))
	for policy, c := range map[corev1.PreemptionPolicy]struct {
		slots int
		bound string
	}{corev1.PreemptNever: {4, ""}, corev1.PreemptLowerPriority: {8, "disruption budgets"}} {
		like := PodOf(tmpl)
		like.Spec.PreemptionPolicy = &policy
		r, err := inv.Request(tmpl, like, Normalize("H100"))
		require.NoError(t, err)
		assert.Equal(t, c.slots, slotsOf(t, inv, r), policy)
		assert.Equal(t, c.bound, r.Bound)
	}
}

// Everything that a pod holds yields: devices of the kind that is asked for, CPU, memory,
// pod slots and extended resources; on nodes that could be used alone.
func TestWhatYields(t *testing.T) {
	mixed := h100("a")
	mixed.Status.Allocatable["nvidia.com/mig-1g.10gb"] = list("x", "7")["x"]
	mixed.Status.Allocatable["rdma/hca"] = list("x", "2")["x"]
	other := h100("b")
	other.Labels["nvidia.com/gpu.product"] = "NVIDIA-A100-SXM4-80GB"
	inv := new(Names).Read(Objects{
		Nodes: []*corev1.Node{mixed, other},
		Pods: []*corev1.Pod{
			prioritized("one", "a", -10, "nvidia.com/gpu", "3", "cpu", "10", "memory", "1Gi", "rdma/hca", "1"),
			prioritized("two", "a", -5, "nvidia.com/mig-1g.10gb", "2", "cpu", "5"),
			prioritized("three", "b", -10, "nvidia.com/gpu", "1"),
			prioritized("on no node", "", -10, "nvidia.com/gpu", "1"),
		},
	})
	r, err := inv.plain(template(container("nvidia.com/gpu", "1")), Normalize("H100"))
	require.NoError(t, err)
	require.Len(t, r.Yields, 2)
	assert.Equal(t, placement.Yield{
		Resources: placement.Resources{Devices: 3, MilliCPU: 15_000, MemoryBytes: 1 << 30, Pods: 2}, Other: []int64{1},
	}, r.Yields[0])
	assert.Zero(t, r.Yields[1])
	slice, err := inv.plain(template(container("nvidia.com/mig-1g.10gb", "1")), Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, 2, slice.Yields[0].Devices)
	again, err := inv.plain(template(container("nvidia.com/gpu", "1")), Normalize("H100"))
	require.NoError(t, err)
	assert.Same(t, &r.Yields[0], &again.Yields[0], "requests share what is the same")
	a100, err := inv.plain(template(container("nvidia.com/gpu", "1")), Normalize("A100"))
	require.NoError(t, err)
	assert.Equal(t, 1, a100.Yields[1].Devices)
	none, err := inv.plain(template(container("cpu", "1")), Normalize(""))
	require.NoError(t, err)
	assert.EqualValues(t, 15_000, none.Yields[0].MilliCPU)
	assert.Equal(t, 1, none.Yields[1].Pods, "pods without devices go on any node")
}

// The scheduler breaks a disruption budget only where nothing else helps, and whether it
// should is not for a count to say: the bound names it.
func TestDisruptionBudgetsAreNamed(t *testing.T) {
	budget := func(namespace string, selector *metav1.LabelSelector) *policyv1.PodDisruptionBudget {
		return &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "b"}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector},
		}
	}
	app := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "pause"}}
	for name, c := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		unread bool
		want   string
	}{
		"of the pods":           {budget("n", app), false, "disruption budgets"},
		"of all pods":           {budget("n", &metav1.LabelSelector{}), false, "disruption budgets"},
		"of no pods":            {budget("n", nil), false, ""},
		"of others":             {budget("n", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}), false, ""},
		"of another namespace":  {budget("m", app), false, ""},
		"not known":             {budget("m", app), true, "disruption budgets"},
		"that cannot be parsed": {budget("n", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Odd"}}}), false, "disruption budgets"},
	} {
		t.Run(name, func(t *testing.T) {
			inv := new(Names).Read(Objects{
				Nodes: []*corev1.Node{h100("a")}, Pods: []*corev1.Pod{prioritized("pause", "a", -10, "nvidia.com/gpu", "8")},
				Budgets: []*policyv1.PodDisruptionBudget{c.budget}, Unread: Unread{Budgets: c.unread},
			})
			for i := range 2 {
				r, err := inv.plain(template(container("nvidia.com/gpu", fmt.Sprint(1+i))), Normalize("H100"))
				require.NoError(t, err)
				assert.Equal(t, c.want, r.Bound)
			}
			low := template(container("nvidia.com/gpu", "1"))
			like := PodOf(low)
			like.Spec.Priority = ptr.To[int32](-10)
			r, err := inv.Request(low, like, Normalize("H100"))
			require.NoError(t, err)
			assert.Empty(t, r.Bound, "nobody yields")
		})
	}
}

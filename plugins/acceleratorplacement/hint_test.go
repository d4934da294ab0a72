package acceleratorplacement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
)

// turnDown has the pod tried on no nodes at all, so that it waits.
func (w *world) turnDown(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	ctx, state := context.Background(), newState()
	_, status := w.PreFilter(ctx, state, pod, nil)
	require.False(t, status.IsSkip())
	_, status = w.PostFilter(ctx, state, pod, nil)
	require.True(t, status.IsRejected())
}

func (w *world) hint(t *testing.T, event int, pod *corev1.Pod, before, after any) fwk.QueueingHint {
	t.Helper()
	events, err := w.EventsToRegister(context.Background())
	require.NoError(t, err)
	hint, err := events[event].QueueingHintFn(klog.Background(), pod, before, after)
	require.NoError(t, err)
	return hint
}

func TestOnlyEventsThatCanHelpAreRegistered(t *testing.T) {
	events, err := newWorld(t, nil).EventsToRegister(context.Background())
	require.NoError(t, err)
	require.Len(t, events, 2)
	assert.Equal(t, fwk.ClusterEvent{
		Resource:   fwk.Node,
		ActionType: fwk.Add | fwk.UpdateNodeAllocatable | fwk.UpdateNodeLabel | fwk.UpdateNodeTaint | fwk.UpdateNodeCondition,
	}, events[0].Event)
	assert.Equal(t, fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.Delete | fwk.UpdatePodScaleDown}, events[1].Event)
}

func TestANodeWakesThosePodsThatItCouldHold(t *testing.T) {
	rs := deployed("v")
	w := newWorld(t, []runtime.Object{rs}, variant("v", "H100", 4))
	pod := gpuPod("p", 4, rs)
	whole := func(change func(*corev1.Node)) *corev1.Node {
		n := node("n", h100, 8, 0).node
		if change != nil {
			change(n)
		}
		return n
	}
	cordoned := whole(func(n *corev1.Node) { n.Spec.Unschedulable = true })
	leaving := whole(func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Effect: corev1.TaintEffectNoSchedule}}
	})
	notReady := whole(func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse })
	touched := whole(func(n *corev1.Node) { n.Labels["seen-by"] = "somebody" })
	larger := whole(func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("3Ti") })
	smaller := whole(func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceMemory] = resource.MustParse("1Ti") })
	otherType := node("n", a100, 8, 0).node
	cases := []struct {
		name          string
		before, after *corev1.Node
		want          fwk.QueueingHint
	}{
		{"a new node", nil, whole(nil), fwk.Queue},
		{"a new node of another type", nil, otherType, fwk.QueueSkip},
		{"a new node that no label describes", nil, node("n", "", 8, 0).node, fwk.QueueSkip},
		{"a new node without devices", nil, node("n", "", 0, 0).node, fwk.QueueSkip},
		{"a new node that is too small", nil, node("n", h100, 2, 0).node, fwk.QueueSkip},
		{"a new node that is cordoned", nil, cordoned, fwk.QueueSkip},
		{"uncordoned", cordoned, whole(nil), fwk.Queue},
		{"cordoned", whole(nil), cordoned, fwk.QueueSkip},
		{"ready", notReady, whole(nil), fwk.Queue},
		{"not ready", whole(nil), notReady, fwk.QueueSkip},
		{"kept after all", leaving, whole(nil), fwk.Queue},
		{"the label arrives", node("n", "", 8, 0).node, whole(nil), fwk.Queue},
		{"the devices arrive", node("n", h100, 0, 0).node, whole(nil), fwk.Queue},
		{"a device heals", node("n", h100, 7, 0).node, whole(nil), fwk.Queue},
		{"a device breaks", whole(nil), node("n", h100, 7, 0).node, fwk.QueueSkip},
		{"a label of no account", whole(nil), touched, fwk.QueueSkip},
		{"more memory", whole(nil), larger, fwk.Queue},
		{"less memory", whole(nil), smaller, fwk.QueueSkip},
		{"another type becomes this one", otherType, whole(nil), fwk.Queue},
	}
	for _, c := range cases {
		var before any
		if c.before != nil {
			before = c.before
		}
		w.waiting.forget(pod.UID)
		assert.Equal(t, fwk.Queue, w.hint(t, 0, pod, before, c.after), "%s: nobody knows what the pod wants", c.name)
		w.turnDown(t, pod)
		assert.Equal(t, c.want, w.hint(t, 0, pod, before, c.after), c.name)
	}
	assert.Equal(t, fwk.Queue, w.hint(t, 0, pod, nil, "no node"))
}

func TestAPodThatGoesWakesThoseThatItsNodeCouldHold(t *testing.T) {
	rs := deployed("v")
	right, wrong, small := node("right", h100, 8, 8).node, node("wrong", a100, 8, 8).node, node("small", h100, 2, 2).node
	w := newWorld(t, []runtime.Object{rs, right, wrong, small}, variant("v", "H100", 4))
	pod := gpuPod("p", 4, rs)
	w.turnDown(t, pod)
	on := func(node string) *corev1.Pod {
		gone := gpuPod("gone", 0, nil)
		gone.Spec.NodeName = node
		return gone
	}
	nominated := gpuPod("gone", 4, nil)
	nominated.Status.NominatedNodeName = "right"
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, on("right"), nil), "also one without devices leaves CPU")
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, nominated, nil), "room was kept for it")
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, on("right"), on("right")), "it takes less now")
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, pod, pod), "the pod itself takes less")
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, "no pod", nil))
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 1, pod, on("gone"), nil), "the node went with its pods")
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 1, pod, on("wrong"), nil))
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 1, pod, on("small"), nil))
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 1, pod, on(""), nil), "it was on no node")
	w.waiting.forget(pod.UID)
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, on("wrong"), nil), "nobody knows what the pod wants")
}

func TestNoEventBringsBackAPodThatIsNoRequest(t *testing.T) {
	w := newWorld(t, nil)
	pod := gpuPod("both", 1, nil)
	pod.Spec.Containers[0].Resources.Requests["amd.com/gpu"] = resource.MustParse("1")
	w.turnDown(t, pod)
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 0, pod, nil, node("n", h100, 8, 0).node))
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 1, pod, placedBy("x", "gone", "n", 1), nil))
	assert.Equal(t, fwk.Queue, w.hint(t, 1, pod, pod, pod), "the pod itself changes")
}

// Another plugin's PreFilter may turn a pod down before this one is asked.
func TestAPodThatAnotherPluginTurnedDownIsNotInvalid(t *testing.T) {
	ctx := context.Background()
	bad := gpuPod("bad", 1, nil)
	bad.Annotations = map[string]string{"wva.llmd.ai/accelerators": ","}
	for _, pod := range []*corev1.Pod{gpuPod("good", 1, nil), bad} {
		w := newWorld(t, nil)
		_, status := w.PostFilter(ctx, newState(), pod, nil)
		require.True(t, status.IsRejected())
		assert.Equal(t, reasonOthers, w.waiting.of(pod.UID).reason)

		w.turnDown(t, pod)
		_, status = w.PostFilter(ctx, newState(), pod, nil)
		assert.Empty(t, status.Message(), "what an earlier attempt wanted is not known to hold")
		assert.Equal(t, reasonOthers, w.waiting.of(pod.UID).reason)
		assert.Equal(t, fwk.Queue, w.hint(t, 0, pod, nil, node("n", h100, 8, 0).node))
	}
}

func TestPodsOfNoVariantAreWokenByNodesOfAnyType(t *testing.T) {
	w := newWorld(t, nil)
	pod := gpuPod("stray", 4, nil)
	w.turnDown(t, pod)
	assert.Equal(t, fwk.Queue, w.hint(t, 0, pod, nil, node("n", "", 8, 0).node))
	assert.Equal(t, fwk.Queue, w.hint(t, 0, pod, nil, node("n", a100, 8, 0).node))
	assert.Equal(t, fwk.QueueSkip, w.hint(t, 0, pod, nil, node("n", a100, 2, 0).node))
}

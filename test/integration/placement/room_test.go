package placement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"llmd.ai/workload-variant-autoscaler/test/integration/conditiontest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Eight nodes have one free device each. The large variant would serve for less and
// is not asked for: the small one is. When a node becomes free, the large one gets it.
func eightHoles(t *testing.T, w *world) {
	namespace := w.space(t)
	fillers := map[string]*corev1.Pod{}
	for i := range 8 {
		name := fmt.Sprintf("h100-%d", i)
		fillers[name] = w.fill(t, namespace, name, 7)
	}
	small, large := deployment(namespace, "small", "h100", 1, 1), deployment(namespace, "large", "h100", 8, 0)
	halve(large)
	vSmall, vLarge := variant(small, limited, "10"), variant(large, limited, "25")
	vSmall.Spec.Accelerator, vLarge.Spec.Accelerator = "H100", "H100"
	// Two of the holes stay.
	vSmall.Spec.MaxReplicas = ptr.To[int32](6)
	w.create(t, small, large, vSmall, vLarge)
	w.servers.ask(namespace, 1)
	w.readyOn(t, namespace, "small", 1)
	w.shows(t, patience, vSmall, v1alpha1.ConditionMetricsAvailable, "MetricsFound")
	conditiontest.Eventually(t, patience, "seven slots beside the replica", func() (string, bool) {
		return describe(vSmall), w.slots(t, vSmall) == 7
	})

	// Six are 75 % full of it, above the trigger, however long the node takes to come.
	w.servers.ask(namespace, 9)
	w.asks(t, patience, small, vSmall, "six", exactly(6))
	limits := w.shows(t, patience, vLarge, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Contains(t, limits.Message, "wants 8xH100: 8 H100 nodes have fewer than 8 free (largest hole 1)")
	known := w.shows(t, patience, vLarge, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityUpperBound)
	assert.Contains(t, known.Message, "what admission adds", "no pod of it is there to show it")
	assert.EqualValues(t, 0, w.slots(t, vLarge))
	assert.EqualValues(t, 0, written(vLarge))
	neverScaled(t, w, large, 1)
	assert.Empty(t, w.pods(t, namespace, "large"))
	on := w.readyOn(t, namespace, "small", 6)

	// A whole node becomes free.
	w.clear(t, fillers, on)
	w.asks(t, patience, large, vLarge, "one", exactly(1))
	w.readyOn(t, namespace, "large", 1)
	w.shows(t, patience, vLarge, v1alpha1.ConditionCapacityKnown, v1alpha1.ReasonCapacityExact)
	rounds := w.rounds(t, limited)
	conditiontest.Eventually(t, patience, "three more rounds", func() (string, bool) {
		now := w.rounds(t, limited)
		return fmt.Sprint(now - rounds), now >= rounds+3
	})
	neverScaled(t, w, large, 2)
}

// The same holes, with a large variant that runs from the start: its only replica finds
// no node, so that the small one takes over, and the large one asks for none until a
// whole node is there.
func theOnlyReplicaFindsNoNode(t *testing.T, w *world) {
	namespace := w.space(t)
	fillers := map[string]*corev1.Pod{}
	for i := range 8 {
		name := fmt.Sprintf("a6000-%d", i)
		fillers[name] = w.fill(t, namespace, name, 7)
	}
	small, large := deployment(namespace, "small", "a6000", 1, 0), deployment(namespace, "large", "a6000", 8, 1)
	halve(large)
	vSmall, vLarge := variant(small, limited, "10"), variant(large, limited, "25")
	vSmall.Spec.MaxReplicas = ptr.To[int32](3)
	w.create(t, small, large, vSmall, vLarge)
	w.servers.ask(namespace, 1)
	conditiontest.Eventually(t, patience, "a replica that no node can hold", func() (string, bool) {
		placement := read(t, w, vLarge).Status.Placement
		return describe(vLarge), placement != nil && ptr.Deref(placement.Unschedulable, 0) == 1 && ptr.Deref(placement.Unplaced, 0) == 1
	})
	assert.EqualValues(t, 0, w.slots(t, vLarge))

	w.asks(t, vain, small, vSmall, "one", exactly(1))
	w.readyOn(t, namespace, "small", 1)
	w.asks(t, vain, large, vLarge, "no", exactly(0))
	w.servers.ask(namespace, 8)
	w.asks(t, patience, small, vSmall, "three", exactly(3))
	limits := w.shows(t, patience, vLarge, v1alpha1.ConditionScalingLimited, "NoSlots")
	assert.Contains(t, limits.Message, "wants 8xA6000: 8 A6000 nodes have fewer than 8 free (largest hole 1)")
	assert.EqualValues(t, 0, *read(t, w, large).Spec.Replicas, "nothing fits that could be asked for")

	on := w.readyOn(t, namespace, "small", 3)
	w.clear(t, fillers, on)
	w.asks(t, vain, large, vLarge, "one", exactly(1))
	w.readyOn(t, namespace, "large", 1)
}

// clear lets the pods of somebody else leave one of the nodes that no replica is on.
func (w *world) clear(t *testing.T, fillers map[string]*corev1.Pod, on map[string]int) {
	t.Helper()
	for node, filler := range fillers {
		if on[node] == 0 {
			require.NoError(t, w.api.Delete(t.Context(), filler))
			return
		}
	}
}

// neverScaled checks that a Deployment has only been written so often, its creation
// included.
func neverScaled(t *testing.T, w *world, d *appsv1.Deployment, writes int64) {
	t.Helper()
	assert.Equal(t, writes, read(t, w, d).Generation, "%s asks for %d replicas", d.Name, *d.Spec.Replicas)
}

// Whatever takes half of the nodes out takes half of the slots with it, within one
// round, and gives them back.
func halfOfTheNodes(t *testing.T, w *world) {
	namespace := w.space(t)
	for i := range 8 {
		w.fill(t, namespace, fmt.Sprintf("h200-%d", i), 7)
	}
	d := deployment(namespace, "probe", "h200", 1, 0)
	v := variant(d, limited, "10")
	v.Spec.Actuation = v1alpha1.ActuationOff
	w.create(t, d, v)
	conditiontest.Eventually(t, patience, "eight slots", func() (string, bool) {
		return describe(v), w.slots(t, v) == 8
	})
	for _, c := range []struct {
		name   string
		change func(n *corev1.Node, out bool)
	}{
		{"cordoned", func(n *corev1.Node, out bool) { n.Spec.Unschedulable = out }},
		{"tainted", func(n *corev1.Node, out bool) {
			if out {
				n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Effect: corev1.TaintEffectNoSchedule})
			} else {
				n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == "maintenance" })
			}
		}},
		{"not ready", func(n *corev1.Node, out bool) {
			if delete(n.Annotations, notReady); out {
				n.Annotations = map[string]string{notReady: ""}
			}
		}},
	} {
		w.halves(t, v, c.name, c.change, true, 4)
		w.halves(t, v, "no longer "+c.name, c.change, false, 8)
	}
}

// notReady makes the kubelet that KWOK plays report that it is not ready.
const notReady = "emulation.llmd.ai/not-ready"

// halves changes half of the nodes and waits for the slots that this leaves.
func (w *world) halves(t *testing.T, v *v1alpha1.VariantAutoscaling, what string, change func(*corev1.Node, bool), out bool, slots int32) {
	t.Helper()
	for i := range 4 {
		n := read(t, w, w.node(fmt.Sprintf("h200-%d", i)))
		old := n.DeepCopy()
		change(n, out)
		require.NoError(t, w.api.Patch(t.Context(), n, client.MergeFrom(old)))
	}
	for i := range 4 {
		conditiontest.Eventually(t, patience, what, func() (string, bool) {
			n := read(t, w, w.node(fmt.Sprintf("h200-%d", i)))
			_, down := n.Annotations[notReady]
			return fmt.Sprint(n.Status.Conditions), down != nodeReady(n)
		})
	}
	changed := w.rounds(t, limited)
	conditiontest.Eventually(t, patience, fmt.Sprintf("%s: %d slots", what, slots), func() (string, bool) {
		late := w.rounds(t, limited) - changed
		found := w.slots(t, v)
		// A round that ends after the change may have begun before it; the status is
		// that of the first one which began after it at the latest when that one has
		// ended.
		require.True(t, found == slots || late < 2, "%s: %d slots after a whole round\n%s\n%s", what, found, describe(v), w.describeNodes(t, "h200", 8))
		return fmt.Sprintf("%d slots after %d rounds\n%s", found, late, describe(v)), found == slots
	})
}

// describeNodes is the state of the nodes of a kind for people.
func (w *world) describeNodes(t *testing.T, kind string, count int) string {
	t.Helper()
	var lines []string
	for i := range count {
		n := read(t, w, w.node(fmt.Sprintf("%s-%d", kind, i)))
		lines = append(lines, fmt.Sprintf("%s cordoned %t ready %t taints %v", n.Name, n.Spec.Unschedulable, nodeReady(n), n.Spec.Taints))
	}
	return strings.Join(lines, "\n")
}

func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

package acceleratorplacement

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

const tpu corev1.ResourceName = "google.com/tpu"

const (
	tpuTopology    = "cloud.google.com/gke-tpu-topology"
	tpuAccelerator = "cloud.google.com/gke-tpu-accelerator"
)

// tpuNode is a host of a slice of TPU v5p with that topology, with some of its four
// devices taken.
func tpuNode(name, topology string, taken int64) *nodeInfo {
	info := node(name, "", 0, 0)
	info.node.Labels[tpuAccelerator], info.node.Labels[tpuTopology] = "tpu-v5p-slice", topology
	info.node.Status.Allocatable[tpu] = resource.MustParse("4")
	info.node.Status.Capacity = corev1.ResourceList{tpu: resource.MustParse("4")}
	info.allocatable.scalars[tpu], info.requested.scalars = 4, map[corev1.ResourceName]int64{tpu: taken}
	return info
}

// tpuPod is a pod of a stateful set that takes all four devices of a host.
func tpuPod(set *appsv1.StatefulSet, topology string) *corev1.Pod {
	pod := gpuPod("p", 0, set)
	pod.Spec.Containers[0].Resources.Requests[tpu] = resource.MustParse("4")
	pod.Spec.NodeSelector = map[string]string{tpuAccelerator: "tpu-v5p-slice", tpuTopology: topology}
	return pod
}

// The model knows nothing of slices over several hosts. Their pods are placed all the
// same, by what they select.
func TestPodsOfSlicesOverSeveralHostsArePlaced(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: meta("v", nil)}
	ctx := context.Background()
	nodes := []fwk.NodeInfo{tpuNode("part", "4x4x4", 0), tpuNode("taken", "4x4x4", 4), tpuNode("single", "2x2x1", 0), node("gpu", h100, 8, 0), node("cpu", "", 0, 0)}
	for name, c := range map[string]struct {
		accelerator, topology string
		feasible              []string
	}{
		// The topology itself is the business of the scheduler's own filter.
		"no accelerator":                {"", "4x4x4", []string{"part", "single"}},
		"accelerator":                   {"TPUV5P", "4x4x4", []string{"part", "single"}},
		"one host":                      {"", "2x2x1", []string{"single"}},
		"one host with its accelerator": {"TPUV5P", "2x2x1", []string{"single"}},
	} {
		v := variant("v", c.accelerator, 0)
		v.Spec.ScaleTargetRef.APIVersion, v.Spec.ScaleTargetRef.Kind = "apps/v1", "StatefulSet"
		w := newWorld(t, []runtime.Object{set}, v)
		pod := tpuPod(set, c.topology)
		want, status := w.preFilterStateOf(ctx, pod)
		require.True(t, status.IsSuccess(), name)
		require.Equal(t, &v.Spec, &want.variant.Spec, name)
		feasible, best := w.schedule(t, pod, nodes...)
		assert.Equal(t, c.feasible, feasible, name)
		assert.NotEmpty(t, best, name)
		hint, err := w.afterNode(klog.Background(), pod, nil, nodes[0].Node())
		require.NoError(t, err)
		assert.Equal(t, fwk.Queue, hint, name)

		pod.Annotations = map[string]string{v1alpha1.AnnotationAccelerators: "TPUV5P"}
		pod.OwnerReferences = nil
		feasible, _ = w.schedule(t, pod, nodes...)
		assert.Equal(t, c.feasible, feasible, name+", of no variant")
	}
}

func TestTheExplanationSaysThatSlicesSpanHosts(t *testing.T) {
	set := &appsv1.StatefulSet{ObjectMeta: meta("v", nil)}
	v := variant("v", "TPUV5P", 0)
	v.Spec.ScaleTargetRef.APIVersion, v.Spec.ScaleTargetRef.Kind = "apps/v1", "StatefulSet"
	w := newWorld(t, []runtime.Object{set}, v)
	w.handle.nodes = []fwk.NodeInfo{tpuNode("a", "4x4x4", 4), tpuNode("b", "4x4x4", 4), node("unlabelled", "", 8, 0)}
	for topology, text := range map[string]string{
		"2x2x1": "wants 4xTPUV5P: 3 have no product label",
		"4x4x4": "wants 4xTPUV5P: 2 TPUV5P nodes have fewer than 4 free (largest hole 0), 1 has no product label",
	} {
		pod, state := tpuPod(set, topology), newState()
		_, status := w.PreFilter(context.Background(), state, pod, w.handle.nodes)
		require.True(t, status.IsSuccess())
		_, status = w.PostFilter(context.Background(), state, pod, nil)
		assert.Equal(t, text, status.Message())
	}
}

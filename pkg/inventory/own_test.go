package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A node on which a variant's own pods hold devices has such devices, for that variant
// alone, where no label says anything of them.
func TestDevicesThatTheVariantsOwnPodsHold(t *testing.T) {
	tmpl := template(container("nvidia.com/gpu", "2"))
	on := func(node string) *corev1.Pod {
		pod := PodOf(tmpl)
		pod.Name, pod.UID = node, "u"
		pod.Spec.NodeName = node
		return pod
	}
	changed := func(pod *corev1.Pod, change func(*corev1.Pod)) *corev1.Pod {
		change(pod)
		return pod
	}
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		// beside is a second kind of devices.
		beside corev1.ResourceName
		pods   []*corev1.Pod
		want   int
	}{
		"it holds two of eight":      {pods: []*corev1.Pod{on("a")}, want: 3},
		"none is there":              {want: 0},
		"on a node that is not here": {pods: []*corev1.Pod{on("b")}, want: 0},
		"a pod that is done":         {pods: []*corev1.Pod{changed(on("a"), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })}, want: 0},
		"it only waits for the node": {pods: []*corev1.Pod{changed(on("a"), func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status.NominatedNodeName = "", "a"
		})}, want: 0},
		"a pod without devices":             {pods: []*corev1.Pod{changed(on("a"), func(p *corev1.Pod) { p.Spec.Containers = nil })}, want: 0},
		"the labels say another type":       {labels: map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}, pods: []*corev1.Pod{on("a")}, want: 0},
		"the labels contradict each other":  {labels: map[string]string{"karpenter.k8s.aws/instance-gpu-name": "h100", "cloud.google.com/gke-accelerator": "nvidia-l4"}, pods: []*corev1.Pod{on("a")}, want: 0},
		"the devices are about to be cut":   {labels: map[string]string{"nvidia.com/mig.config": "all-1g.10gb"}, pods: []*corev1.Pod{on("a")}, want: 0},
		"the devices are shared":            {labels: map[string]string{"nvidia.com/gpu.replicas": "4"}, pods: []*corev1.Pod{on("a")}, want: 0},
		"more are offered than there are":   {labels: map[string]string{"nvidia.com/gpu.count": "1"}, pods: []*corev1.Pod{on("a")}, want: 0},
		"others are there that are unknown": {beside: "amd.com/gpu", pods: []*corev1.Pod{on("a")}, want: 0},
		"a label of something else":         {labels: map[string]string{"pool": "inference"}, pods: []*corev1.Pod{on("a")}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &corev1.Node{}
			n.Name, n.Labels, n.Annotations = "a", c.labels, c.annotations
			n.Status.Allocatable = list("nvidia.com/gpu", "8", "cpu", "64", "memory", "1Ti", "pods", "100")
			if c.beside != "" {
				n.Status.Allocatable[c.beside] = resource.MustParse("4")
			}
			inv := Read([]*corev1.Node{n}, c.pods)
			r, err := inv.Request(tmpl, PodOf(tmpl), Normalize("H100"), c.pods...)
			require.NoError(t, err)
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.want, slots)
			if c.want > 0 {
				assert.Empty(t, r.Bound)
			}
			other, err := inv.Request(tmpl, PodOf(tmpl), Normalize("H100"))
			require.NoError(t, err)
			slots, err = inv.Cluster.Slots(other)
			require.NoError(t, err)
			assert.Zero(t, slots, "to another variant")
		})
	}
}

// What keeps pods off the node, and what yields on it, counts as on any other.
func TestOnANodeOfItsOwnThePodIsAdmittedAsElsewhere(t *testing.T) {
	tmpl := template(container("nvidia.com/gpu", "1"))
	pod := PodOf(tmpl)
	pod.Spec.NodeName = "a"
	n := &corev1.Node{}
	n.Name = "a"
	n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	n.Status.Allocatable = list("nvidia.com/gpu", "8", "cpu", "64", "memory", "1Ti", "pods", "100")
	inv := Read([]*corev1.Node{n}, []*corev1.Pod{pod})
	r, err := inv.Request(tmpl, PodOf(tmpl), Normalize("H100"), pod)
	require.NoError(t, err)
	assert.Equal(t, "refused", inv.Cluster.Verdict(r, 0).String())
}

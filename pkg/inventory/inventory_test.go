package inventory

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

// h100 is a ready node of eight H100 as GPU discovery labels it.
func h100(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
			"nvidia.com/gpu.memory":  "81559",
		}},
		Status: corev1.NodeStatus{
			Allocatable: list("cpu", "192", "memory", "2000Gi", "pods", "110", "nvidia.com/gpu", "8", "hugepages-2Mi", "0"),
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
}

func container(pairs ...string) corev1.Container {
	return corev1.Container{Name: "server", Resources: corev1.ResourceRequirements{Requests: list(pairs...)}}
}

func boundPod(node string, containers ...corev1.Container) *corev1.Pod {
	return &corev1.Pod{
		Spec:   corev1.PodSpec{NodeName: node, Containers: containers},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

func template(containers ...corev1.Container) *corev1.PodTemplateSpec {
	return &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: containers}}
}

func TestReadCountsThePodsOfAllSchedulers(t *testing.T) {
	done, terminating, pending := boundPod("b", container("nvidia.com/gpu", "1")), boundPod("b", container("nvidia.com/gpu", "2")), boundPod("", container("nvidia.com/gpu", "4"))
	done.Status.Phase = corev1.PodSucceeded
	terminating.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	sidecar := boundPod("b", container("cpu", "1", "memory", "1Gi"))
	sidecar.Spec.InitContainers = []corev1.Container{
		{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways), Resources: corev1.ResourceRequirements{Requests: list("cpu", "500m")}},
		{Name: "fetch", Resources: corev1.ResourceRequirements{Requests: list("memory", "4Gi")}},
	}
	sidecar.Spec.Overhead = list("cpu", "250m")
	elsewhere := boundPod("gone", container("cpu", "1"))

	inv := Read([]*corev1.Node{h100("b"), h100("a")}, []*corev1.Pod{done, terminating, pending, sidecar, elsewhere})

	require.Len(t, inv.Cluster.Nodes, 2)
	assert.Equal(t, "a", inv.Cluster.Nodes[0].Name, "sorted by name")
	assert.Equal(t, inv.Cluster.Nodes[0].Allocatable, inv.Cluster.Nodes[0].Free)
	b := inv.Cluster.Nodes[1]
	assert.Equal(t, capacity.Accelerator("H100"), b.Accelerator)
	assert.Equal(t, placement.Resources{Devices: 8, MilliCPU: 192_000, MemoryBytes: 2000 << 30, Pods: 110}, b.Allocatable)
	assert.Equal(t, placement.Resources{Devices: 6, MilliCPU: 192_000 - 1750, MemoryBytes: 1996 << 30, Pods: 108}, b.Free)
}

func TestReadSaysWhyANodeIsOut(t *testing.T) {
	cases := []struct {
		name   string
		change func(*corev1.Node)
		want   string
	}{
		{"ready", func(*corev1.Node) {}, ""},
		{"cordoned", func(n *corev1.Node) { n.Spec.Unschedulable = true }, "cordoned"},
		{"not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, "not ready"},
		{"silent", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, "not ready"},
		{"deleted", func(n *corev1.Node) { n.DeletionTimestamp = &metav1.Time{} }, "being deleted"},
		{"taken by Karpenter", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "karpenter.sh/disrupted"}} }, "being removed by Karpenter"},
		{"taken by the cluster autoscaler", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler"}} }, "being removed by the cluster autoscaler"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			node := h100("a")
			c.change(node)
			assert.Equal(t, c.want, Read([]*corev1.Node{node}, nil).Cluster.Nodes[0].Out)
		})
	}
}

func TestUnlistedProductsStayUsableAndAreCounted(t *testing.T) {
	node := h100("a")
	node.Labels = map[string]string{AcceleratorLabel: "Frobnicator 9"}
	inv := Read([]*corev1.Node{node}, nil)
	assert.Equal(t, map[string]int{"FROBNICATOR-9": 1}, inv.Unlisted)
	r, err := inv.Request(template(container("nvidia.com/gpu", "8")), Normalize("frobnicator-9"))
	require.NoError(t, err)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 1, slots)
}

func TestAbsurdNodesHoldNothing(t *testing.T) {
	absurd := h100("absurd")
	absurd.Status.Allocatable = list("nvidia.com/gpu", "-3", "cpu", "9E", "memory", "-1", "pods", "110")
	bare := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bare"}}
	inv := Read([]*corev1.Node{absurd, bare}, []*corev1.Pod{boundPod("bare", container("nvidia.com/gpu", "1"))})
	for _, tmpl := range []*corev1.PodTemplateSpec{template(container("nvidia.com/gpu", "1")), template(container("memory", "1Gi"))} {
		r, err := inv.Request(tmpl, Normalize("H100"))
		require.NoError(t, err)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Zero(t, slots)
	}
}

func BenchmarkRead(b *testing.B) {
	nodes := make([]*corev1.Node, 5_000)
	for i := range nodes {
		nodes[i] = h100(fmt.Sprintf("node-%05d", i*7919%5_000))
		if i%7 != 0 {
			delete(nodes[i].Status.Allocatable, "nvidia.com/gpu")
			nodes[i].Labels = map[string]string{"kubernetes.io/arch": "amd64"}
		}
	}
	pods := make([]*corev1.Pod, 50_000)
	for i := range pods {
		pods[i] = boundPod(nodes[i%len(nodes)].Name, container("cpu", "500m", "memory", "1Gi"))
		if i%10 == 0 {
			// A node of Kubernetes 1.35 reports what each container really has.
			pods[i].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "server", Resources: &pods[i].Spec.Containers[0].Resources}}
		}
	}
	tmpl := template(container("nvidia.com/gpu", "8", "cpu", "64"))
	b.ReportAllocs()
	for b.Loop() {
		inv := Read(nodes, pods)
		if _, err := inv.Request(tmpl, Normalize("H100")); err != nil {
			b.Fatal(err)
		}
	}
}

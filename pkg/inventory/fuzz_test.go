package inventory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{
		"NVIDIA-A100-SXM4-80GB-MIG-3g.40gb-SHARED", "G2", "\xff-", "-MIG-1g.5gb", "X_-SHARED-SHARED", "-\tA", "H100-MIG-1g.10gb+me",
		"MI300X-cpx_nps4", "nvidia", "GH200-480GB", "ſhared-ß", "A100-MIG-1g.5gb-MIG-INVALID",
		"GRID-A100-1-10C", "NVIDIA-A10-4Q-SHARED", "RTX6000-Ada-48Q-1B4", "MAX1550-I915", "Trainium2-neurondevice-SHARED", "X-I915-CORE-NEURONDEVICE",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		n := Normalize(raw)
		if !n.Known() {
			assert.Equal(t, Name{Raw: raw}, n, "no name at all")
			return
		}
		require.True(t, n.Covers(n), "it covers itself")
		again := Normalize(n.String())
		n.Raw, again.Raw = "", ""
		assert.Equal(t, n, again, "normalising %q, which is the name of %q", n.String(), raw)
		assert.Equal(t, n.Short, Normalize(string(n.Short)).Short, "the short name names itself")
		assert.Equal(t, n.Accelerator(), Normalize(string(n.Accelerator())).Accelerator(), "and so does the type")
		assert.NotEmpty(t, strings.TrimSpace(raw))
	})
}

// world makes nodes and pods of a fuzzer's bytes: sensible ones, and absurd ones.
type world struct {
	data []byte
	next int
}

func (w *world) pick(n int) int {
	if len(w.data) == 0 {
		return 0
	}
	b := w.data[w.next%len(w.data)]
	w.next++
	// The same byte means something else each time the bytes are read through.
	return (int(b) + w.next/len(w.data)) % n
}

func pickOf[T any](w *world, all ...T) T { return all[w.pick(len(all))] }

func (w *world) quantity() resource.Quantity {
	return resource.MustParse(pickOf(w, "0", "1", "2", "7", "8", "500m", "64", "110", "1Gi", "9E", "9223372036854775807", "1e-9", "99999999999999999999999"))
}

func (w *world) resource() corev1.ResourceName {
	return pickOf[corev1.ResourceName](w, "cpu", "memory", "pods", "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-", "nvidia.com/gpu.shared",
		"amd.com/gpu", "amd.com/cpx_nps4", "aws.amazon.com/neuron", "aws.amazon.com/neuroncore", "huawei.com/Ascend910", "gpu.intel.com/i915", "google.com/tpu", "rdma/hca", "")
}

func (w *world) resources(negative bool) corev1.ResourceList {
	l := corev1.ResourceList{}
	for range w.pick(6) {
		q := w.quantity()
		if negative && w.pick(5) == 0 {
			q.Neg()
		}
		l[w.resource()] = q
	}
	return l
}

func (w *world) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{}}}
	for range w.pick(5) {
		key := pickOf(w, AcceleratorLabel, "nvidia.com/gpu.product", "nvidia.com/gpu.memory", "nvidia.com/gpu.replicas", "nvidia.com/mig-1g.10gb.product", "nvidia.com/mig.config",
			"amd.com/gpu.product-name", "amd.com/gpu.product-name.AMD_Instinct_MI300X", "amd.com/gpu.device-id.74a1", "beta.amd.com/gpu.device-id", "amd.com/gpu.vram",
			"amd.com/gpu.compute-memory-partition", "cloud.google.com/gke-accelerator", "cloud.google.com/gke-gpu-partition-size", "karpenter.k8s.aws/instance-gpu-name", "kubernetes.azure.com/accelerator",
			"cloud.google.com/gke-tpu-accelerator", "cloud.google.com/gke-tpu-topology", "cloud.google.com/gke-max-shared-clients-per-gpu")
		n.Labels[key] = pickOf(w, "NVIDIA-H100-80GB-HBM3", "NVIDIA-A100-SXM4-80GB-MIG-1g.5gb", "Tesla-T4-SHARED", "nvidia", "h100", "mi300x", "74a1", "tpu-v5p-slice", "2x4", "99999999999x99999999999", "GRID-A100-10C", "1g.5gb", "cpx_nps4", "4", "-1", "81559", "192G", "1e400", "NaN", "", "\xff")
	}
	n.Status.Allocatable = w.resources(true)
	if w.pick(3) > 0 {
		n.Status.Allocatable["pods"] = resource.MustParse("110")
	}
	n.Spec.Unschedulable = w.pick(8) == 0
	if w.pick(4) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: pickOf(w, "", "owned", "karpenter.sh/disrupted"), Effect: pickOf(w, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, "Odd")}}
	}
	return n
}

func (w *world) container(negative bool) corev1.Container {
	return corev1.Container{Name: pickOf(w, "a", "b", ""), Resources: corev1.ResourceRequirements{Requests: w.resources(negative), Limits: w.resources(negative)}}
}

func (w *world) pod(i, nodes int, negative bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i))}}
	for range 1 + w.pick(2) {
		p.Spec.Containers = append(p.Spec.Containers, w.container(negative))
	}
	if w.pick(4) == 0 {
		p.Spec.InitContainers = []corev1.Container{w.container(negative)}
	}
	if w.pick(4) == 0 {
		p.Spec.Overhead = w.resources(negative)
	}
	if w.pick(3) == 0 {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", AllocatedResources: w.resources(negative), Resources: &corev1.ResourceRequirements{Requests: w.resources(negative)}}}
	}
	where := fmt.Sprintf("node-%d", w.pick(nodes+1))
	if w.pick(4) == 0 {
		p.Status.NominatedNodeName = where
	} else {
		p.Spec.NodeName = where
	}
	p.Status.Phase = pickOf(w, corev1.PodRunning, corev1.PodPending, corev1.PodSucceeded)
	return p
}

// FuzzRead plays absurd clusters: nothing panics, what is free is at most what there
// is, a pod is counted once, and the order of the lists is of no account.
func FuzzRead(f *testing.F) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 20 {
		seed := make([]byte, 200)
		for i := range seed {
			seed[i] = byte(rng.IntN(256))
		}
		f.Add(seed, seed[0]%2 == 0)
	}
	f.Add([]byte{}, false)
	f.Fuzz(checkWorld)
}

func TestRandomClusters(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	data := make([]byte, 400)
	for range 1_000 {
		for i := range data {
			data[i] = byte(rng.IntN(256))
		}
		checkWorld(t, data, rng.IntN(2) == 0)
		if t.Failed() {
			t.FailNow()
		}
	}
}

func checkWorld(t *testing.T, data []byte, negative bool) {
	w := &world{data: data}
	var nodes []*corev1.Node
	for i := range w.pick(5) {
		nodes = append(nodes, w.node(i))
	}
	var pods []*corev1.Pod
	for i := range w.pick(12) {
		pods = append(pods, w.pod(i, len(nodes), negative))
	}
	inv := Read(nodes, pods)
	require.Len(t, inv.Cluster.Nodes, len(nodes))
	counted := 0
	for i := range inv.Cluster.Nodes {
		n := &inv.Cluster.Nodes[i]
		checkBounds(t, n.Allocatable, n.Free)
		for _, p := range n.Beside {
			assert.LessOrEqual(t, p.Free, p.Allocatable)
			assert.GreaterOrEqual(t, p.Allocatable, 0)
		}
		counted += n.Allocatable.Pods - n.Free.Pods
		assert.NotPanics(t, func() { _ = inv.Reason(i) })
	}
	held := 0
	for _, p := range pods {
		for _, n := range nodes {
			if HeldBy(p) == n.Name {
				held++
			}
		}
	}
	assert.Equal(t, held, counted, "each pod counts once")

	back := Read(reversed(nodes), append(reversed(pods), pods...))
	assert.Equal(t, inv.Cluster, back.Cluster, "backwards, and each pod twice")
	assert.Equal(t, inv.Carried, back.Carried)
	assert.Equal(t, inv.Unlisted, back.Unlisted)
	checkHeld(t, nodes, pods)
	checkRequests(t, w, inv)
}

// checkHeld compares what a pod holds with what Kubernetes' own helper says.
func checkHeld(t *testing.T, nodes []*corev1.Node, pods []*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		for _, node := range nodes {
			devices := new(Names).Carried(node).Devices
			h := holder{extended: []corev1.ResourceName{"rdma/hca"}}
			h.read(pod, devices, 1)
			want := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
			assert.Zero(t, h.cpu.Cmp(want["cpu"]))
			assert.Zero(t, h.memory.Cmp(want["memory"]))
			assert.Zero(t, h.other[0].Cmp(want["rdma/hca"]))
			for i := range devices {
				assert.Zero(t, h.devices[i].Cmp(want[devices[i].Resource]), devices[i].Resource)
			}
		}
	}
}

func checkBounds(t *testing.T, allocatable, free placement.Resources) {
	t.Helper()
	for _, c := range []struct {
		what     string
		all, got int64
	}{
		{"devices", int64(allocatable.Devices), int64(free.Devices)},
		{"CPU", allocatable.MilliCPU, free.MilliCPU},
		{"memory", allocatable.MemoryBytes, free.MemoryBytes},
		{"pods", int64(allocatable.Pods), int64(free.Pods)},
	} {
		assert.GreaterOrEqual(t, c.all, int64(0), c.what)
		assert.LessOrEqual(t, c.got, c.all, c.what)
		assert.GreaterOrEqual(t, c.got, int64(-most), c.what)
	}
}

// checkRequests asks for what a template wants, which is an error or a number.
func checkRequests(t *testing.T, w *world, inv *Inventory) {
	t.Helper()
	tmpl := template(w.container(true))
	wanted := Normalize(pickOf(w, "H100", "H100-80GB", "A100-MIG-1g.5gb", "MI300X", "T4-SHARED", "ASCEND910", "TPUV5P", ""))
	r, err := inv.plain(tmpl, wanted)
	if err != nil {
		return
	}
	slots, err := inv.Cluster.Slots(r)
	if err != nil {
		return
	}
	most := 0
	for i := range inv.Cluster.Nodes {
		most += max(inv.Cluster.Nodes[i].Free.Pods, 0)
	}
	assert.LessOrEqual(t, slots, most)
	assert.GreaterOrEqual(t, slots, 0)
}

func reversed[T any](list []T) []T {
	var back []T
	for i := len(list) - 1; i >= 0; i-- {
		back = append(back, list[i])
	}
	return back
}

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

func TestDevicesByEveryConvention(t *testing.T) {
	cases := []struct {
		name        string
		labels      map[string]string
		allocatable corev1.ResourceList
		want        string
		count       int
	}{
		{"discovery before the cloud", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, list("nvidia.com/gpu", "8"), "A100-80GB-SXM4", 8},
		{"the owner before discovery", map[string]string{AcceleratorLabel: "A100-40GB", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, list("nvidia.com/gpu", "8"), "A100-40GB", 8},
		{"the cloud alone", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "l40s"}, list("nvidia.com/gpu", "4"), "L40S", 4},
		{"memory where the name has none", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"}, list("nvidia.com/gpu", "8"), "H200-140GB", 8},
		{"the vendor's word is no type", map[string]string{"kubernetes.azure.com/accelerator": "nvidia"}, list("nvidia.com/gpu", "8"), "", 8},
		{"no label yet", nil, list("nvidia.com/gpu", "8"), "", 8},
		{"label before the devices", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}, list("nvidia.com/gpu", "0"), "L4", 0},
		{"one slice per device", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "nvidia.com/gpu.memory": "40320"}, list("nvidia.com/gpu", "2"), "A100-80GB-SXM4-MIG-3g.40gb", 2},
		{"slices by name", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, list("nvidia.com/gpu", "0", "nvidia.com/mig-1g.10gb", "7"), "A100-80GB-SXM4-MIG-1g.10gb", 7},
		{"slices on GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, list("nvidia.com/gpu", "7"), "A100-MIG-1g.5gb", 7},
		{"time slices", map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, list("nvidia.com/gpu", "4"), "T4-SHARED", 4},
		{"time slices under their own name", map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}, list("nvidia.com/gpu.shared", "4"), "T4-SHARED", 4},
		{"AMD", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, list("amd.com/gpu", "8"), "MI300X-OAM", 8},
		{"AMD by number", map[string]string{"beta.amd.com/gpu.device-id": "74a5"}, list("amd.com/gpu", "8"), "MI325X", 8},
		{"Gaudi", map[string]string{"habana.ai/product.name": "Intel-Gaudi-2-96GB"}, list("habana.ai/gaudi", "8"), "Gaudi2-96GB", 8},
		{"Intel", map[string]string{"gpu.intel.com/product": "Max_1550"}, list("gpu.intel.com/i915", "2", "gpu.intel.com/i915_monitoring", "1"), "MAX1550", 2},
		{"TPU", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}, list("google.com/tpu", "4"), "TPUV6E", 4},
		{"Neuron", map[string]string{"karpenter.k8s.aws/instance-accelerator-name": "trainium2"}, list("aws.amazon.com/neuron", "16", "aws.amazon.com/neuroncore", "32"), "Trainium2", 16},
		{"a CPU node", map[string]string{"kubernetes.io/arch": "amd64"}, list("cpu", "64"), "", 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var names Names
			carried := names.Carried(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}, Status: corev1.NodeStatus{Allocatable: c.allocatable}})
			got := Devices{}
			if len(carried.Devices) > 0 {
				got = carried.Devices[0]
			}
			assert.Equal(t, c.want, got.Name.String())
			assert.Equal(t, c.count, got.Count)
		})
	}
}

func TestRequestReadsTheTemplate(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a"), h100("b")}, nil)
	limits := template(corev1.Container{Name: "server", Resources: corev1.ResourceRequirements{
		Limits: list("nvidia.com/gpu", "4", "memory", "64Gi"), Requests: list("cpu", "16", "memory", "32Gi"),
	}})

	r, err := inv.Request(limits, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1, MilliCPU: 16_000, MemoryBytes: 32 << 30}, r.Shape)
	assert.Nil(t, r.Refused)
	assert.Empty(t, r.Bound)
	slots, err := inv.Cluster.Slots(r)
	require.NoError(t, err)
	assert.Equal(t, 4, slots)
	assert.Empty(t, limits.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"], "the template is not changed")
}

func TestRequestKnowsWhichNodesRefuse(t *testing.T) {
	tainted, spread, narrow, other := h100("tainted"), h100("labelled"), h100("narrow"), h100("zone")
	tainted.Spec.Taints = []corev1.Taint{
		{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule},
		{Key: "accelerator-scheduler", Value: "owned", Effect: corev1.TaintEffectNoSchedule},
	}
	spread.Labels["pool"] = "inference"
	narrow.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}
	inv := Read([]*corev1.Node{tainted, spread, narrow, other}, nil)
	refusedBy := func(change func(*corev1.PodSpec), accelerator string, candidates int) map[string]string {
		tmpl := template(container("nvidia.com/gpu", "8"))
		change(&tmpl.Spec)
		r, err := inv.Request(tmpl, Normalize(accelerator))
		require.NoError(t, err)
		got := map[string]string{}
		for i, why := range r.Refused {
			if why != "" {
				got[inv.Nodes[i].Name] = why
			}
		}
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, candidates-len(got), slots)
		return got
	}

	assert.Equal(t, map[string]string{"tainted": "taint accelerator-scheduler"}, refusedBy(func(*corev1.PodSpec) {}, "H100", 4))
	tolerate := func(s *corev1.PodSpec) {
		s.Tolerations = []corev1.Toleration{{Key: "accelerator-scheduler", Operator: corev1.TolerationOpExists}}
	}
	assert.Empty(t, refusedBy(tolerate, "H100", 4))
	assert.Empty(t, refusedBy(tolerate, "H100-80GB", 3), "the model knows that H100-NVL of unknown memory is another type")
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"pool": "inference"} }, "H100", 4), 3)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) {
		tolerate(s)
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpDoesNotExist}}}},
		}}}
	}, "H100", 4), 1)
	assert.Len(t, refusedBy(func(s *corev1.PodSpec) { s.NodeName = "zone" }, "H100", 4), 3)
}

func TestRequestNamesWhatItDoesNotModel(t *testing.T) {
	anti := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	together := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{}}}}
	cases := []struct {
		want   string
		change func(*corev1.PodSpec)
	}{
		{"", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.ScheduleAnyway}}
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory}}}}
		}},
		{"pod anti-affinity", func(s *corev1.PodSpec) { s.Affinity = anti }},
		{"pod affinity", func(s *corev1.PodSpec) { s.Affinity = together }},
		{"topology spread", func(s *corev1.PodSpec) {
			s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{WhenUnsatisfiable: corev1.DoNotSchedule}}
		}},
		{"volumes", func(s *corev1.PodSpec) {
			s.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}}}
		}},
		{"host ports", func(s *corev1.PodSpec) { s.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} }},
		{"runtime class", func(s *corev1.PodSpec) { s.RuntimeClassName = ptr.To("kata") }},
		{"ephemeral-storage, hugepages-2Mi, rdma/hca", func(s *corev1.PodSpec) {
			s.Containers = append(s.Containers, container("rdma/hca", "1", "hugepages-2Mi", "4Mi", "ephemeral-storage", "1Gi"))
		}},
	}
	for _, c := range cases {
		t.Run(c.want, func(t *testing.T) {
			tmpl := template(container("nvidia.com/gpu", "1"))
			c.change(&tmpl.Spec)
			r, err := Read(nil, nil).Request(tmpl, Normalize("H100"))
			require.NoError(t, err)
			assert.Equal(t, c.want, r.Bound)
		})
	}
}

func TestRequestRefusesWhatItCannotCount(t *testing.T) {
	inv := Read([]*corev1.Node{h100("a")}, nil)
	claims := template(container())
	claims.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpus"}}
	cases := []struct {
		name     string
		template *corev1.PodTemplateSpec
		wanted   string
		want     string
	}{
		{"no template", nil, "H100", "the shape of a replica is unknown"},
		{"claims", claims, "H100", "resource claims"},
		{"no accelerator", template(container("nvidia.com/gpu", "1")), "", "set spec.accelerator"},
		{"two kinds of devices", template(container("nvidia.com/gpu", "1"), container("amd.com/gpu", "1")), "H100", "both amd.com/gpu and nvidia.com/gpu"},
		{"a slice of another size", template(container("nvidia.com/mig-1g.10gb", "1")), "H100-MIG-3g.40gb", "H100-MIG-3g.40gb is no nvidia.com/mig-1g.10gb"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := inv.Request(c.template, Normalize(c.wanted))
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestASliceIsNoWholeDevice(t *testing.T) {
	sliced, shared := h100("sliced"), h100("shared")
	sliced.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"
	shared.Labels["nvidia.com/gpu.product"] = "NVIDIA-H100-80GB-HBM3-SHARED"
	inv := Read([]*corev1.Node{sliced, shared}, nil)
	for accelerator, want := range map[string]int{"H100": 0, "H100-MIG-3g.40gb": 8, "H100-SHARED": 8} {
		r, err := inv.Request(template(container("nvidia.com/gpu", "1")), Normalize(accelerator))
		require.NoError(t, err)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err)
		assert.Equal(t, want, slots, accelerator)
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

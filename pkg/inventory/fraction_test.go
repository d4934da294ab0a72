package inventory

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// publishedFractions are the resources by which parts of devices are asked for.
var publishedFractions = []struct {
	from      string
	resources []corev1.ResourceName
}{
	{"HAMi v2.10.0, charts/hami/values.yaml and templates/scheduler/device-configmap.yaml", []corev1.ResourceName{
		"nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", "nvidia.com/priority",
		"cambricon.com/vmlu", "cambricon.com/mlu.smlu.vmemory", "cambricon.com/mlu.smlu.vcore",
		"hygon.com/dcunum", "hygon.com/dcumem", "hygon.com/dcucores",
		"metax-tech.com/sgpu", "metax-tech.com/vcore", "metax-tech.com/vmemory",
		"enflame.com/drs-gcu", "enflame.com/gcu-memory", "enflame.com/gcu-core", "enflame.com/vgcu", "enflame.com/vgcu-percentage", "enflame.com/shared-gcu",
		"kunlunxin.com/vxpu", "kunlunxin.com/vxpu-memory",
		"mthreads.com/vgpu", "mthreads.com/sgpu-memory", "mthreads.com/sgpu-core",
		"iluvatar.ai/MR-V100-vgpu", "iluvatar.ai/MR-V100.vMem", "iluvatar.ai/MR-V100.vCore",
		"iluvatar.ai/BI-V150-vgpu", "iluvatar.ai/BI-V150.vMem", "iluvatar.ai/BI-V150.vCore",
		"amd.com/gpucores", "amd.com/gpumem",
		"huawei.com/Ascend910A-memory", "huawei.com/Ascend910B4-1-memory", "huawei.com/Ascend310P-core", "huawei.com/Ascend910C-memory",
	}},
	{"Volcano v1.15.1, pkg/scheduler/api/devices, and volcano-sh/devices v1.1.0, pkg/plugin/nvidia/const.go", []corev1.ResourceName{
		"volcano.sh/gpu-memory", "volcano.sh/gpu-number",
		"volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage", "volcano.sh/vgpu-cores", "volcano.sh/vgpu-number",
	}},
	{"Koordinator v1.8.0, apis/extension/device_share.go", []corev1.ResourceName{
		"koordinator.sh/gpu", "koordinator.sh/gpu.shared", "koordinator.sh/gpu-core", "koordinator.sh/gpu-memory", "koordinator.sh/gpu-memory-ratio",
		"huawei.com/npu-core",
	}},
	{"Alibaba Cloud, gpushare-scheduler-extender v0.2.0, pkg/utils/const.go, and ACK's core_mem", []corev1.ResourceName{
		"aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage", "aliyun.com/gpu-core.tflops",
	}},
	{"Tencent, gpu-manager v1.1.5, README, and TKE's qGPU", []corev1.ResourceName{
		"tencent.com/vcuda-core", "tencent.com/vcuda-memory",
		"tke.cloud.tencent.com/qgpu-core", "tke.cloud.tencent.com/qgpu-memory", "tke.cloud.tencent.com/qgpu-core-greedy",
	}},
	{"Baidu, CCE's cGPU", []corev1.ResourceName{"baidu.com/cgpu_memory", "baidu.com/cgpu_core", "baidu.com/a100_80g_cgpu_memory_percent"}},
	{"AWS, aws-virtual-gpu-device-plugin", []corev1.ResourceName{"k8s.amazonaws.com/vgpu"}},
	{"nos of nebuly, a fork of NVIDIA's device plugin 0.13", []corev1.ResourceName{"nvidia.com/gpu-2gb", "nvidia.com/gpu-10gb"}},
	{"Intel's GPU aware scheduling, until device plugins v0.32", []corev1.ResourceName{"gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles"}},
}

func TestPublishedFractionsAreBoundsWithAName(t *testing.T) {
	for _, published := range publishedFractions {
		for _, name := range published.resources {
			t.Run(string(name), func(t *testing.T) {
				require.True(t, isExtended(name), published.from)
				node := h100("a")
				node.Status.Allocatable[name] = resource.MustParse("640")
				pod := container("nvidia.com/gpu", "1", string(name), "100")
				offered, err := Read([]*corev1.Node{node}, nil).plain(template(pod), Normalize("H100"))
				require.NoError(t, err)
				assert.Contains(t, offered.Bound, string(name)+" (parts of devices)")
				inv := Read([]*corev1.Node{h100("a")}, nil)
				slots, err := inv.Cluster.Slots(offered)
				require.NoError(t, err)
				assert.Zero(t, slots, "a request is of its own cluster")

				beyond, err := inv.plain(template(pod), Normalize("H100"))
				require.NoError(t, err)
				assert.Contains(t, beyond.Bound, string(name)+" (no node offers it)")
				slots, err = inv.Cluster.Slots(beyond)
				require.NoError(t, err)
				assert.Equal(t, 8, slots, "a scheduler that the node tells nothing about hands it out")
			})
		}
	}
	for _, whole := range []corev1.ResourceName{
		"rdma/hca", "rdma/hca_shared_devices_a", "intel.com/qat", "enflame.com/gcu", "kunlunxin.com/xpu", "birentech.com/gpu", "vastaitech.com/va",
		"mthreads.com/gpu", "iluvatar.ai/gpu", "hygon.com/dcu", "dcu.com/gpu", "openshift.io/mlnxnics", "vpc.amazonaws.com/efa", "example.com/remembered",
		"squat.ai/fuse", "smarter-devices/kvm", "qualcomm.com/qaic", "furiosa.ai/rngd", "rebellions.ai/ATOM", "gpu.intel.com/i915_monitoring", "koordinator.sh/rdma",
	} {
		assert.False(t, isFraction(whole), whole)
	}
}

func TestAnnotationsThatChooseDevicesAreBounds(t *testing.T) {
	for _, annotation := range []string{
		"gpu-fraction", "gpu-memory", "gpu-fraction-num-devices", "nvidia.com/use-gputype", "nvidia.com/nouse-gpuuuid", "amd.com/use-gpu-uuid",
		"hygon.com/use-dcutype", "cambricon.com/nouse-mlutype", "hami.io/use-Ascend910B2-uuid", "hami.io/no-use-Ascend910B2-uuid", "volcano.sh/vgpu-use-gpuuuid",
		"vastaitech.com/use-va", "birentech.com/nouse-biren", "nvidia.com/vgpu-mode", "huawei.com/vnpu-mode", "volcano.sh/vgpu-mode", "nvidia.com/numa-bind",
		"scheduling.koordinator.sh/device-allocate-hint", "scheduling.koordinator.sh/gpu-partition-spec",
	} {
		tmpl := template(container("nvidia.com/gpu", "1"))
		tmpl.Annotations = map[string]string{annotation: "0.5", "example.com/use": "type"}
		r, err := Read([]*corev1.Node{h100("a")}, nil).plain(tmpl, Normalize("H100"))
		require.NoError(t, err)
		assert.Equal(t, annotation, r.Bound)
	}
}

// Whatever a resource is called: where pods hold it and no node offers it, it says nothing
// of how many fit; where nodes offer it, or once did, it counts.
func TestAResourceCountsWhereNodesNameIt(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 45))
	word := func() string {
		b := make([]byte, 1+random.IntN(10))
		for i := range b {
			b[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[random.IntN(36)]
		}
		return string(b)
	}
	for range 500 {
		name := corev1.ResourceName(fmt.Sprintf("%s.%s/%s-%s", word(), word(), word(), word()))
		pod := container("nvidia.com/gpu", "1", string(name), "3")
		count := func(offers string, pods ...*corev1.Pod) (int, string) {
			node := h100("a")
			if offers != "" {
				node.Status.Allocatable[name] = resource.MustParse(offers)
			}
			inv := Read([]*corev1.Node{node}, pods)
			r, err := inv.plain(template(pod), Normalize("H100"))
			require.NoError(t, err)
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			return slots, r.Bound
		}
		holds := boundPod("a", pod)
		slots, bound := count("", holds)
		require.Equal(t, 7, slots, "%s", name)
		require.Equal(t, string(name)+" (no node offers it)", bound)
		nominated := boundPod("", pod)
		nominated.Status.NominatedNodeName = "a"
		for _, pods := range [][]*corev1.Pod{nil, {nominated}} {
			if slots, bound = count("", pods...); isFraction(name) {
				require.NotEmpty(t, bound)
				continue
			}
			require.Equal(t, 0, slots, "nobody has shown that it is to be had")
			require.Empty(t, bound)
		}
		slots, _ = count("10", holds)
		require.Equal(t, 2, slots, "10 less 3, by 3")
		slots, _ = count("0", holds)
		require.Equal(t, 0, slots, "its device plugin is gone")
	}
}

// What labels say of the number of devices, as discovery and clouds write them, and how often
// a node offers each.
func TestMoreThanTheNodeHasIsSharing(t *testing.T) {
	type labels = map[string]string
	gfd := func(count, replicas string) labels {
		return labels{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": count, "nvidia.com/gpu.replicas": replicas, "nvidia.com/gpu.sharing-strategy": "none"}
	}
	with := func(l labels, more ...string) labels {
		for i := 0; i < len(more); i += 2 {
			l[more[i]] = more[i+1]
		}
		return l
	}
	cases := []struct {
		name     string
		resource corev1.ResourceName
		offers   string
		labels   labels
		asked    string
		shared   bool
	}{
		{"whole devices, GPU feature discovery 0.20", "nvidia.com/gpu", "8", gfd("8", "1"), "H100", false},
		{"some are not healthy", "nvidia.com/gpu", "7", gfd("8", "1"), "H100", false},
		{"HAMi splits each in ten", "nvidia.com/gpu", "80", gfd("8", "1"), "H100", true},
		{"HAMi, and sharing is disabled in discovery", "nvidia.com/gpu", "80", gfd("8", "0"), "H100", true},
		{"time-slicing that is declared", "nvidia.com/gpu", "80", with(gfd("8", "10"), "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-SHARED", "nvidia.com/gpu.sharing-strategy", "time-slicing"), "H100-SHARED", false},
		{"MPS that is declared", "nvidia.com/gpu", "80", with(gfd("8", "10"), "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-SHARED", "nvidia.com/gpu.sharing-strategy", "mps"), "H100-SHARED", false},
		{"more than is declared", "nvidia.com/gpu", "80", with(gfd("8", "4"), "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-SHARED"), "H100-SHARED", true},
		{"renamed by default", "nvidia.com/gpu.shared", "80", with(gfd("8", "10"), "nvidia.com/gpu.sharing-strategy", "time-slicing"), "H100", false},
		{"slices, strategy single", "nvidia.com/gpu", "56", with(gfd("56", "1"), "nvidia.com/gpu.product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "karpenter.k8s.aws/instance-gpu-count", "8"), "H100-MIG-1g.10gb", false},
		{"slices, strategy mixed", "nvidia.com/mig-1g.10gb", "56", with(gfd("8", "1"), "nvidia.com/mig-1g.10gb.count", "56", "nvidia.com/mig-1g.10gb.replicas", "1"), "H100", false},
		{"more slices than there are", "nvidia.com/mig-1g.10gb", "560", with(gfd("8", "1"), "nvidia.com/mig-1g.10gb.count", "56", "nvidia.com/mig-1g.10gb.replicas", "1"), "H100", true},
		{"Karpenter on AWS", "nvidia.com/gpu", "8", labels{"karpenter.k8s.aws/instance-gpu-name": "h100", "karpenter.k8s.aws/instance-gpu-count": "8"}, "H100", false},
		{"Karpenter on AWS, shared", "nvidia.com/gpu", "32", labels{"karpenter.k8s.aws/instance-gpu-name": "h100", "karpenter.k8s.aws/instance-gpu-count": "8"}, "H100", true},
		{"EKS Auto Mode, shared", "nvidia.com/gpu", "32", labels{"eks.amazonaws.com/instance-gpu-name": "h100", "eks.amazonaws.com/instance-gpu-count": "8"}, "H100", true},
		{"AKS with node autoprovisioning, shared", "nvidia.com/gpu", "4", labels{"karpenter.azure.com/sku-gpu-name": "A100", "karpenter.azure.com/sku-gpu-count": "1"}, "A100", true},
		{"CoreWeave", "nvidia.com/gpu", "16", labels{"gpu.nvidia.com/model": "H100_NVLINK_80GB", "gpu.nvidia.com/count": "8"}, "H100", true},
		{"GKE", "nvidia.com/gpu", "2", labels{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "2"}, "L4", false},
		{"GKE, shared without a word", "nvidia.com/gpu", "8", labels{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "2"}, "L4", true},
		{"GKE, time-sharing", "nvidia.com/gpu", "8", labels{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-accelerator-count": "2", "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing", "cloud.google.com/gke-max-shared-clients-per-gpu": "4"}, "L4-SHARED", false},
		{"GKE, partitions", "nvidia.com/gpu", "14", labels{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-accelerator-count": "2", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, "A100-MIG-1g.5gb", false},
		{"Intel's shared-dev-num, device plugins 0.36", "gpu.intel.com/xe", "20", labels{"gpu.intel.com/product": "Max_1550", "gpu.intel.com/device.count": "2"}, "MAX1550", true},
		{"Trainium", "aws.amazon.com/neuron", "16", labels{"karpenter.k8s.aws/instance-accelerator-name": "trainium2", "karpenter.k8s.aws/instance-accelerator-count": "16"}, "Trainium2", false},
		{"a number that is none", "nvidia.com/gpu", "8", gfd("-3", "many"), "H100", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			node := h100("a")
			node.Labels = c.labels
			delete(node.Status.Allocatable, "nvidia.com/gpu")
			node.Status.Allocatable[c.resource] = resource.MustParse(c.offers)
			inv := Read([]*corev1.Node{node}, nil)
			ask := func(tmpl *corev1.PodTemplateSpec) (int, string) {
				r, err := inv.plain(tmpl, Normalize(c.asked))
				require.NoError(t, err)
				slots, err := inv.Cluster.Slots(r)
				require.NoError(t, err)
				return slots, r.Bound
			}
			tmpl := template(container(string(c.resource), "1"))
			slots, bound := ask(tmpl)
			assert.Positive(t, slots, "%s: %s", inv.Cluster.Nodes[0].Accelerator, inv.Reason(0))
			if !c.shared {
				assert.Empty(t, bound)
				assert.Empty(t, inv.Reason(0))
				return
			}
			assert.Equal(t, string(c.resource)+" (offered more often than there are devices)", bound)
			assert.Contains(t, inv.Reason(0), "it offers "+c.offers+" "+string(c.resource))
			tmpl.Spec.NodeSelector = map[string]string{"pool": "other"}
			_, bound = ask(tmpl)
			assert.Empty(t, bound, "a node to which these pods do not go says nothing of them")
		})
	}
}

// What comes by resource claims is on no node.
func TestDevicesThatNoNodeOffersAreNoSilentZero(t *testing.T) {
	bare := h100("a")
	bare.Labels = nil
	delete(bare.Status.Allocatable, "nvidia.com/gpu")
	tmpl := template(container("nvidia.com/gpu", "1"))
	inv := Read([]*corev1.Node{bare}, nil)
	r, err := inv.plain(tmpl, Normalize("H100"))
	require.NoError(t, err)
	assert.Equal(t, "nvidia.com/gpu (no node offers it; resource claims are not counted)", r.Bound)

	_, err = Read([]*corev1.Node{bare}, []*corev1.Pod{boundPod("a", container("nvidia.com/gpu", "1"))}).plain(tmpl, Normalize("H100"))
	require.ErrorIs(t, err, ErrClaims)
	require.ErrorContains(t, err, "no node offers nvidia.com/gpu, and containers of placed pods hold it (1)")

	gone := bare.DeepCopy()
	gone.Status.Allocatable["nvidia.com/gpu"] = resource.MustParse("0")
	r, err = Read([]*corev1.Node{gone}, []*corev1.Pod{boundPod("a", container("nvidia.com/gpu", "1"))}).plain(tmpl, Normalize("H100"))
	require.NoError(t, err)
	assert.Empty(t, r.Bound, "the node says that it has none")

	// A device plugin that a driver of claims took the place of leaves its 0 behind, and
	// other nodes may have theirs still.
	other := h100("b")
	other.Status.Allocatable["example.com/nic"] = resource.MustParse("1")
	served := func(name string) *corev1.Pod {
		pod := boundPod("a", container("nvidia.com/gpu", "1", name, "1"))
		pod.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			RequestMappings: []corev1.ContainerExtendedResourceRequest{{ContainerName: "c", ResourceName: name, RequestName: "r"}},
		}
		return pod
	}
	for _, c := range []struct {
		name  string
		nodes []*corev1.Node
	}{
		{"nvidia.com/gpu", []*corev1.Node{gone}},
		{"nvidia.com/gpu", []*corev1.Node{gone, other}},
		{"example.com/nic", []*corev1.Node{gone, other}},
	} {
		r, err = Read(c.nodes, []*corev1.Pod{served(c.name)}).plain(template(container("nvidia.com/gpu", "1", c.name, "1")), Normalize("A100"))
		require.NoError(t, err)
		assert.Equal(t, c.name+" (pods hold it by resource claims, which are not counted)", r.Bound)
	}
}

// Labels of which the table knows nothing, also those that begin as known ones do.
func TestUnknownLabelsNeverChangeAReading(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 45))
	var names Names
	for range 500 {
		data := make([]byte, 16)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		node := (&world{data: data}).node(0)
		want := names.Carried(node)
		more := node.DeepCopy()
		if more.Labels == nil {
			more.Labels = map[string]string{}
		}
		for range 1 + random.IntN(4) {
			domain := []string{"nvidia.com/gpu.x", "amd.com/gpu.x", "gpu.intel.com/x", "cloud.google.com/gke-x", "karpenter.k8s.aws/instance-gpu-x", "hami.io/x", "node.koordinator.sh/gpu-x", "example.com/x"}[random.IntN(8)]
			more.Labels[fmt.Sprintf("%s%d", domain, random.IntN(1000))] = []string{"", "8", "true", "NVIDIA-A100-SXM4-80GB", "H200-SHARED", "time-slicing"}[random.IntN(6)]
		}
		require.Equal(t, want, names.Carried(more), "%v", more.Labels)
	}
}

// What device plugins offer of one node of eight devices, as their documentation has it: NVIDIA's k8s-device-plugin 0.17
// (README, shared access), ROCm's k8s-device-plugin (resource_naming_strategy, partitions), HAMi 2.9 (charts/hami/values.yaml),
// volcano-vgpu-device-plugin (README, deviceSplitCount 10), Intel's device plugins 0.32 (shared-dev-num).
func TestWhatADevicePluginOffersOfANode(t *testing.T) {
	a100 := map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "8", "nvidia.com/gpu.memory": "40960"}
	mi300x := map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G"}
	with := func(labels map[string]string, more ...string) map[string]string {
		all := maps.Clone(labels)
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	for name, c := range map[string]struct {
		labels      map[string]string
		offers, ask []string
		asked       string
		slots       int
		bound       string
	}{
		"one device is unhealthy":          {a100, []string{"nvidia.com/gpu", "7"}, []string{"nvidia.com/gpu", "1"}, "A100", 7, ""},
		"nothing is shared":                {with(a100, "nvidia.com/gpu.replicas", "1", "nvidia.com/gpu.sharing-strategy", "none"), []string{"nvidia.com/gpu", "8"}, []string{"nvidia.com/gpu", "2"}, "A100", 4, ""},
		"two devices are cut, six are not": {with(a100, "nvidia.com/mig.strategy", "mixed"), []string{"nvidia.com/gpu", "6", "nvidia.com/mig-3g.20gb", "4"}, []string{"nvidia.com/gpu", "1"}, "A100", 6, ""},
		"MPS is no whole device":           {with(a100, "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-SHARED", "nvidia.com/gpu.replicas", "4", "nvidia.com/gpu.sharing-strategy", "mps"), []string{"nvidia.com/gpu", "32"}, []string{"nvidia.com/gpu", "1"}, "A100", 0, ""},
		"shares of a name of their own":    {with(a100, "nvidia.com/gpu.replicas", "10", "nvidia.com/gpu.sharing-strategy", "time-slicing"), []string{"nvidia.com/gpu.shared", "80"}, []string{"nvidia.com/gpu.shared", "1"}, "A100", 80, ""},
		"a device is not its partitions":   {with(mi300x, "amd.com/gpu.compute-memory-partition", "cpx_nps4"), []string{"amd.com/gpu", "64"}, []string{"amd.com/gpu", "1"}, "MI300X", 0, ""},
		"a partition that is a device":     {with(mi300x, "amd.com/gpu.compute-memory-partition", "spx_nps1"), []string{"amd.com/gpu", "8"}, []string{"amd.com/gpu", "8"}, "MI300X", 1, ""},
		"HAMi's priority":                  {a100, []string{"nvidia.com/gpu", "80"}, []string{"nvidia.com/gpu", "1", "nvidia.com/priority", "1"}, "A100", 80, "nvidia.com/priority (no node offers it)"},
		"HAMi's share in percent":          {a100, []string{"nvidia.com/gpu", "80"}, []string{"nvidia.com/gpu", "1", "nvidia.com/gpumem-percentage", "50"}, "A100", 80, "nvidia.com/gpumem-percentage (no node offers it)"},
		"Volcano's shares alone":           {a100, []string{"volcano.sh/vgpu-number", "80", "volcano.sh/vgpu-memory", "327680"}, []string{"volcano.sh/vgpu-number", "1", "volcano.sh/vgpu-memory", "20480"}, "A100", 16, "volcano.sh/vgpu-memory (parts of devices)"},
		"Intel's shared devices":           {map[string]string{"gpu.intel.com/product": "Max_1550", "gpu.intel.com/device.count": "2"}, []string{"gpu.intel.com/i915", "20"}, []string{"gpu.intel.com/i915", "1"}, "Max_1550", 20, "gpu.intel.com/i915 (offered more often than there are devices)"},
	} {
		node := h100("a")
		node.Labels = c.labels
		delete(node.Status.Allocatable, "nvidia.com/gpu")
		maps.Copy(node.Status.Allocatable, list(c.offers...))
		node.Status.Capacity = node.Status.Allocatable
		inv := Read([]*corev1.Node{node}, nil)
		r, err := inv.plain(template(container(c.ask...)), Normalize(c.asked))
		require.NoError(t, err, name)
		slots, err := inv.Cluster.Slots(r)
		require.NoError(t, err, name)
		assert.Equal(t, c.slots, slots, name)
		if c.bound == "" {
			assert.Empty(t, r.Bound, name)
		} else {
			assert.Contains(t, r.Bound, c.bound, name)
		}
	}
}

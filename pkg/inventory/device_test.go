package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

func labelled(labels map[string]string, allocatable corev1.ResourceList) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: labels}, Status: corev1.NodeStatus{Allocatable: allocatable}}
}

func TestDevicesByEveryConvention(t *testing.T) {
	cases := []struct {
		name        string
		labels      map[string]string
		allocatable corev1.ResourceList
		want        string
		count       int
		source      string
	}{
		{"discovery before the cloud", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "cloud.google.com/gke-accelerator": "nvidia-tesla-a100"}, list("nvidia.com/gpu", "8"), "A100-80GB-SXM4", 8, "nvidia.com/gpu.product"},
		{"the owner before discovery", map[string]string{AcceleratorLabel: "A100-40GB", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, list("nvidia.com/gpu", "8"), "A100-40GB", 8, AcceleratorLabel},
		{"GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, list("nvidia.com/gpu", "8"), "H100-80GB-MEGA", 8, "cloud.google.com/gke-accelerator"},
		{"Karpenter on AWS", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "l40s", "karpenter.k8s.aws/instance-gpu-memory": "49152"}, list("nvidia.com/gpu", "4"), "L40S-48GB", 4, "karpenter.k8s.aws/instance-gpu-name"},
		{"EKS Auto Mode", map[string]string{"eks.amazonaws.com/instance-gpu-name": "h200", "eks.amazonaws.com/instance-gpu-memory": "144384"}, list("nvidia.com/gpu", "8"), "H200-141GB", 8, "eks.amazonaws.com/instance-gpu-name"},
		{"AKS node auto-provisioning", map[string]string{"karpenter.azure.com/sku-gpu-name": "A100", "kubernetes.azure.com/accelerator": "nvidia"}, list("nvidia.com/gpu", "4"), "A100", 4, "karpenter.azure.com/sku-gpu-name"},
		{"CoreWeave", map[string]string{"gpu.nvidia.com/class": "A100_NVLINK_80GB", "gpu.nvidia.com/model": "A100_NVLINK_80GB", "gpu.nvidia.com/vram": "81"}, list("nvidia.com/gpu", "8"), "A100-80GB", 8, "gpu.nvidia.com/class"},
		{"CoreWeave's memory", map[string]string{"gpu.nvidia.com/model": "H200", "gpu.nvidia.com/vram": "141"}, list("nvidia.com/gpu", "8"), "H200-141GB", 8, "gpu.nvidia.com/model"},
		{"DigitalOcean", map[string]string{"doks.digitalocean.com/gpu-model": "mi300x"}, list("amd.com/gpu", "8"), "MI300X", 8, "doks.digitalocean.com/gpu-model"},
		{"the cluster autoscaler on DigitalOcean", map[string]string{"cloud.digitalocean.com/gpu-node": "h100"}, list("nvidia.com/gpu", "8"), "H100", 8, "cloud.digitalocean.com/gpu-node"},
		{"AMD's on DigitalOcean", map[string]string{"cloud.digitalocean.com/gpu-node": "mi300x"}, list("amd.com/gpu", "8"), "MI300X", 8, "cloud.digitalocean.com/gpu-node"},
		{"DigitalOcean without a type", map[string]string{"cloud.digitalocean.com/gpu-node": "true"}, list("nvidia.com/gpu", "8"), "", 8, ""},
		{"the cluster autoscaler on Civo", map[string]string{"civo.com/gpu-node": "nvidia-l40s"}, list("nvidia.com/gpu", "1"), "L40S", 1, "civo.com/gpu-node"},
		{"the cluster autoscaler on AWS", map[string]string{"k8s.amazonaws.com/accelerator": "nvidia-tesla-v100"}, list("nvidia.com/gpu", "8"), "V100", 8, "k8s.amazonaws.com/accelerator"},
		{"OpenShift with a type", map[string]string{"cluster-api/accelerator": "nvidia-t4"}, list("nvidia.com/gpu", "1"), "T4", 1, "cluster-api/accelerator"},
		{"OpenShift with a maker", map[string]string{"cluster-api/accelerator": "nvidia-gpu"}, list("nvidia.com/gpu", "1"), "", 1, ""},
		{"Alibaba Cloud", map[string]string{"aliyun.accelerator/nvidia_name": "Tesla-T4"}, list("nvidia.com/gpu", "2"), "T4", 2, "aliyun.accelerator/nvidia_name"},
		{"Baidu", map[string]string{"baidu/nvidia_name": "a800"}, list("nvidia.com/gpu", "2"), "A800", 2, "baidu/nvidia_name"},
		{"SkyPilot", map[string]string{"skypilot.co/accelerator": "rtxpro6000"}, list("nvidia.com/gpu", "2"), "RTXPRO6000", 2, "skypilot.co/accelerator"},
		{"memory where the name has none", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "143771"}, list("nvidia.com/gpu", "8"), "H200-140GB", 8, "nvidia.com/gpu.product"},
		{"the gigabytes in the name are the host's", map[string]string{"nvidia.com/gpu.product": "NVIDIA-GH200-480GB", "nvidia.com/gpu.memory": "97871"}, list("nvidia.com/gpu", "1"), "GH200-96GB", 1, "nvidia.com/gpu.product"},
		{"memory that makes no sense", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H200", "nvidia.com/gpu.memory": "-1"}, list("nvidia.com/gpu", "8"), "H200", 8, "nvidia.com/gpu.product"},
		{"the maker is no type", map[string]string{"kubernetes.azure.com/accelerator": "nvidia"}, list("nvidia.com/gpu", "8"), "", 8, ""},
		{"no label yet", nil, list("nvidia.com/gpu", "8"), "", 8, ""},
		{"label before the devices", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4"}, list("nvidia.com/gpu", "0"), "L4", 0, "nvidia.com/gpu.product"},
		{"AMD's label before the devices", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "mi300x"}, list("cpu", "8"), "MI300X", 0, "karpenter.k8s.aws/instance-gpu-name"},
		{"one slice per device", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", "nvidia.com/gpu.memory": "40320", "nvidia.com/mig.strategy": "single"}, list("nvidia.com/gpu", "2"), "A100-80GB-SXM4-MIG-3g.40gb", 2, "nvidia.com/gpu.product"},
		{"whole devices where slices could be", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/mig.strategy": "single", "nvidia.com/mig.config": "all-disabled"}, list("nvidia.com/gpu", "2"), "A100-80GB-SXM4", 2, "nvidia.com/gpu.product"},
		{"slices by name", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, list("nvidia.com/gpu", "0", "nvidia.com/mig-1g.10gb", "7"), "A100-80GB-SXM4-MIG-1g.10gb", 7, "nvidia.com/gpu.product"},
		{"slices with a product of their own", map[string]string{"nvidia.com/mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}, list("nvidia.com/mig-1g.10gb", "7"), "", 7, ""},
		{"media slices", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, list("nvidia.com/mig-1g.10gb.me", "1"), "H100-80GB-HBM3-MIG-1g.10gb.me", 1, "nvidia.com/gpu.product"},
		{"slices on GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "cloud.google.com/gke-gpu-partition-size": "1g.5gb"}, list("nvidia.com/gpu", "7"), "A100-MIG-1g.5gb", 7, "cloud.google.com/gke-accelerator"},
		{"time slices", map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "4"}, list("nvidia.com/gpu", "4"), "T4-SHARED", 4, "nvidia.com/gpu.product"},
		{"shared by the strategy", map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.sharing-strategy": "mps"}, list("nvidia.com/gpu", "4"), "T4-SHARED", 4, "nvidia.com/gpu.product"},
		{"shared by the replicas", map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.replicas": "4"}, list("nvidia.com/gpu", "4"), "T4-SHARED", 4, "nvidia.com/gpu.product"},
		{"not shared", map[string]string{"nvidia.com/gpu.product": "Tesla-T4", "nvidia.com/gpu.sharing-strategy": "none", "nvidia.com/gpu.replicas": "1"}, list("nvidia.com/gpu", "4"), "T4", 4, "nvidia.com/gpu.product"},
		{"shared on GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}, list("nvidia.com/gpu", "8"), "L4-SHARED", 8, "cloud.google.com/gke-accelerator"},
		{"shared on GKE by the number of clients", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-max-shared-clients-per-gpu": "2"}, list("nvidia.com/gpu", "2"), "L4-SHARED", 2, "cloud.google.com/gke-accelerator"},
		{"one client on GKE", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-max-shared-clients-per-gpu": "1"}, list("nvidia.com/gpu", "2"), "L4", 2, "cloud.google.com/gke-accelerator"},
		{"virtual devices", map[string]string{"nvidia.com/gpu.product": "GRID-A100-10C", "nvidia.com/gpu.memory": "10240"}, list("nvidia.com/gpu", "1"), "A100-10C", 1, "nvidia.com/gpu.product"},
		{"virtual devices whose type the owner names", map[string]string{AcceleratorLabel: "A10", "nvidia.com/gpu.product": "NVIDIA-A10-4Q"}, list("nvidia.com/gpu", "1"), "A10-4Q", 1, AcceleratorLabel},
		{"time slices under their own name", map[string]string{"nvidia.com/gpu.product": "Tesla-T4"}, list("nvidia.com/gpu.shared", "4"), "T4-SHARED", 4, "nvidia.com/gpu.product"},
		{"shared slices", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, list("nvidia.com/mig-1g.5gb.shared", "4"), "A100-40GB-SXM4-MIG-1g.5gb-SHARED", 4, "nvidia.com/gpu.product"},
		{"slices of devices that are shared otherwise", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB-SHARED"}, list("nvidia.com/mig-1g.5gb", "4"), "A100-40GB-SXM4-MIG-1g.5gb", 4, "nvidia.com/gpu.product"},
		{"slices that are shared under their own name", map[string]string{"nvidia.com/mig-1g.5gb.product": "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb-SHARED", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, list("nvidia.com/mig-1g.5gb", "4"), "A100-40GB-SXM4-MIG-1g.5gb-SHARED", 4, "nvidia.com/mig-1g.5gb.product"},
		{"AMD", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.vram": "192G", "amd.com/gpu.device-id": "74a1"}, list("amd.com/gpu", "8"), "MI300X-192GB-OAM", 8, "amd.com/gpu.product-name"},
		{"AMD by its older labels", map[string]string{"beta.amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, list("amd.com/gpu", "8"), "MI300X-OAM", 8, "beta.amd.com/gpu.product-name"},
		{"AMD by number", map[string]string{"beta.amd.com/gpu.device-id": "74a5"}, list("amd.com/gpu", "8"), "MI325X", 8, "beta.amd.com/gpu.device-id"},
		{"AMD by number and count", map[string]string{"beta.amd.com/gpu.device-id.74a5": "8"}, list("amd.com/gpu", "8"), "MI325X", 8, "beta.amd.com/gpu.device-id.74a5"},
		{"AMD in a virtual machine", map[string]string{"amd.com/gpu.device-id": "74b5"}, list("amd.com/gpu", "8"), "MI300X", 8, "amd.com/gpu.device-id"},
		{"AMD of a number that nobody knows", map[string]string{"amd.com/gpu.device-id": "ffff"}, list("amd.com/gpu", "8"), "", 8, ""},
		{"AMD products that are all one", map[string]string{"amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "4", "amd.com/gpu.product-name.AMD_Instinct_MI300X": "4", "amd.com/gpu.product-name.AMD_Instinct_MI210": "0"}, list("amd.com/gpu", "8"), "MI300X", 8, "amd.com/gpu.product-name.AMD_Instinct_MI300X"},
		{"AMD products of several types", map[string]string{"amd.com/gpu.product-name.AMD_Instinct_MI300X_OAM": "4", "amd.com/gpu.product-name.AMD_Instinct_MI210": "4"}, list("amd.com/gpu", "8"), "", 8, ""},
		{"partitions of AMD by name", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, list("amd.com/cpx_nps4", "64"), "MI300X-OAM-CPX-NPS4", 64, "amd.com/gpu.product-name"},
		{"partitions of AMD as devices", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.compute-memory-partition": "cpx_nps4"}, list("amd.com/gpu", "64"), "MI300X-OAM-CPX-NPS4", 64, "amd.com/gpu.product-name"},
		{"partitions that are whole", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.compute-memory-partition": "spx_nps1"}, list("amd.com/gpu", "8"), "MI300X-OAM", 8, "amd.com/gpu.product-name"},
		{"partitions that are whole, by name", map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, list("amd.com/spx_nps1", "8"), "MI300X-OAM", 8, "amd.com/gpu.product-name"},
		{"Gaudi", map[string]string{"habana.ai/product.name": "Intel-Gaudi-2-96GB"}, list("habana.ai/gaudi", "8"), "Gaudi2-96GB", 8, "habana.ai/product.name"},
		{"Gaudi on AWS", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "gaudi-hl-205"}, list("habana.ai/gaudi", "8"), "Gaudi1", 8, "karpenter.k8s.aws/instance-gpu-name"},
		{"Intel", map[string]string{"gpu.intel.com/product": "Max_1550"}, list("gpu.intel.com/i915", "2", "gpu.intel.com/i915_monitoring", "1"), "MAX1550-I915", 2, "gpu.intel.com/product"},
		{"Intel by its newer driver", map[string]string{"gpu.intel.com/product": "Flex_170"}, list("gpu.intel.com/xe", "2"), "FLEX170", 2, "gpu.intel.com/product"},
		{"Intel by number", map[string]string{"gpu.intel.com/device-id.0380-0bd5.count": "2", "gpu.intel.com/device-id.0380-0bd5.present": "true"}, list("gpu.intel.com/i915", "2"), "MAX1550-I915", 2, "gpu.intel.com/device-id.0380-0bd5.count"},
		{"Intel by the resources of both drivers", map[string]string{"gpu.intel.com/product": "Max_1550"}, list("gpu.intel.com/xe", "1", "gpu.intel.com/i915", "2"), "MAX1550", 1, "gpu.intel.com/product"},
		{"TPU", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}, list("google.com/tpu", "4"), "TPUV6E", 4, "cloud.google.com/gke-tpu-accelerator"},
		{"TPU, a slice of one host", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "2x2"}, list("google.com/tpu", "4"), "TPUV6E", 4, "cloud.google.com/gke-tpu-accelerator"},
		{"TPU, a slice of several hosts", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-tpu-topology": "4x4x4"}, list("google.com/tpu", "4"), "", 4, ""},
		{"TPU, a slice of several hosts, whatever its owner calls it", map[string]string{AcceleratorLabel: "TPUV5P", "cloud.google.com/gke-tpu-topology": "2x4"}, list("google.com/tpu", "4"), "", 4, ""},
		{"TPU of no topology", map[string]string{"cloud.google.com/gke-tpu-accelerator": "tpu-v5p-slice", "cloud.google.com/gke-tpu-topology": "2x-4"}, list("google.com/tpu", "4"), "", 4, ""},
		{"GPUs beside a label of TPUs", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "cloud.google.com/gke-tpu-topology": "4x4x4"}, list("nvidia.com/gpu", "4"), "L4", 4, "nvidia.com/gpu.product"},
		{"Neuron", map[string]string{"karpenter.k8s.aws/instance-accelerator-name": "trainium2"}, list("aws.amazon.com/neuron", "16", "aws.amazon.com/neuroncore", "32"), "Trainium2", 16, "karpenter.k8s.aws/instance-accelerator-name"},
		{"Neuron cores", map[string]string{"eks.amazonaws.com/instance-accelerator-name": "inferentia2"}, list("aws.amazon.com/neuroncore", "32"), "Inferentia2-CORE", 32, "eks.amazonaws.com/instance-accelerator-name"},
		{"Ascend", nil, list("huawei.com/Ascend910B2", "8", "huawei.com/Ascend910B2-memory", "65536"), "ASCEND910B2", 8, "huawei.com/Ascend910B2"},
		{"Cambricon", map[string]string{AcceleratorLabel: "MLU370"}, list("cambricon.com/mlu", "8"), "MLU370", 8, AcceleratorLabel},
		{"MetaX", map[string]string{AcceleratorLabel: "C500"}, list("metax-tech.com/gpu", "8"), "C500", 8, AcceleratorLabel},
		{"a CPU node", map[string]string{"kubernetes.io/arch": "amd64"}, list("cpu", "64"), "", 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := Devices{}
			if carried := new(Names).Carried(labelled(c.labels, c.allocatable)); len(carried.Devices) > 0 {
				got = carried.Devices[0]
			}
			assert.Equal(t, c.want, got.Name.String())
			assert.Equal(t, c.count, got.Count)
			assert.Equal(t, c.source, got.Source)
			if got.Count > 0 {
				assert.Equal(t, c.want == "", got.Why != "", "an unknown type has a reason: %q", got.Why)
			}
			again := Normalize(string(got.Name.Accelerator()))
			assert.Equal(t, got.Name.Accelerator(), again.Accelerator(), "people can write it")
		})
	}
}

func TestLabelsThatContradictEachOther(t *testing.T) {
	cases := []struct {
		name   string
		labels map[string]string
		want   string
		reason string
	}{
		{"discovery looked at the device", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "L4",
			"label nvidia.com/gpu.product says L4 and cloud.google.com/gke-accelerator says T4; the first is believed"},
		{"two clouds", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "a10g", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "",
			"labels contradict each other: cloud.google.com/gke-accelerator says T4, karpenter.k8s.aws/instance-gpu-name says A10G"},
		{"two clouds and discovery", map[string]string{"nvidia.com/gpu.product": "NVIDIA-L4", "karpenter.k8s.aws/instance-gpu-name": "l4", "cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, "L4",
			"label nvidia.com/gpu.product says L4 and cloud.google.com/gke-accelerator says T4; the first is believed"},
		{"a node group's name is no type", map[string]string{"cluster-api/accelerator": "big-pool", "karpenter.k8s.aws/instance-gpu-name": "a10g"}, "A10G",
			"label karpenter.k8s.aws/instance-gpu-name says A10G and cluster-api/accelerator says BIG-POOL; the first is believed"},
		{"the owner contradicts on purpose", map[string]string{AcceleratorLabel: "H100", "nvidia.com/gpu.product": "NVIDIA-L4"}, "H100", ""},
		{"the owner does not make a whole device of a slice", map[string]string{AcceleratorLabel: "H100", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb-SHARED"}, "H100-MIG-3g.40gb-SHARED", ""},
		{"another form is no other type", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb"}, "H100-80GB-HBM3", ""},
		{"slices that are not alike", map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-INVALID"}, "",
			"label nvidia.com/gpu.product says that the slices of its nvidia.com/gpu are not all alike, or not there"},
		{"slices are on their way", map[string]string{"cloud.google.com/gke-accelerator": "nvidia-tesla-a100", "nvidia.com/mig.config": "all-1g.5gb"}, "",
			"nvidia.com/mig.config is all-1g.5gb, and nvidia.com/gpu.product does not say yet whether nvidia.com/gpu counts slices"},
		{"slices are on their way and nothing names them", map[string]string{"nvidia.com/mig.config": "all-1g.5gb"}, "",
			"nvidia.com/mig.config is all-1g.5gb, and nvidia.com/gpu.product is not there yet"},
		{"devices before the label", nil, "", "no label names the type of its nvidia.com/gpu yet"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			carried := new(Names).Carried(labelled(c.labels, list("nvidia.com/gpu", "8")))
			require.Len(t, carried.Devices, 1)
			assert.Equal(t, c.want, carried.Devices[0].Name.Device().String())
			assert.Equal(t, c.reason, carried.Reason())
			n := carried.View(Used{}, nil)
			verdict := n.Type(capacity.Shape{Accelerator: "H100", Devices: 1})
			assert.Equal(t, c.want == "", verdict == placement.AcceleratorUnknown, "unknown is not another type: %s", verdict)
		})
	}
}

func TestANodeWaitsForItsDevices(t *testing.T) {
	carried := new(Names).Carried(labelled(map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-NVL"}, list("cpu", "8", "pods", "110")))
	n := carried.View(Used{}, nil)
	assert.Equal(t, placement.TooFewDevices, n.Verdict(capacity.Shape{Accelerator: "H100", Devices: 1}))
	assert.Equal(t, placement.Fits, n.Verdict(capacity.Shape{MilliCPU: 1000}), "others may go there")
	assert.Equal(t, "label nvidia.com/gpu.product says H100-NVL, and the node offers no nvidia.com/gpu: its device plugin is not there yet, or the devices are served through resource claims", carried.Reason())
}

func TestDevicesOfSeveralKindsOnANode(t *testing.T) {
	h100Labels := map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
	with := func(labels map[string]string, key, value string) map[string]string {
		all := map[string]string{key: value}
		for k, v := range labels {
			all[k] = v
		}
		return all
	}
	cases := []struct {
		name        string
		labels      map[string]string
		allocatable corev1.ResourceList
		want        map[string]int
		reason      string
	}{
		{"slices beside whole devices", h100Labels, list("nvidia.com/gpu", "6", "nvidia.com/mig-1g.10gb", "7", "nvidia.com/mig-3g.40gb", "2"),
			map[string]int{"H100-80GB-HBM3": 6, "H100-MIG-1g.10gb-HBM3": 7, "H100-MIG-3g.40gb-HBM3": 2}, ""},
		{"only slices, of several sizes", h100Labels, list("nvidia.com/gpu", "0", "nvidia.com/mig-1g.10gb", "7", "nvidia.com/mig-3g.40gb", "2"),
			map[string]int{"H100-MIG-1g.10gb-HBM3": 7, "H100-MIG-3g.40gb-HBM3": 2}, ""},
		{"a device that is a slice beside slices", map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-3g.40gb"}, list("nvidia.com/gpu", "2", "nvidia.com/mig-3g.40gb", "2"),
			map[string]int{"": 2, "H100-MIG-3g.40gb-HBM3": 2},
			"label nvidia.com/gpu.product says that nvidia.com/gpu counts slices (H100-80GB-HBM3-MIG-3g.40gb), and the node offers slices by their own names too"},
		{"shared devices beside whole ones", with(h100Labels, "nvidia.com/gpu.replicas", "4"), list("nvidia.com/gpu", "4", "nvidia.com/gpu.shared", "16"),
			map[string]int{"H100-80GB-HBM3": 4, "H100-SHARED-80GB-HBM3": 16}, ""},
		{"shared devices beside shared ones", map[string]string{"nvidia.com/gpu.product": "Tesla-T4-SHARED"}, list("nvidia.com/gpu", "4", "nvidia.com/gpu.shared", "16"),
			map[string]int{"": 4, "T4-SHARED": 16},
			"label nvidia.com/gpu.product says that nvidia.com/gpu is shared, and the node offers nvidia.com/gpu.shared too"},
		{"two makers", with(h100Labels, "gpu.intel.com/product", "Flex_170"), list("nvidia.com/gpu", "8", "gpu.intel.com/i915", "2"),
			map[string]int{"H100-80GB-HBM3": 8, "FLEX170-I915": 2}, ""},
		{"two makers, and a cloud's label means the one that it fits", map[string]string{"karpenter.k8s.aws/instance-gpu-name": "h100"}, list("nvidia.com/gpu", "8", "gpu.intel.com/i915", "2"),
			map[string]int{"H100": 8, "": 2}, "no label names the type of its gpu.intel.com/i915 yet"},
		{"two makers, and an owner's label that may mean either", with(h100Labels, AcceleratorLabel, "our-card"), list("nvidia.com/gpu", "8", "gpu.intel.com/i915", "2"),
			map[string]int{"H100-80GB-HBM3": 8, "": 2},
			"no label names the type of its gpu.intel.com/i915 yet; label inference.optimization/acceleratorName says OUR-CARD and does not say of which of the node's devices"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			carried := new(Names).Carried(labelled(c.labels, c.allocatable))
			n := carried.View(Used{}, nil)
			got := map[string]int{capacity.Device{Accelerator: n.Accelerator, MemoryGiB: n.MemoryGiB, Form: n.Form}.String(): n.Allocatable.Devices}
			for _, p := range n.Beside {
				got[p.Device.String()] = p.Allocatable
				assert.Equal(t, p.Allocatable, p.Free)
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.reason, carried.Reason())
		})
	}
}

func TestDevicesUnderTwoResources(t *testing.T) {
	carried := new(Names).Carried(labelled(map[string]string{"gpu.intel.com/product": "Max_1550"}, list("gpu.intel.com/xe", "2", "gpu.intel.com/i915", "3")))
	xe, i915 := Normalize("MAX1550").Device(), Normalize("MAX1550-I915").Device()
	assert.Empty(t, carried.Elsewhere(xe, "gpu.intel.com/xe"))
	assert.Empty(t, carried.Elsewhere(i915, "gpu.intel.com/i915"))
	assert.Equal(t, "offers them as gpu.intel.com/xe", carried.Elsewhere(xe, "nvidia.com/gpu"))
	d, ok := carried.Under("gpu.intel.com/i915")
	assert.True(t, ok)
	assert.Equal(t, 3, d.Count)
	assert.Equal(t, i915, d.Name.Device())
	_, ok = carried.Under("nvidia.com/gpu")
	assert.False(t, ok)
}

func TestViewTakesWhatPodsHold(t *testing.T) {
	carried := new(Names).Carried(labelled(map[string]string{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
		list("cpu", "64", "memory", "1Ti", "pods", "110", "nvidia.com/gpu", "6", "nvidia.com/mig-1g.10gb", "7")))
	used := Used{MilliCPU: 4000, MemoryBytes: 1 << 30, Pods: 3, Devices: map[corev1.ResourceName]int64{"nvidia.com/gpu": 2, "nvidia.com/mig-1g.10gb": 9, "rdma/hca": 1}}
	scratch := make([]placement.Pool, 0, 4)
	n := carried.View(used, scratch)
	assert.Equal(t, placement.Resources{Devices: 6, MilliCPU: 64_000, MemoryBytes: 1 << 40, Pods: 110}, n.Allocatable)
	assert.Equal(t, placement.Resources{Devices: 4, MilliCPU: 60_000, MemoryBytes: 1<<40 - 1<<30, Pods: 107}, n.Free)
	assert.Equal(t, []placement.Pool{{Device: capacity.Device{Accelerator: "H100-MIG-1g.10gb", Form: "HBM3"}, Allocatable: 7, Free: -2}}, n.Beside)
	assert.Equal(t, 7, carried.View(Used{}, nil).Beside[0].Free, "the description has not changed")
	assert.Zero(t, testing.AllocsPerRun(100, func() { n = carried.View(used, scratch) }))
}

func TestTheLeastMemoryOfATypeOfDevices(t *testing.T) {
	got := LeastMemory([]placement.Node{
		{Accelerator: "A100", MemoryGiB: 80},
		{Accelerator: "A100", MemoryGiB: 40, Beside: []placement.Pool{{Device: capacity.Device{Accelerator: "L4", MemoryGiB: 22}}}},
		{Accelerator: "V100", MemoryGiB: 16}, {Accelerator: "V100"}, {Accelerator: "V100", MemoryGiB: 32}, {},
	})
	assert.Equal(t, map[capacity.Accelerator]int{"A100": 40, "L4": 22, "V100": 0}, got)
}

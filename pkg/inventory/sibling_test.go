package inventory

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// What nodes and pods of device plugins publish where allocatable is not what is there.
func TestAllocatableIsNotWhatIsThere(t *testing.T) {
	type pairs = map[string]string
	const shared = " (offered more often than there are devices)"
	mi300x := func(offers, units, vram string, more pairs) pairs {
		l := pairs{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM", "amd.com/gpu.cu-count": units, "amd.com/gpu.vram": vram, "amd.com/gpu.device-id": "74a1"}
		for k, v := range more {
			l[k] = v
		}
		return l
	}
	hami := func(value string) pairs { return pairs{"hami.io/node-nvidia-register": value} }
	cases := []struct {
		name, place         string
		labels, annotations pairs
		offers              []string
		asked               string
		takes               []string
		slots               int
		bound               string
	}{
		{"AMD in CPX, one resource, no label of the partition", "k8s-device-plugin 1.31, resource_naming_strategy single; GPU operator 1.4, labels by default",
			mi300x("64", "38", "192G", nil), nil, []string{"amd.com/gpu", "64"}, "MI300X", []string{"amd.com/gpu", "1"}, 64, "amd.com/gpu" + shared},
		{"AMD in CPX, by its older labels", "k8s-device-plugin 1.25, cmd/k8s-node-labeller",
			pairs{"beta.amd.com/gpu.product-name": "AMD_Instinct_MI325X", "beta.amd.com/gpu.cu-count": "38"}, nil, []string{"amd.com/gpu", "64"}, "MI325X", []string{"amd.com/gpu", "1"}, 64, "amd.com/gpu" + shared},
		{"AMD in CPX, as the operator's documentation labels it", "GPU operator 1.4, docs/dcm",
			mi300x("64", "38", "24G", pairs{"amd.com/compute-memory-partition": "cpx_nps4"}), nil, []string{"amd.com/gpu", "64"}, "MI300X", []string{"amd.com/gpu", "1"}, 0, ""},
		{"AMD in SPX, as the operator's documentation labels it", "GPU operator 1.4, docs/dcm",
			mi300x("8", "304", "192G", pairs{"amd.com/compute-memory-partition": "spx_nps1"}), nil, []string{"amd.com/gpu", "8"}, "MI300X", []string{"amd.com/gpu", "8"}, 1, ""},
		{"AMD, partitions of several kinds", "k8s-device-plugin 1.31, resource_naming_strategy mixed",
			mi300x("", "38", "24G", nil), nil, []string{"amd.com/cpx_nps4", "32", "amd.com/spx_nps1", "4"}, "MI300X", []string{"amd.com/spx_nps1", "1"}, 4, ""},
		{"HAMi without feature discovery", "HAMi 2.10, docs/developers/protocol.md",
			pairs{"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, hami(`[{"id":"GPU-a","count":10,"devmem":81559,"devcore":100,"type":"NVIDIA-NVIDIA H100 80GB HBM3","health":true},{"id":"GPU-b","index":1,"count":10,"health":true}]`),
			[]string{"nvidia.com/gpu", "20"}, "H100", []string{"nvidia.com/gpu", "1"}, 20, "nvidia.com/gpu" + shared},
		{"HAMi before 2.5", "HAMi 2.4, pkg/util/util.go",
			pairs{"nvidia.com/gpu.product": "Tesla-V100-PCIE-32GB"}, hami("GPU-a,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:GPU-b,10,32768,100,NVIDIA-Tesla V100-PCIE-32GB,0,true:"),
			[]string{"nvidia.com/gpu", "20"}, "V100", []string{"nvidia.com/gpu", "1"}, 20, "nvidia.com/gpu" + shared},
		{"HAMi that splits nothing", "HAMi 2.10, deviceSplitCount 1",
			pairs{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, hami(`[{"id":"GPU-a","count":1},{"id":"GPU-b","count":1}]`), []string{"nvidia.com/gpu", "2"}, "H100", []string{"nvidia.com/gpu", "1"}, 2, ""},
		{"an annotation that cannot be read", "", pairs{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, hami("none"), []string{"nvidia.com/gpu", "8"}, "H100", []string{"nvidia.com/gpu", "1"}, 8, ""},
		{"time slicing, one for each pod", "k8s-device-plugin 0.17, README",
			pairs{"nvidia.com/gpu.product": "NVIDIA-L40S-SHARED", "nvidia.com/gpu.count": "1", "nvidia.com/gpu.replicas": "4"}, nil, []string{"nvidia.com/gpu", "4"}, "L40S-SHARED", []string{"nvidia.com/gpu", "1"}, 4, ""},
		{"MIG, mixed, with nothing whole left", "k8s-device-plugin 0.17, MIG strategies",
			pairs{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.count": "0", "nvidia.com/mig-1g.10gb.count": "56", "nvidia.com/mig.strategy": "mixed"}, nil,
			[]string{"nvidia.com/gpu", "0", "nvidia.com/mig-1g.10gb", "56"}, "A100", []string{"nvidia.com/gpu", "1"}, 0, ""},
		{"Volcano's vGPU", "volcano-sh/devices 1.1, README", pairs{"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, pairs{"volcano.sh/node-vgpu-register": "GPU-a,10,81559,100"},
			[]string{"volcano.sh/vgpu-number", "80", "volcano.sh/vgpu-memory", "652472"}, "H100", []string{"volcano.sh/vgpu-number", "1", "volcano.sh/vgpu-memory", "40000"}, 16,
			"volcano.sh/vgpu-memory (parts of devices), volcano.sh/vgpu-number (parts of devices)"},
		{"Alibaba's cGPU", "gpushare-device-plugin 1.0, docs", pairs{"cgpu": "true", "aliyun.accelerator/nvidia_name": "Tesla-V100-SXM2-32GB"}, nil,
			[]string{"aliyun.com/gpu-mem", "256", "aliyun.com/gpu-count", "8"}, "V100", []string{"aliyun.com/gpu-mem", "12"}, 21, "aliyun.com/gpu-mem (parts of devices)"},
		{"Gaudi, one of eight is not healthy", "Gaudi device plugin 1.22", pairs{"karpenter.k8s.aws/instance-accelerator-name": "gaudi-hl-205", "karpenter.k8s.aws/instance-accelerator-count": "8"}, nil,
			[]string{"habana.ai/gaudi", "7"}, "Gaudi1", []string{"habana.ai/gaudi", "8"}, 0, ""},
		{"a TPU host of four chips", "GKE, docs/how-to/tpus", pairs{"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "2x2", "cloud.google.com/gke-accelerator-count": "4"}, nil,
			[]string{"google.com/tpu", "4"}, "TPU-v6e", []string{"google.com/tpu", "4"}, 1, ""},
		{"Neuron cores beside the devices that have them", "Neuron Kubernetes plugin 2.26", pairs{"karpenter.k8s.aws/instance-accelerator-name": "trainium2", "karpenter.k8s.aws/instance-accelerator-count": "16"}, nil,
			[]string{"aws.amazon.com/neuron", "16", "aws.amazon.com/neuroncore", "128"}, "Trainium2", []string{"aws.amazon.com/neuron", "16"}, 1, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			node := h100("a")
			node.Labels, node.Annotations = c.labels, NodeAnnotations(c.annotations)
			delete(node.Status.Allocatable, "nvidia.com/gpu")
			for i := 0; i < len(c.offers); i += 2 {
				node.Status.Allocatable[corev1.ResourceName(c.offers[i])] = resource.MustParse(c.offers[i+1])
			}
			inv := Read([]*corev1.Node{node}, nil)
			r, err := inv.plain(template(container(c.takes...)), Normalize(c.asked))
			require.NoError(t, err, c.place)
			slots, err := inv.Cluster.Slots(r)
			require.NoError(t, err)
			assert.Equal(t, c.slots, slots, "%s: %s", c.place, inv.Reason(0))
			assert.Equal(t, c.bound, r.Bound, c.place)
		})
	}
}

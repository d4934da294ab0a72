package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// AcceleratorLabel on a node names its accelerator over every other label, as it
// does on a VariantAutoscaling object.
const AcceleratorLabel = v1alpha1.LabelAcceleratorName

// family is one maker's devices: under which resources nodes offer them, and which
// labels say what they are.
type family struct {
	maker maker
	// whole are the resources that count whole devices, the usual one first.
	whole []corev1.ResourceName
	// shared is the resource under which devices are offered several times over.
	shared corev1.ResourceName
	// slices is the prefix of resources that count parts of a device; what follows it
	// is the profile, if isSlice (nil for all) says so.
	slices  string
	isSlice func(profile string) bool
	// named is set where the resource that is called after slices counts whole devices
	// and names their type.
	named bool
	// described is set where labels are called after the resource that they describe:
	// its .product, .memory (in MiB), .replicas and .sharing-strategy.
	described bool
	// overlapping is set where whole devices and their slices are offered at the same
	// time, which Kubernetes counts apart and which are the same silicon.
	overlapping bool
	// products say what the devices are, those first that are believed first.
	products []product
	// partitions are labels with the profile of the slices that a whole resource
	// counts, sharing those that are set where it is offered several times over, and
	// clients those with the number of pods that one device is offered to.
	partitions, sharing, clients []string
	// numbers are labels of clouds with the number of whole devices of the machine.
	numbers []string
	// topology is the label with the dimensions of the slice that a node is part of.
	topology string
	memory   []memory
}

// shares says whether labels, or a selector on them, mean devices that are offered
// several times over.
func (f *family) shares(labels map[string]string) bool {
	return slices.ContainsFunc(f.sharing, func(key string) bool { return labels[key] != "" }) ||
		slices.ContainsFunc(f.clients, func(key string) bool {
			return number(labels[key]) > 1
		})
}

// maker is who makes a family of devices.
type maker uint8

const (
	unknownMaker maker = iota
	nvidia
	amd
	habana
	intel
	google
	aws
	huawei
	cambricon
	metax
)

// level says how much a source of a name is worth. What has looked at the device
// itself knows better than what was told when the node was ordered, and a name is
// better than a number. Lower is better.
type level uint8

const (
	// byNode: the node's own override label.
	byNode level = iota
	// byOverride: an override for the value of any label.
	byOverride
	byDiscovery
	byCloud
	byID
)

// product is a label that says what a family of devices is.
type product struct {
	// key is the label, or, when counted, the prefix of labels each of which is called
	// after a product and has its number of devices as its value.
	key     string
	level   level
	counted bool
	// ids are the products by the device ids that the label has. Nil means that it has
	// names.
	ids map[string]string
	// anyMaker is set for a label that names the devices of whichever maker the node
	// has.
	anyMaker bool
}

// memory is a label with the memory of one device.
type memory struct {
	key string
	// perGiB is how many of its unit are a GiB.
	perGiB float64
	// suffix is the unit after the number, if it is written.
	suffix string
}

// The labels of clouds that name devices of any maker. The label
// kubernetes.azure.com/accelerator is none of them: it names the maker.
var (
	karpenterAWS = product{key: "karpenter.k8s.aws/instance-gpu-name", level: byCloud, anyMaker: true}
	eksAuto      = product{key: "eks.amazonaws.com/instance-gpu-name", level: byCloud, anyMaker: true}
	azure        = product{key: "karpenter.azure.com/sku-gpu-name", level: byCloud, anyMaker: true}
	karpenterAcc = product{key: "karpenter.k8s.aws/instance-accelerator-name", level: byCloud, anyMaker: true}
	eksAutoAcc   = product{key: "eks.amazonaws.com/instance-accelerator-name", level: byCloud, anyMaker: true}
	autoscalerA  = product{key: "k8s.amazonaws.com/accelerator", level: byCloud, anyMaker: true}
	clusterAPI   = product{key: "cluster-api/accelerator", level: byCloud, anyMaker: true}
	skyPilot     = product{key: "skypilot.co/accelerator", level: byCloud, anyMaker: true}
	digitalOcean = product{key: "doks.digitalocean.com/gpu-model", level: byCloud, anyMaker: true}
	// Of these two, the cluster autoscaler's, the value may also be no more than true.
	digitalNode = product{key: "cloud.digitalocean.com/gpu-node", level: byCloud, anyMaker: true}
	civoNode    = product{key: "civo.com/gpu-node", level: byCloud, anyMaker: true}
)

// The labels of clouds that count the devices of the machine, whatever shares them:
//
//   - Karpenter for AWS and EKS Auto Mode, pkg/apis/v1/labels.go of v1, and Karpenter for
//     Azure, whose 0 is a machine without
//   - CoreWeave's, docs/product-instances
//   - GKE's, of its Autopilot and its compute classes
//   - Intel's rules for Node Feature Discovery, v0.36.0, deployments/nfd
const (
	karpenterGPUs         = "karpenter.k8s.aws/instance-gpu-count"
	karpenterAccelerators = "karpenter.k8s.aws/instance-accelerator-count"
	eksAutoGPUs           = "eks.amazonaws.com/instance-gpu-count"
	eksAutoAccelerators   = "eks.amazonaws.com/instance-accelerator-count"
	azureGPUs             = "karpenter.azure.com/sku-gpu-count"
	gkeAccelerators       = "cloud.google.com/gke-accelerator-count"
	coreWeaveGPUs         = "gpu.nvidia.com/count"
	intelGPUs             = "gpu.intel.com/device.count"
)

var (
	karpenterMemory = memory{key: "karpenter.k8s.aws/instance-gpu-memory", perGiB: 1024}
	eksAutoMemory   = memory{key: "eks.amazonaws.com/instance-gpu-memory", perGiB: 1024}
)

// families is the table of conventions.
var families = []family{
	{
		maker:     nvidia,
		whole:     []corev1.ResourceName{"nvidia.com/gpu"},
		shared:    "nvidia.com/gpu.shared",
		slices:    "nvidia.com/mig-",
		described: true,
		products: []product{
			{key: "nvidia.com/gpu.product", level: byDiscovery},
			{key: "cloud.google.com/gke-accelerator", level: byCloud},
			karpenterAWS, eksAuto, azure,
			{key: "gpu.nvidia.com/class", level: byCloud},
			{key: "gpu.nvidia.com/model", level: byCloud},
			{key: "aliyun.accelerator/nvidia_name", level: byCloud},
			{key: "baidu/nvidia_name", level: byCloud},
			digitalOcean, digitalNode, civoNode, autoscalerA, clusterAPI, skyPilot,
		},
		partitions: []string{"cloud.google.com/gke-gpu-partition-size"},
		sharing:    []string{"cloud.google.com/gke-gpu-sharing-strategy"},
		clients:    []string{"cloud.google.com/gke-max-shared-clients-per-gpu"},
		numbers:    []string{gkeAccelerators, karpenterGPUs, eksAutoGPUs, azureGPUs, coreWeaveGPUs},
		memory:     []memory{karpenterMemory, eksAutoMemory, {key: "gpu.nvidia.com/vram", perGiB: 1}},
	},
	{
		maker:   amd,
		whole:   []corev1.ResourceName{"amd.com/gpu"},
		slices:  "amd.com/",
		isSlice: isAMDPartition,
		products: []product{
			{key: "amd.com/gpu.product-name", level: byDiscovery},
			{key: "beta.amd.com/gpu.product-name", level: byDiscovery},
			{key: "amd.com/gpu.product-name.", level: byDiscovery, counted: true},
			{key: "beta.amd.com/gpu.product-name.", level: byDiscovery, counted: true},
			karpenterAWS, eksAuto, azure, digitalOcean, digitalNode, clusterAPI, skyPilot,
			{key: "amd.com/gpu.device-id", level: byID, ids: amdDevices},
			{key: "beta.amd.com/gpu.device-id", level: byID, ids: amdDevices},
			{key: "amd.com/gpu.device-id.", level: byID, ids: amdDevices, counted: true},
			{key: "beta.amd.com/gpu.device-id.", level: byID, ids: amdDevices, counted: true},
		},
		// The labeller of k8s-device-plugin 1.31 and the documentation of AMD's GPU operator 1.4 write it
		// differently, and neither does by default.
		partitions: []string{"amd.com/gpu.compute-memory-partition", "beta.amd.com/gpu.compute-memory-partition", "amd.com/compute-memory-partition"},
		numbers:    []string{karpenterGPUs, eksAutoGPUs, azureGPUs},
		memory: []memory{
			{key: "amd.com/gpu.vram", perGiB: 1, suffix: "G"},
			{key: "beta.amd.com/gpu.vram", perGiB: 1, suffix: "G"},
			karpenterMemory, eksAutoMemory,
		},
	},
	{
		maker: habana,
		whole: []corev1.ResourceName{"habana.ai/gaudi"},
		products: []product{
			{key: "habana.ai/product.name", level: byDiscovery},
			karpenterAWS, karpenterAcc, eksAuto, eksAutoAcc, clusterAPI, skyPilot,
		},
		numbers: []string{karpenterGPUs, karpenterAccelerators, eksAutoGPUs, eksAutoAccelerators},
		memory:  []memory{karpenterMemory, eksAutoMemory},
	},
	{
		maker: intel,
		whole: []corev1.ResourceName{"gpu.intel.com/xe", "gpu.intel.com/i915"},
		products: []product{
			{key: "gpu.intel.com/product", level: byDiscovery},
			clusterAPI, skyPilot,
			// 0380 is the PCI class of these devices.
			{key: "gpu.intel.com/device-id.0380-", level: byID, ids: intelDevices, counted: true},
		},
		numbers: []string{intelGPUs},
	},
	{
		maker:    google,
		whole:    []corev1.ResourceName{"google.com/tpu"},
		products: []product{{key: "cloud.google.com/gke-tpu-accelerator", level: byCloud}, clusterAPI, skyPilot},
		topology: "cloud.google.com/gke-tpu-topology",
		numbers:  []string{gkeAccelerators},
	},
	{
		maker:       aws,
		whole:       []corev1.ResourceName{"aws.amazon.com/neuron", "aws.amazon.com/neurondevice"},
		slices:      "aws.amazon.com/neuroncore",
		isSlice:     func(rest string) bool { return rest == "" },
		overlapping: true,
		numbers:     []string{karpenterAccelerators, eksAutoAccelerators},
		products:    []product{karpenterAcc, eksAutoAcc, clusterAPI, skyPilot},
	},
	{
		maker: huawei, slices: "huawei.com/Ascend", isSlice: isAscend, named: true,
	},
	{
		maker:    cambricon,
		whole:    []corev1.ResourceName{"cambricon.com/mlu"},
		products: []product{clusterAPI, skyPilot},
	},
	{
		maker:    metax,
		whole:    []corev1.ResourceName{"metax-tech.com/gpu"},
		products: []product{clusterAPI, skyPilot},
	},
}

// under is the last word of a resource that is one of several for whole devices, and
// not the first; else empty.
func (f *family) under(resource corev1.ResourceName) string {
	if slices.Index(f.whole, resource) > 0 {
		return lastWord(resource)
	}
	return ""
}

func lastWord(resource corev1.ResourceName) string {
	return string(resource[strings.LastIndexByte(string(resource), '/')+1:])
}

// otherResources are all that under may say.
var otherResources = func() []string {
	var all []string
	for i := range families {
		for j, resource := range families[i].whole {
			if j > 0 {
				all = append(all, lastWord(resource))
			}
		}
	}
	return all
}()

// amdDevices are AMD's products by PCI device id, for nodes without a name, and the same ones as a
// hypervisor passes a whole one on.
var amdDevices = map[string]string{
	"738C": "MI100", "7408": "MI250X", "740C": "MI250X", "740F": "MI210",
	"74A1": "MI300X", "74A2": "MI308X", "74A5": "MI325X", "74A8": "MI308X", "74A9": "MI300X", "75A0": "MI350X", "75A3": "MI355X",
	"74B5": "MI300X", "74B6": "MI308X", "74BC": "MI308X", "74BD": "MI300X", "75B0": "MI350X", "75B3": "MI355X",
}

// intelDevices are Intel's data center products by PCI device id.
var intelDevices = map[string]string{"0BD5": "MAX1550", "0BDA": "MAX1100", "56C0": "FLEX170", "56C1": "FLEX140"}

// isAMDPartition knows the names of compute and memory partitions: cpx_nps4.
func isAMDPartition(profile string) bool {
	return len(profile) > len("cpx_nps") && strings.HasPrefix(profile[1:], "px_nps")
}

// isAscend leaves out the resources that count the memory or the cores of such
// devices, and virtual ones.
func isAscend(rest string) bool {
	return rest != "" && rest[0] >= '0' && rest[0] <= '9' &&
		!strings.Contains(rest, "-memory") && !strings.Contains(rest, "-core") && !strings.Contains(rest, "c.") && !strings.Contains(rest, "-vir")
}

// counts is what a resource counts.
type counts uint8

const (
	wholeDevices counts = iota
	sharedDevices
	deviceSlices
)

// convention is what one resource means.
type convention struct {
	family *family
	counts counts
	// rank orders resources as the table does: family by family, whole devices, then
	// shared ones, then slices.
	rank int
}

// ranksPerFamily is more than the resources of any family in the table.
const ranksPerFamily = 8

// conventions are the resources of the table that have one name each.
var conventions = func() map[corev1.ResourceName]convention {
	all := map[corev1.ResourceName]convention{}
	for i := range families {
		f := &families[i]
		for j, resource := range f.whole {
			all[resource] = convention{family: f, counts: wholeDevices, rank: i*ranksPerFamily + j}
		}
		if f.shared != "" {
			all[f.shared] = convention{family: f, counts: sharedDevices, rank: i*ranksPerFamily + ranksPerFamily - 2}
		}
	}
	return all
}()

// overlaps says whether Kubernetes counts the same devices under another resource
// too.
func overlaps(resource corev1.ResourceName) bool {
	c, ok := conventionOf(resource)
	return ok && c.family.overlapping
}

// conventionOf is what the resource counts. It reports false for one that counts no
// devices.
func conventionOf(resource corev1.ResourceName) (convention, bool) {
	// Most resources of a pod have no domain: cpu, memory.
	if strings.IndexByte(string(resource), '/') < 0 {
		return convention{}, false
	}
	if c, ok := conventions[resource]; ok {
		return c, true
	}
	for i := range families {
		f := &families[i]
		if f.slices == "" {
			continue
		}
		profile, ok := strings.CutPrefix(string(resource), f.slices)
		if !ok || f.isSlice != nil && !f.isSlice(profile) {
			continue
		}
		c := convention{family: f, counts: deviceSlices, rank: (i+1)*ranksPerFamily - 1}
		if f.named || strings.HasPrefix(profile, "spx_") {
			c.counts = wholeDevices
		}
		return c, true
	}
	return convention{}, false
}

// IsDevice reports whether the resource counts accelerators.
func IsDevice(resource corev1.ResourceName) bool {
	_, ok := conventionOf(resource)
	return ok
}

// productOf is the entry of the table for a label that a template's selector may
// name. It reports false for every other label.
func productOf(key string) (product, bool) {
	p, ok := products[key]
	return p, ok
}

var products = func() map[string]product {
	all := map[string]product{AcceleratorLabel: {key: AcceleratorLabel, level: byNode, anyMaker: true}}
	for i := range families {
		for _, p := range families[i].products {
			if !p.counted {
				all[p.key] = p
			}
		}
	}
	return all
}()

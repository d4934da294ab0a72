package inventory

import (
	"math"
	"strconv"
	"strings"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// AcceleratorLabel on a node names its accelerator over every other label, as it
// does on a VariantAutoscaling object.
const AcceleratorLabel = v1alpha1.LabelAcceleratorName

// kind is one vendor's devices: under which resources nodes offer them, and which
// labels name the product.
type kind struct {
	// resources count whole devices; the first one that a node offers is the node's.
	resources []corev1.ResourceName
	// slices is the prefix of resources that count parts of a device; what follows
	// it is the profile.
	slices string
	// shared is the resource under which devices are offered several times over.
	shared corev1.ResourceName
	// labels name the product, in the order in which they are believed: the
	// vendor's own discovery before the clouds' labels.
	labels []string
	// memoryMiB is the label with the memory of one device, if there is one.
	memoryMiB string
}

// kinds is the table of conventions.
var kinds = []kind{
	{
		resources: []corev1.ResourceName{"nvidia.com/gpu"},
		slices:    "nvidia.com/mig-",
		shared:    "nvidia.com/gpu.shared",
		labels: []string{
			"nvidia.com/gpu.product",
			"cloud.google.com/gke-accelerator",
			"karpenter.k8s.aws/instance-gpu-name",
			"eks.amazonaws.com/instance-gpu-name",
			"karpenter.azure.com/sku-gpu-name",
			"gpu.nvidia.com/class",
			"gpu.nvidia.com/model",
		},
		memoryMiB: "nvidia.com/gpu.memory",
	},
	{
		resources: []corev1.ResourceName{"amd.com/gpu"},
		labels: []string{
			"amd.com/gpu.product-name",
			"beta.amd.com/gpu.product-name",
			"karpenter.k8s.aws/instance-gpu-name",
			"eks.amazonaws.com/instance-gpu-name",
			"karpenter.azure.com/sku-gpu-name",
			"amd.com/gpu.device-id",
			"beta.amd.com/gpu.device-id",
		},
	},
	{
		resources: []corev1.ResourceName{"habana.ai/gaudi"},
		labels: []string{
			"habana.ai/product.name",
			"karpenter.k8s.aws/instance-gpu-name",
			"karpenter.k8s.aws/instance-accelerator-name",
			"eks.amazonaws.com/instance-gpu-name",
		},
	},
	{
		resources: []corev1.ResourceName{"gpu.intel.com/xe", "gpu.intel.com/i915"},
		labels:    []string{"gpu.intel.com/product"},
	},
	{
		resources: []corev1.ResourceName{"google.com/tpu"},
		labels:    []string{"cloud.google.com/gke-tpu-accelerator"},
	},
	{
		resources: []corev1.ResourceName{"aws.amazon.com/neuron", "aws.amazon.com/neurondevice"},
		slices:    "aws.amazon.com/neuroncore",
		labels: []string{
			"karpenter.k8s.aws/instance-accelerator-name",
			"eks.amazonaws.com/instance-accelerator-name",
		},
	},
}

// productLabels are all labels of the table, which a template's node selector may
// name.
var productLabels = func() map[string]bool {
	all := map[string]bool{AcceleratorLabel: true}
	for i := range kinds {
		for _, l := range kinds[i].labels {
			all[l] = true
		}
	}
	return all
}()

// amdDevices are the products of AMD's device ids, for nodes without a name.
var amdDevices = map[string]string{
	"738C": "MI100", "740C": "MI250X", "740F": "MI210", "74A1": "MI300X", "74A5": "MI325X", "75A0": "MI350X", "75A3": "MI355X",
}

// kindOf is the kind of device that a resource counts, or nil for any other
// resource.
func kindOf(resource corev1.ResourceName) *kind {
	// Most resources of a pod have no domain: cpu, memory.
	if strings.IndexByte(string(resource), '/') < 0 {
		return nil
	}
	for i := range kinds {
		k := &kinds[i]
		if resource == k.shared || k.slices != "" && strings.HasPrefix(string(resource), k.slices) {
			return k
		}
		for _, r := range k.resources {
			if r == resource {
				return k
			}
		}
	}
	return nil
}

// IsDevice reports whether the resource counts accelerators.
func IsDevice(resource corev1.ResourceName) bool { return kindOf(resource) != nil }

// Names reads the accelerators of nodes. It remembers what it has normalised,
// because clusters have many nodes and few products. It is safe for concurrent use
// and its readers take no lock. The zero Names is ready to use.
type Names struct {
	known atomic.Pointer[map[string]Name]
}

// maxRemembered bounds what Names keeps: labels are data from outside.
const maxRemembered = 4096

// Of is Normalize, remembered.
func (m *Names) Of(raw string) Name {
	known := m.known.Load()
	if known != nil {
		if n, ok := (*known)[raw]; ok {
			return n
		}
	}
	n := Normalize(raw)
	next := map[string]Name{raw: n}
	if known != nil && len(*known) < maxRemembered {
		for k, v := range *known {
			next[k] = v
		}
	}
	// A lost race forgets one entry, which costs nothing but its computation.
	m.known.CompareAndSwap(known, &next)
	return n
}

// Node names the devices that the node offers under the resource, and the label
// that said so. The zero Name means that no label says; a resource that counts no
// devices has no name either.
func (m *Names) Node(labels map[string]string, resource corev1.ResourceName) (name Name, source string) {
	k := kindOf(resource)
	if k == nil || len(labels) == 0 {
		return Name{}, ""
	}
	raw, source := k.product(labels)
	if raw == "" {
		return Name{}, ""
	}
	n := m.Of(raw)
	n.refine(k, labels, resource)
	return n, source
}

// product is the text that names the product, and its label.
func (k *kind) product(labels map[string]string) (raw, source string) {
	if v := labels[AcceleratorLabel]; v != "" {
		return v, AcceleratorLabel
	}
	for _, l := range k.labels {
		v := labels[l]
		if v == "" {
			continue
		}
		if strings.HasSuffix(l, "/gpu.device-id") {
			if v = amdDevices[strings.ToUpper(v)]; v == "" {
				continue
			}
		}
		return v, l
	}
	return "", ""
}

// refine adds what the resource and the other labels say of the device.
func (n *Name) refine(k *kind, labels map[string]string, resource corev1.ResourceName) {
	switch {
	case resource == k.shared:
		n.Shared = true
	case k.slices != "" && strings.HasPrefix(string(resource), k.slices):
		n.MIG = strings.TrimPrefix(string(resource), k.slices)
		if n.MIG == "" {
			n.MIG = "core"
		}
	}
	if n.MIG == "" {
		n.MIG = labels["cloud.google.com/gke-gpu-partition-size"]
	}
	if labels["cloud.google.com/gke-gpu-sharing-strategy"] != "" {
		n.Shared = true
	}
	if k.memoryMiB == "" || n.MIG != "" || n.MemoryGiB != 0 {
		return
	}
	if mib, err := strconv.ParseFloat(labels[k.memoryMiB], 64); err == nil && mib >= 1024 && mib < 1<<24 {
		n.MemoryGiB = int(math.Round(mib / 1024))
	}
}

// Devices is what a node offers of one resource.
type Devices struct {
	// Resource is empty for a node without devices.
	Resource corev1.ResourceName
	// Name is unknown when no label says it.
	Name Name
	// Source is the label that gave the name.
	Source string
	// Count is the allocatable number. It is 0 on a node whose label is there
	// before its devices.
	Count int
}

// Devices reads the devices of a node: of the first resource of the table of which
// the node offers any. Beside lists the device resources that it offers too, which
// a Devices cannot tell apart.
func (m *Names) Devices(node *corev1.Node) (d Devices, beside []corev1.ResourceName) {
	best, bestRank := corev1.ResourceName(""), math.MaxInt
	for resource, quantity := range node.Status.Allocatable {
		rank := rankOf(resource)
		if rank == math.MaxInt || quantity.Value() <= 0 {
			continue
		}
		if rank < bestRank || rank == bestRank && resource < best {
			resource, best, bestRank = best, resource, rank
		}
		if resource != "" {
			beside = append(beside, resource)
		}
	}
	if best == "" {
		return m.announced(node.Labels), nil
	}
	quantity := node.Status.Allocatable[best]
	d = Devices{Resource: best, Count: int(quantity.Value())}
	d.Name, d.Source = m.Node(node.Labels, best)
	return d, beside
}

// announced reads the label of a node whose devices are not there (yet).
func (m *Names) announced(labels map[string]string) Devices {
	for i := range kinds {
		if _, source := kinds[i].product(labels); source != "" {
			resource := kinds[i].resources[0]
			name, source := m.Node(labels, resource)
			return Devices{Resource: resource, Name: name, Source: source}
		}
	}
	return Devices{}
}

// rankOf orders resources by the table: whole devices, then shared ones, then
// slices, kind by kind. MaxInt is a resource that counts no devices.
func rankOf(resource corev1.ResourceName) int {
	if strings.IndexByte(string(resource), '/') < 0 {
		return math.MaxInt
	}
	const perKind = 8
	for i := range kinds {
		k := &kinds[i]
		for j, r := range k.resources {
			if r == resource {
				return i*perKind + j
			}
		}
		if resource == k.shared {
			return i*perKind + perKind - 2
		}
		if k.slices != "" && strings.HasPrefix(string(resource), k.slices) {
			return i*perKind + perKind - 1
		}
	}
	return math.MaxInt
}

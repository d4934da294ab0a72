package agreement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nvidia corev1.ResourceName = "nvidia.com/gpu"
	// link is an extended resource that nobody knows.
	link corev1.ResourceName = "example.com/link"
)

const (
	productLabel = "nvidia.com/gpu.product"
	memoryLabel  = "nvidia.com/gpu.memory"
)

// product is what the labels of a node say of its devices.
type product struct {
	labels   map[string]string
	resource corev1.ResourceName
	// suits are some variants, by name, that may want it.
	suits []string
}

// products are the conventions of vendors and clouds, and what can go wrong with
// them.
var products = []product{
	{map[string]string{productLabel: "NVIDIA-H100-80GB-HBM3", memoryLabel: "81559"}, nvidia, []string{"h100", "h100-80gb", "h100-nvl", "resolved"}},
	{map[string]string{productLabel: "NVIDIA-H100-80GB-HBM3"}, nvidia, []string{"h100", "h100-80gb", "outdated"}},
	{map[string]string{productLabel: "NVIDIA-H100-NVL", memoryLabel: "95830"}, nvidia, []string{"h100", "h100-nvl", "h100-80gb"}},
	{map[string]string{"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"}, nvidia, []string{"h100", "h100-80gb"}},
	{map[string]string{"karpenter.k8s.aws/instance-gpu-name": "h100"}, nvidia, []string{"h100", "h100-80gb"}},
	{map[string]string{productLabel: "NVIDIA-A100-SXM4-80GB", memoryLabel: "81920"}, nvidia, []string{"a100", "a100-80gb", "a100-sxm", "selected", "resolved-80gb", "outdated", "slice", "large-slice"}},
	{map[string]string{productLabel: "A100-SXM4-40GB", memoryLabel: "40960"}, nvidia, []string{"a100", "a100-40gb", "a100-sxm"}},
	{map[string]string{productLabel: "NVIDIA-A100-PCIE-40GB"}, nvidia, []string{"a100", "a100-40gb", "slice"}},
	{map[string]string{"cloud.google.com/gke-accelerator": "nvidia-a100-80gb"}, nvidia, []string{"a100", "a100-80gb", "a100-sxm"}},
	{map[string]string{"gpu.nvidia.com/class": "A100_NVLINK_80GB"}, nvidia, []string{"a100", "a100-80gb"}},
	{map[string]string{productLabel: "NVIDIA-A100-SXM4-80GB-MIG-3g.40gb", memoryLabel: "40448"}, nvidia, []string{"whole-slice", "a100", "a100-40gb"}},
	{map[string]string{productLabel: "NVIDIA-L40S", memoryLabel: "46068"}, nvidia, []string{"l40s"}},
	{map[string]string{productLabel: "NVIDIA-L40S-SHARED"}, nvidia, []string{"l40s", "shared"}},
	{map[string]string{productLabel: "NVIDIA-L40S"}, "nvidia.com/gpu.shared", []string{"shared", "l40s"}},
	{map[string]string{"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, "amd.com/gpu", []string{"mi300x"}},
	{map[string]string{"beta.amd.com/gpu.device-id": "74a1"}, "amd.com/gpu", []string{"mi300x"}},
	{map[string]string{"habana.ai/product.name": "Intel-Gaudi-2-96GB"}, "habana.ai/gaudi", []string{"gaudi2"}},
	{map[string]string{"inference.optimization/acceleratorName": "Acme-Q1"}, nvidia, []string{"unlisted"}},
	{map[string]string{"karpenter.k8s.aws/instance-accelerator-name": "trainium2"}, "aws.amazon.com/neuron", []string{"neuron", "neuron-core", "neuron-device"}},
	{map[string]string{"gpu.intel.com/product": "Max_1550"}, "gpu.intel.com/xe", []string{"xe", "i915"}},
	{map[string]string{"gpu.intel.com/product": "Max_1550"}, "gpu.intel.com/i915", []string{"xe", "i915"}},
	// Names that only some clusters' administrators know.
	{map[string]string{productLabel: "Our-Card"}, nvidia, []string{"renamed", "renamed-selected", "a100", "a100-80gb"}},
	{map[string]string{productLabel: "NVIDIA-L40", memoryLabel: "46068"}, nvidia, []string{"h100", "resolved", "h100-80gb"}},
	// A vendor's label and a cloud's that say different things.
	{map[string]string{productLabel: "NVIDIA-H100-80GB-HBM3", "cloud.google.com/gke-accelerator": "nvidia-l4"}, nvidia, []string{"h100"}},
	// Two clouds' labels that do, and nobody knows better.
	{map[string]string{"karpenter.k8s.aws/instance-gpu-name": "h100", "cloud.google.com/gke-accelerator": "nvidia-l4"}, nvidia, []string{"h100"}},
	// Devices whose label has not arrived.
	{nil, nvidia, []string{"h100"}},
}

// slices are the parts that devices of one node may be cut into.
var slicesOfDevices = []corev1.ResourceName{"nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb", "nvidia.com/mig-3g.40gb"}

// cluster is a random cluster: what the API server would list.
type cluster struct {
	number int
	rng    *rand.Rand
	nodes  []*corev1.Node
	pods   []*corev1.Pod
	quotas []*corev1.ResourceQuota
	// budgets cover pods that may be preempted.
	budgets []*policyv1.PodDisruptionBudget
	// generous is set where admission adds tolerations and default requests.
	generous bool
	serial   int
	// suited are names of variants that may find devices.
	suited []string
	// quietly is set when a node is out for the model and, for a moment, for no filter
	// of Kubernetes: its taint is not there yet. Pods without devices, about which our
	// Filter is not asked, could still go there.
	quietly bool
}

// seed is the same for all clusters; the number makes them different.
const seed = 20_251_120

func newCluster(number int) *cluster {
	c := &cluster{number: number, rng: rand.New(rand.NewPCG(seed, uint64(number)))}
	favourite := pick(c.rng, products...)
	c.suited = favourite.suits
	count := 1 + c.rng.IntN(7)
	if c.chance(3000) {
		// From here on the framework may stop its search before it has seen all nodes.
		count = 110
	}
	for i := range count {
		c.nodes = append(c.nodes, c.node(i, favourite))
	}
	for range c.rng.IntN(2 * len(c.nodes)) {
		c.pods = append(c.pods, c.other())
	}
	c.generous = c.chance(2)
	c.newQuotas()
	c.newBudgets()
	return c
}

// newBudgets are disruption budgets of some clusters that allow no pod to go, or one. Their
// chances are drawn beside those of the rest.
func (c *cluster) newBudgets() {
	rng := rand.New(rand.NewPCG(seed+1, uint64(c.number)))
	for i := range max(0, rng.IntN(5)-2) {
		c.budgets = append(c.budgets, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: pick(rng, namespace, "batch"), Name: fmt.Sprintf("budget-%d", i)},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{"app": pick(rng, "other", "other", "server")},
			}},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: int32(rng.IntN(2))},
		})
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

// chance is true once in so many times.
func (c *cluster) chance(in int) bool { return c.rng.IntN(in) == 0 }

func (c *cluster) node(i int, favourite product) *corev1.Node {
	name := fmt.Sprintf("c%d-n%d", c.number, i)
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:     name,
			corev1.LabelTopologyZone: pick(c.rng, "zone-1", "zone-2"),
			"pool":                   pick(c.rng, "inference", "inference", "batch"),
			"generation":             strconv.Itoa(1 + c.rng.IntN(4)),
		}},
		Status: corev1.NodeStatus{
			Allocatable: corev1.ResourceList{
				corev1.ResourceCPU:              resource.MustParse(pick(c.rng, "4", "7910m", "16", "31850m", "64", "192")),
				corev1.ResourceMemory:           resource.MustParse(pick(c.rng, "14Gi", "31611904Ki", "64Gi", "256G", "1Ti")),
				corev1.ResourcePods:             resource.MustParse(pick(c.rng, "3", "8", "29", "110")),
				corev1.ResourceEphemeralStorage: resource.MustParse(pick(c.rng, "20Gi", "100Gi")),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	c.equip(n, favourite)
	c.mar(n)
	return n
}

// equip gives the node devices and the labels that describe them.
func (c *cluster) equip(n *corev1.Node, favourite product) {
	if c.chance(8) {
		return
	}
	p := favourite
	if c.chance(3) {
		p = pick(c.rng, products...)
		c.suited = append(c.suited[:len(c.suited):len(c.suited)], p.suits...)
	}
	maps.Copy(n.Labels, p.labels)
	offer := func(name corev1.ResourceName, count int64) {
		n.Status.Allocatable[name] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	switch c.rng.IntN(12) {
	case 0: // the label came before the devices
		if c.chance(2) {
			offer(p.resource, 0)
		}
		return
	case 1, 2: // some devices, or all of them, are cut into slices
		offer(nvidia, int64(c.rng.IntN(5)))
		for range 1 + c.rng.IntN(2) {
			offer(pick(c.rng, slicesOfDevices...), int64(1+c.rng.IntN(7)))
		}
	case 3: // one device is shared under its own name
		offer(nvidia, int64(1+c.rng.IntN(4)))
		offer("nvidia.com/gpu.shared", int64(2+c.rng.IntN(7)))
	default:
		offer(p.resource, pick[int64](c.rng, 1, 2, 4, 8, 8, 8))
	}
	if p.resource == "aws.amazon.com/neuron" && c.chance(2) {
		offer("aws.amazon.com/neuroncore", int64(2+c.rng.IntN(15)))
	}
	if p.resource == "aws.amazon.com/neuron" && c.chance(2) {
		offer("aws.amazon.com/neurondevice", int64(1+c.rng.IntN(15)))
	}
	if p.resource == "gpu.intel.com/xe" && c.chance(2) {
		offer("gpu.intel.com/i915", int64(1+c.rng.IntN(4)))
	}
	if c.chance(15) {
		// Two vendors in one box.
		offer("amd.com/gpu", int64(1+c.rng.IntN(4)))
		if c.chance(2) {
			n.Labels["amd.com/gpu.product-name"] = "AMD_Instinct_MI300X_OAM"
		}
	}
}

// mar makes some nodes unfit for some pods, or for all.
func (c *cluster) mar(n *corev1.Node) {
	if c.chance(4) {
		n.Spec.Taints = append(n.Spec.Taints, pick(c.rng,
			corev1.Taint{Key: "wva.llmd.ai/scheduler", Value: profileName, Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: "nvidia.com/gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule},
			corev1.Taint{Key: "team", Value: "other", Effect: corev1.TaintEffectNoExecute},
			corev1.Taint{Key: "team", Value: "other", Effect: corev1.TaintEffectPreferNoSchedule},
		))
	}
	if c.chance(3) {
		n.Status.Allocatable[link] = *resource.NewQuantity(int64(c.rng.IntN(6)), resource.DecimalSI)
	}
	switch c.rng.IntN(30) {
	case 0:
		n.Spec.Unschedulable = true
	case 1: // as kubectl cordon and the node controller leave it
		n.Spec.Unschedulable = true
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	case 2:
		n.Status.Conditions[0].Status = pick(c.rng, corev1.ConditionFalse, corev1.ConditionUnknown)
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	case 3: // the node controller has not seen it yet
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		c.quietly = true
	case 4:
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: pick(c.rng, "ToBeDeletedByClusterAutoscaler", "karpenter.sh/disrupted"), Effect: corev1.TaintEffectNoSchedule})
	case 5:
		n.DeletionTimestamp, n.Finalizers = &metav1.Time{Time: epoch}, []string{"example.com/wait"}
		c.quietly = true
	case 6:
		delete(n.Status.Allocatable, pick(c.rng, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourcePods))
	}
}

// epoch is a time that has passed.
var epoch = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

package localcluster

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// GPUResource is the name under which nodes offer their GPUs.
const GPUResource corev1.ResourceName = "nvidia.com/gpu"

// Taints of nodes with GPUs: the usual one, which keeps pods off that need none, and the one that says that
// the scheduler Owner alone places pods here (two schedulers on one node race).
const (
	GPUTaint       = "nvidia.com/gpu"
	OwnershipTaint = v1alpha1.TaintScheduler
	Owner          = "variant-scheduler"
)

// Shape is a kind of machine as clouds sell it.
type Shape struct {
	InstanceType string
	CPU          string // Kubernetes quantities
	Memory       string
	GPUs         int
	Product      string // value of nvidia.com/gpu.product, as GPU feature discovery writes it
	Family       string
	GPUMemory    int // MiB of one GPU
}

// The machines of the playground. Sources: the clouds' tables for the instance types, NVML for the memory.
var (
	EightH100 = Shape{InstanceType: "p5.48xlarge", CPU: "192", Memory: "2Ti", GPUs: 8, Product: "NVIDIA-H100-80GB-HBM3", Family: "hopper", GPUMemory: 81559}
	EightA100 = Shape{InstanceType: "p4de.24xlarge", CPU: "96", Memory: "1152Gi", GPUs: 8, Product: "NVIDIA-A100-SXM4-80GB", Family: "ampere", GPUMemory: 81920}
	FourL40S  = Shape{InstanceType: "g6e.12xlarge", CPU: "48", Memory: "384Gi", GPUs: 4, Product: "NVIDIA-L40S", Family: "ada-lovelace", GPUMemory: 46068}
	CPUOnly   = Shape{InstanceType: "m6i.8xlarge", CPU: "32", Memory: "128Gi"}
)

// Node returns a node of this shape in a zone, labelled and tainted as in a cluster with NVIDIA's GPU
// operator.
func (s Shape) Node(name, zone string) *corev1.Node {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			corev1.LabelHostname:           name,
			corev1.LabelInstanceTypeStable: s.InstanceType,
			corev1.LabelTopologyZone:       zone,
			corev1.LabelArchStable:         "amd64",
			corev1.LabelOSStable:           "linux",
		}},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse(s.CPU),
				corev1.ResourceMemory: resource.MustParse(s.Memory),
				corev1.ResourcePods:   resource.MustParse("110"),
			},
			NodeInfo: corev1.NodeSystemInfo{Architecture: "amd64", OperatingSystem: "linux", KubeletVersion: "kwok"},
		},
	}
	if s.GPUs > 0 {
		s.addGPUs(node)
	}
	node.Status.Allocatable = node.Status.Capacity.DeepCopy()
	return node
}

func (s Shape) addGPUs(node *corev1.Node) {
	node.Labels["nvidia.com/gpu.present"] = "true"
	node.Labels["nvidia.com/gpu.product"] = s.Product
	node.Labels["nvidia.com/gpu.family"] = s.Family
	node.Labels["nvidia.com/gpu.count"] = strconv.Itoa(s.GPUs)
	node.Labels["nvidia.com/gpu.memory"] = strconv.Itoa(s.GPUMemory)
	node.Status.Capacity[GPUResource] = *resource.NewQuantity(int64(s.GPUs), resource.DecimalSI)
	node.Spec.Taints = []corev1.Taint{
		{Key: GPUTaint, Value: "present", Effect: corev1.TaintEffectNoSchedule},
		{Key: OwnershipTaint, Value: Owner, Effect: corev1.TaintEffectNoSchedule},
	}
}

// createNodes makes the nodes and waits until pods can be scheduled to them, if somebody plays their kubelets.
func (c *Cluster) createNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	for _, node := range c.options.Nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the node %s: %w", node.Name, err)
		}
	}
	if !c.options.Components.Kwok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, readyDeadline)
	defer cancel()
	for _, node := range c.options.Nodes {
		if err := awaitNode(ctx, client, node.Name); err != nil {
			return err
		}
	}
	return nil
}

func awaitNode(ctx context.Context, client kubernetes.Interface, name string) error {
	ticker := time.NewTicker(4 * readyInterval)
	defer ticker.Stop()
	for {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil && takesPods(node) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node %s does not become ready (%w)", name, ctx.Err())
		case <-ticker.C:
		}
	}
}

// takesPods says whether a node is ready and the control plane has seen it.
func takesPods(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable {
			return false
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

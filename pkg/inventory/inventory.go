package inventory

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Inventory is what the nodes of a cluster hold and have free.
type Inventory struct {
	// Cluster is the capacity model's view. Its nodes are those of Nodes, by index.
	Cluster *placement.Cluster
	// Nodes are sorted by name.
	Nodes []*corev1.Node
	// Devices are the devices of the nodes, by index.
	Devices []Devices
	// Unlisted counts the nodes by product name that no rule knows.
	Unlisted map[string]int

	// beside are the resources that some node offers beside its own devices.
	beside map[corev1.ResourceName]string
}

// Read takes stock of the nodes, with the pods of all schedulers. A pod counts on
// its node from when it is bound until it has succeeded or failed, also while it
// terminates. Neither list is changed; the order of both is of no account.
func Read(nodes []*corev1.Node, pods []*corev1.Pod) *Inventory {
	inv := &Inventory{
		Cluster:  &placement.Cluster{Nodes: make([]placement.Node, len(nodes))},
		Nodes:    slices.Clone(nodes),
		Devices:  make([]Devices, len(nodes)),
		Unlisted: map[string]int{},
		beside:   map[corev1.ResourceName]string{},
	}
	slices.SortFunc(inv.Nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	var names Names
	index := make(map[string]int, len(nodes))
	for i, node := range inv.Nodes {
		inv.add(&names, i, node)
		index[node.Name] = i
	}
	for _, pod := range pods {
		if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		if i, ok := index[pod.Spec.NodeName]; ok {
			n := &inv.Cluster.Nodes[i]
			n.Free = n.Free.Minus(held(pod, inv.Devices[i].Resource))
		}
	}
	return inv
}

func (inv *Inventory) add(names *Names, i int, node *corev1.Node) {
	devices, beside := names.Devices(node)
	for _, r := range beside {
		inv.beside[r] = node.Name
	}
	if devices.Name.Unlisted {
		inv.Unlisted[string(devices.Name.Short)]++
	}
	allocatable := node.Status.Allocatable
	holds := placement.Resources{
		Devices:     devices.Count,
		MilliCPU:    allocatable.Cpu().MilliValue(),
		MemoryBytes: allocatable.Memory().Value(),
		Pods:        int(allocatable.Pods().Value()),
	}
	inv.Devices[i] = devices
	inv.Cluster.Nodes[i] = placement.Node{
		Name: node.Name, Accelerator: devices.Name.Accelerator(), Allocatable: holds, Free: holds, Out: Out(node),
	}
}

// held is what a bound pod holds of its node.
func held(pod *corev1.Pod, devices corev1.ResourceName) placement.Resources {
	if r, ok := heldPlainly(pod, devices); ok {
		return r
	}
	return resourcesOf(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true}), devices)
}

// heldPlainly spares the helper's maps for the pods that need no rule: plain
// containers, and no resize under way.
func heldPlainly(pod *corev1.Pod, devices corev1.ResourceName) (placement.Resources, bool) {
	if len(pod.Spec.InitContainers) > 0 || pod.Spec.Resources != nil || pod.Spec.Overhead != nil {
		return placement.Resources{}, false
	}
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Resources != nil {
			return placement.Resources{}, false
		}
	}
	sum := placement.Resources{Pods: 1}
	for i := range pod.Spec.Containers {
		r := resourcesOf(pod.Spec.Containers[i].Resources.Requests, devices)
		r.Pods = 0
		sum = sum.Plus(r)
	}
	return sum, true
}

func resourcesOf(requests corev1.ResourceList, devices corev1.ResourceName) placement.Resources {
	r := placement.Resources{Pods: 1}
	if q, ok := requests[corev1.ResourceCPU]; ok {
		r.MilliCPU = q.MilliValue()
	}
	if q, ok := requests[corev1.ResourceMemory]; ok {
		r.MemoryBytes = q.Value()
	}
	if devices == "" {
		return r
	}
	if q, ok := requests[devices]; ok {
		r.Devices = int(q.Value())
	}
	return r
}

// removalTaints are how node autoscalers mark a node that they are about to remove.
var removalTaints = map[string]string{
	"ToBeDeletedByClusterAutoscaler": "being removed by the cluster autoscaler",
	"karpenter.sh/disrupted":         "being removed by Karpenter",
	"karpenter.sh/disruption":        "being removed by Karpenter",
}

// Out says why a node takes no new pods at all, or empty. A node that has not
// reported its readiness yet is not out by that: the API server taints it.
func Out(node *corev1.Node) string {
	if node.DeletionTimestamp != nil {
		return "being deleted"
	}
	if node.Spec.Unschedulable {
		return "cordoned"
	}
	for i := range node.Spec.Taints {
		if why := removalTaints[node.Spec.Taints[i].Key]; why != "" {
			return why
		}
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return "not ready"
		}
	}
	return ""
}

// besideError says why requests for a resource cannot be counted, or nil.
func (inv *Inventory) besideError(resource corev1.ResourceName) error {
	node, ok := inv.beside[resource]
	if !ok {
		return nil
	}
	return fmt.Errorf("node %s offers %s beside other devices, and nodes with devices of several kinds are not modelled", node, resource)
}

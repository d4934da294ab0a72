package acceleratorplacement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// ownerGrace is how long a pod waits for its owner to be seen. Pods and their
// owners come by different watches, and the pod's can be faster.
const ownerGrace = 10 * time.Second

// otherAccelerator stands for every type but the one that is wanted.
const otherAccelerator capacity.Accelerator = "another"

// want is what one pod with devices wants of a node. It never changes once made.
type want struct {
	pod      *corev1.Pod
	resource corev1.ResourceName
	// name is the variant's accelerator; unknown means that any will do.
	name inventory.Name
	// shape has the accelerator of name, or none.
	shape    capacity.Shape
	outlooks *outlooks
}

// Clone implements fwk.StateData.
func (w *want) Clone() fwk.StateData { return w }

// on is the shape as it counts on this node: without a wanted type, it takes the
// node's.
func (w *want) on(n *placement.Node) capacity.Shape {
	s := w.shape
	if !w.name.Known() {
		s.Accelerator = n.Accelerator
	}
	return s
}

// wantOf finds the pod's variant and what it wants. The status is an error, which
// brings the pod back after a short back-off as no event would, while something is
// not known yet that must be.
func (p *Plugin) wantOf(ctx context.Context, pod *corev1.Pod, takes inventory.Takes) (*want, *fwk.Status) {
	w := &want{
		pod:      pod,
		resource: takes.Resource,
		shape:    capacity.Shape{Devices: takes.Devices, Pods: 1, MilliCPU: takes.MilliCPU, MemoryBytes: takes.MemoryBytes},
		outlooks: p.variants.outlooks(),
	}
	if !p.variants.known() {
		return nil, fwk.NewStatus(fwk.Error, "the VariantAutoscaling objects are not read yet")
	}
	owners, complete := p.owners.of(pod)
	if !complete && time.Since(pod.CreationTimestamp.Time) < ownerGrace {
		return nil, fwk.NewStatus(fwk.Error, "the owners of the pod are not seen yet")
	}
	variant := p.variants.of(owners)
	if variant == nil {
		return w, nil
	}
	name, err := acceleratorOf(variant, pod)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("The variant's accelerator is ambiguous; its pods go by their own node selectors",
			"plugin", Name, "variant", klog.KObj(variant), "reason", err.Error())
		return w, nil
	}
	w.name, w.shape.Accelerator = name, name.Accelerator()
	return w, nil
}

// acceleratorOf is the variant's accelerator: what its object or its pods say, else
// what the autoscaler has found. An unknown name means that nothing says.
func acceleratorOf(variant *v1alpha1.VariantAutoscaling, pod *corev1.Pod) (inventory.Name, error) {
	template := &corev1.PodTemplateSpec{Spec: pod.Spec}
	name, _, err := inventory.Resolve(variant.Spec.Accelerator, variant.Labels[v1alpha1.LabelAcceleratorName], template, nil)
	if err != nil || name.Known() {
		return name, err
	}
	if now := variant.Status.CurrentAlloc; now != nil {
		name = inventory.Normalize(now.Accelerator)
	}
	return name, nil
}

// view is the node as the capacity model sees it, for what this pod wants. It takes
// everything from the node that is handed in and allocates nothing.
func (p *Plugin) view(w *want, info fwk.NodeInfo) placement.Node {
	node, allocatable, requested := info.Node(), info.GetAllocatable(), info.GetRequested()
	n := placement.Node{
		Name: node.Name,
		Allocatable: placement.Resources{
			Devices:     int(allocatable.GetScalarResources()[w.resource]),
			MilliCPU:    allocatable.GetMilliCPU(),
			MemoryBytes: allocatable.GetMemory(),
			Pods:        allocatable.GetAllowedPodNumber(),
		},
		Out: inventory.Out(node),
	}
	n.Free = n.Allocatable.Minus(placement.Resources{
		Devices:     int(requested.GetScalarResources()[w.resource]),
		MilliCPU:    requested.GetMilliCPU(),
		MemoryBytes: requested.GetMemory(),
		Pods:        len(info.GetPods()),
	})
	n.Accelerator = p.accelerator(w, node)
	return n
}

// accelerator is the node's type in terms of what is wanted. A node whose type no
// label names is unknown to those who want a type, and like any to the others.
func (p *Plugin) accelerator(w *want, node *corev1.Node) capacity.Accelerator {
	have, _ := p.names.Node(node.Labels, w.resource)
	switch {
	case !w.name.Known() && !have.Known():
		return otherAccelerator
	case !w.name.Known():
		return have.Accelerator()
	case w.name.Covers(have):
		return w.shape.Accelerator
	case have.Known():
		return otherAccelerator
	default:
		return ""
	}
}

// candidates are the nodes that have devices of the wanted type, free or not.
func (p *Plugin) candidates(w *want, nodes []fwk.NodeInfo) sets.Set[string] {
	found := sets.New[string]()
	for _, info := range nodes {
		if info.GetAllocatable().GetScalarResources()[w.resource] <= 0 {
			continue
		}
		if node := info.Node(); p.accelerator(w, node) == w.shape.Accelerator {
			found.Insert(node.Name)
		}
	}
	return found
}

// explain counts what keeps the pod off each node, whichever plugin said so.
func (p *Plugin) explain(w *want, pod *corev1.Pod, nodes []fwk.NodeInfo) placement.Explanation {
	e := placement.Explanation{Shape: w.shape}
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	for _, info := range nodes {
		n := p.view(w, info)
		shape := w.on(&n)
		verdict := n.Type(shape)
		if verdict == placement.Fits && inventory.Refusal(pod, info.Node(), affinity) != "" {
			verdict = placement.Refused
		} else if verdict == placement.Fits {
			verdict = n.Room(shape)
		}
		e.Count(&n, verdict)
	}
	return e
}

// hasDevices says whether the node offers accelerators of any kind.
func hasDevices(info fwk.NodeInfo) bool {
	for resource, count := range info.GetAllocatable().GetScalarResources() {
		if count > 0 && inventory.IsDevice(resource) {
			return true
		}
	}
	return false
}

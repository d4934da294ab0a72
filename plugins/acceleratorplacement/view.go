package acceleratorplacement

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// pools is the room for devices that a node has beside its first ones, before a view
// of it has to allocate.
const pools = 8

// view is a node as the capacity model sees it, and the shape of a pod on it.
type view struct {
	node  placement.Node
	shape capacity.Shape
	// order is the place of the node's devices in the pod's order.
	order int
	// accepted is false where the node has no devices that the pod accepts.
	accepted bool
	// discouraged is set where a taint of the node asks the pod to go elsewhere.
	discouraged bool
}

// tier is what of the score comes before the loss: the order, and of one place in it
// first the nodes that do not ask the pod to go elsewhere.
func (v *view) tier() int {
	if v.discouraged {
		return 2*v.order + 1
	}
	return 2 * v.order
}

// verdict is the model's. A node without devices that the pod accepts is of the wrong
// type, or of one that nobody names.
func (v *view) verdict() placement.Verdict {
	if !v.accepted && v.node.Type(v.shape) != placement.AcceleratorUnknown {
		return placement.WrongAccelerator
	}
	return v.node.Verdict(v.shape)
}

// view takes everything from the node that is handed in; scratch is where its devices
// beside the first are put.
func (p *Plugin) view(w *preFilterState, info fwk.NodeInfo, scratch []placement.Pool) (v view) {
	what := p.catalog.of(p.names, info.Node())
	v.node = w.nodeOf(what, info, scratch)
	pool, order, ok := w.choose(what)
	v.order, v.accepted, v.discouraged = order, ok, what.Discourages(w.pod.Spec.Tolerations)
	switch {
	case ok && (w.any() || what.devices[pool].Accelerator == ""):
		v.shape = w.of(named(&v.node, what.devices[pool], pool))
	case !w.any():
		v.shape = w.of(w.devices[order])
	default:
		v.shape = w.of(capacity.Device{Accelerator: placement.Unnamed})
	}
	return v
}

// nodeOf is the node as the pod finds it.
func (w *preFilterState) nodeOf(what *carried, info fwk.NodeInfo, scratch []placement.Pool) placement.Node {
	n := nodeOf(what, info, scratch)
	n.Out = w.out(what)
	return n
}

// nodeOf is the node with what its pods leave free.
func nodeOf(what *carried, info fwk.NodeInfo, scratch []placement.Pool) placement.Node {
	requested := info.GetRequested()
	return what.View(inventory.Used{
		MilliCPU:    requested.GetMilliCPU(),
		MemoryBytes: requested.GetMemory(),
		Pods:        len(info.GetPods()),
		Devices:     requested.GetScalarResources(),
	}, scratch)
}

// named gives devices that nothing names a name, so that a pod that takes any can be
// counted on them, and returns what they are.
func named(n *placement.Node, device capacity.Device, pool int) capacity.Device {
	if device.Accelerator != "" {
		return device
	}
	if pool == 0 {
		n.Accelerator = placement.Unnamed
	} else {
		n.Beside[pool-1].Device.Accelerator = placement.Unnamed
	}
	device.Accelerator = placement.Unnamed
	return device
}

// explanation is why a pod found no node.
type explanation struct {
	text string
	// reason is that of the nodes that come nearest, one of a closed set.
	reason string
}

// Reasons beside the verdicts of the model.
const (
	reasonInvalid = "invalid request"
	reasonOthers  = "another plugin"
	reasonNoNodes = "no nodes"
)

// nearest are the verdicts in the order in which they say how near a node comes.
var nearest = []placement.Verdict{
	placement.Fits, placement.TooFewFree, placement.TooLittleCPU, placement.TooLittleMemory, placement.NoPodSlot, placement.TooLittleOther,
	placement.NodeOut, placement.Refused, placement.TooFewDevices, placement.AcceleratorUnknown, placement.WrongAccelerator,
}

// explain counts what keeps the pod off each node, whichever plugin said so. It is
// on the path of the scheduling of pods, and so allocates nothing for a node.
func explain(w *preFilterState, nodes *snapshot) explanation {
	affinity := nodeaffinity.GetRequiredNodeAffinity(w.pod)
	devices := w.devices
	if w.any() {
		// Devices that nothing more is asked of are called by their resource.
		devices = []capacity.Device{{Accelerator: capacity.Accelerator(w.resource)}}
	}
	said := explanation{reason: reasonNoNodes}
	best := len(nearest)
	scratch := make([]placement.Pool, pools)
	for i, device := range devices {
		e := placement.Explanation{Shape: w.of(device), Other: w.other}
		e.Nodes[placement.WrongAccelerator] = nodes.others
		for i, info := range nodes.infos {
			n := w.nodeOf(nodes.what[i], info, scratch)
			verdict := w.verdictOn(&n, nodes.what[i], e.Shape, affinity)
			if verdict == placement.Fits && w.lacks(info) {
				verdict = placement.TooLittleOther
			}
			e.Count(&n, verdict)
		}
		if i > 0 {
			said.text += "; "
		}
		said.text += e.String()
		for rank, verdict := range nearest[:best] {
			if e.Nodes[verdict] > 0 {
				best, said.reason = rank, verdict.String()
				break
			}
		}
	}
	if best < len(nearest) && nearest[best] == placement.Fits {
		said.reason = reasonOthers
	}
	return said
}

// verdictOn is the verdict on the node for one of the types that the pod accepts,
// with what its own taints and the pod's affinity say.
func (w *preFilterState) verdictOn(n *placement.Node, what *carried, shape capacity.Shape, affinity nodeaffinity.RequiredNodeAffinity) placement.Verdict {
	pool := what.pool(shape.Device(), w.resource)
	switch {
	case w.any() || pool < 0 && !w.spans && w.own[what.node.Name]:
		pool = what.under(w.resource)
	case pool < 0 && w.spans:
		pool = what.spanning(w.resource)
	}
	if pool >= 0 && (w.any() || what.devices[pool].Accelerator == "") {
		called(n, pool, shape)
	}
	verdict := n.Type(shape)
	switch {
	case pool < 0 && verdict != placement.AcceleratorUnknown:
		verdict = placement.WrongAccelerator
	case verdict == placement.Fits && refuses(w.pod, what.node, affinity):
		verdict = placement.Refused
	case verdict == placement.Fits:
		verdict = n.Room(shape)
	}
	return verdict
}

// lacks reports whether the node has too little free of an extended resource that the
// pod takes beside its devices. The framework's own plugin keeps the pod off it.
func (w *preFilterState) lacks(info fwk.NodeInfo) bool {
	return slices.ContainsFunc(w.other, func(a placement.Amount) bool {
		resource := corev1.ResourceName(a.Name)
		return a.Count > info.GetAllocatable().GetScalarResources()[resource]-info.GetRequested().GetScalarResources()[resource]
	})
}

func refuses(pod *corev1.Pod, node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity) bool {
	return inventory.Refusal(pod, node, affinity) != ""
}

// called lets the devices of a pool be those of the shape.
func called(n *placement.Node, pool int, shape capacity.Shape) {
	if pool == 0 {
		n.Accelerator, n.MemoryGiB, n.Form = shape.Accelerator, shape.MemoryGiB, shape.Form
		return
	}
	n.Beside[pool-1].Device = shape.Device()
}

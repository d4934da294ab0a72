package inventory

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// A pod that finds no room preempts pods of lower priority: the scheduler evicts those of
// one node without which it fits. So what they hold is free for it, and for nobody else.
// Room that is only kept for a pod of lower priority it takes even where it may not
// preempt.

// priorityOf is the priority of a pod that was admitted.
func priorityOf(pod *corev1.Pod) int32 { return ptr.Deref(pod.Spec.Priority, 0) }

// highest is the priority that no class but the cluster's own has more of, whose names
// begin with reserved.
const (
	highest  = 1_000_000_000
	reserved = "system-"
)

// prioritize gives the pod the priority of its class, as admission does. Of a class that
// is not known it gives the highest that it may have: fewer pods yield, and not more. It
// is an error where admission would refuse the pod.
func (inv *Inventory) prioritize(e *expected) error {
	spec := &e.pod.Spec
	if inv.objects.Unread.PriorityClasses {
		e.bounds = append(e.bounds, "priority class")
		spec.Priority = ptr.To[int32](highest)
		if strings.HasPrefix(spec.PriorityClassName, reserved) {
			spec.Priority = ptr.To[int32](math.MaxInt32)
		}
		return nil
	}
	i := slices.IndexFunc(inv.objects.PriorityClasses, func(c *schedulingv1.PriorityClass) bool {
		return c.Name == spec.PriorityClassName || spec.PriorityClassName == "" && c.GlobalDefault
	})
	switch {
	case i >= 0:
		c := inv.objects.PriorityClasses[i]
		spec.Priority, spec.PreemptionPolicy, spec.PriorityClassName = &c.Value, c.PreemptionPolicy, c.Name
	case spec.PriorityClassName != "":
		return fmt.Errorf("the pods ask for priority class %s, which does not exist", spec.PriorityClassName)
	}
	return nil
}

// rank is what decides who yields to a pod.
type rank struct {
	priority int32
	// preempts is set where pods that nodes hold yield, too.
	preempts bool
}

// rankOf is that of a pod with its priority.
func rankOf(pod *corev1.Pod) rank {
	return rank{priorityOf(pod), ptr.Deref(pod.Spec.PreemptionPolicy, corev1.PreemptLowerPriority) != corev1.PreemptNever}
}

// over reports whether the pod yields to one of that rank.
func (r rank) over(pod *corev1.Pod) bool {
	return priorityOf(pod) < r.priority && (r.preempts || pod.Spec.NodeName == "")
}

// below is what pods that yield to some rank hold of each node, by its index.
type below struct {
	nodes []yielding
	// guarded is set when a disruption budget may cover one of them.
	guarded bool
}

// yielding is what such pods hold of one node.
type yielding struct {
	placement.Yield
	// devices are by the index of the node's Devices.
	devices []int
}

// yieldsKey is the same for requests to which the same yields.
type yieldsKey struct {
	rank     rank
	device   capacity.Device
	devices  bool
	resource corev1.ResourceName
}

// yields is what pods of lower priority hold of the nodes that could take the pod; nil is
// nothing. It reports whether a disruption budget may cover any of these.
func (inv *Inventory) yields(pod *corev1.Pod, shape capacity.Shape, resource corev1.ResourceName) (list []placement.Yield, guarded bool) {
	rank := rankOf(pod)
	if rank.priority <= inv.leastPriority {
		return nil, false
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	lower, known := inv.lower[rank]
	if !known {
		lower = inv.heldBelow(rank)
		inv.lower[rank] = lower
	}
	key := yieldsKey{rank: rank, device: shape.Device(), devices: shape.Devices > 0, resource: resource}
	list, known = inv.yielded[key]
	if !known {
		list = inv.yieldedTo(lower, shape, resource)
		inv.yielded[key] = list
	}
	return list, lower.guarded && list != nil
}

// yieldedTo is what of all that yields is of use to the shape.
func (inv *Inventory) yieldedTo(lower *below, shape capacity.Shape, resource corev1.ResourceName) []placement.Yield {
	var list []placement.Yield
	for i := range lower.nodes {
		y := &lower.nodes[i]
		if y.Pods == 0 || !inv.mayTake(i, shape, resource) {
			continue
		}
		if list == nil {
			list = make([]placement.Yield, len(lower.nodes))
		}
		list[i] = y.Yield
		for j, devices := range y.devices {
			if d := &inv.Carried[i].Devices[j]; shape.Devices > 0 && d.Resource == resource {
				list[i].Devices = devices
			}
		}
	}
	return list
}

// heldBelow adds up what pods hold that yield to the rank.
func (inv *Inventory) heldBelow(r rank) *below {
	lower := &below{nodes: make([]yielding, len(inv.Nodes))}
	h := holder{extended: inv.extended}
	covered := inv.covers()
	for _, held := range inv.holding {
		if !r.over(held.pod) {
			continue
		}
		n := &lower.nodes[held.node]
		h.read(held.pod, inv.Carried[held.node].Devices, len(inv.Cluster.Nodes[held.node].Other))
		n.MilliCPU = capacity.Plus(n.MilliCPU, milli(h.cpu, most))
		n.MemoryBytes = capacity.Plus(n.MemoryBytes, amount(h.memory, most))
		n.Pods++
		if n.devices == nil {
			n.devices, n.Other = make([]int, len(h.devices)), make([]int64, len(h.other))
		}
		for j := range h.devices {
			n.devices[j] = capacity.Plus(n.devices[j], int(amount(h.devices[j], most)))
		}
		for j := range h.other {
			n.Other[j] = capacity.Plus(n.Other[j], amount(h.other[j], most))
		}
		lower.guarded = lower.guarded || held.pod.Spec.NodeName != "" && covered(held.pod)
	}
	return lower
}

// covers tells the pods that a disruption budget covers, or may cover.
func (inv *Inventory) covers() func(*corev1.Pod) bool {
	type guard struct {
		namespace string
		selector  labels.Selector
	}
	var guards []guard
	for _, b := range inv.objects.Budgets {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			selector = labels.Everything()
		}
		guards = append(guards, guard{b.Namespace, selector})
	}
	return func(pod *corev1.Pod) bool {
		return inv.objects.Unread.Budgets || slices.ContainsFunc(guards, func(g guard) bool {
			return g.namespace == pod.Namespace && g.selector.Matches(labels.Set(pod.Labels))
		})
	}
}

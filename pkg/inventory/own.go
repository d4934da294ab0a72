package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Unlabelled reports whether the node offers devices under the resource of which no label
// says anything, and no others of unknown type. A variant whose pods hold some of them knows
// what they are.
func (c *Carried) Unlabelled(resource corev1.ResourceName) bool {
	found := false
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.Resource == resource {
			found = d.unlabelled && d.Count > 0
		} else if !d.Name.Known() {
			return false
		}
	}
	return found
}

// own are the nodes, by index, on which pods of a variant hold devices without labels. The
// variant says what they are. To others they stay unknown, because one variant's word must
// not count for another. Nil is none.
func (inv *Inventory) own(pods []*corev1.Pod, resource corev1.ResourceName) []bool {
	var own []bool
	for _, pod := range pods {
		i, found := inv.indexOf(pod.Spec.NodeName)
		if !found || HeldBy(pod) == "" || !inv.Carried[i].Unlabelled(resource) || DeviceOf(pod) != resource {
			continue
		}
		if own == nil {
			own = make([]bool, len(inv.Nodes))
		}
		own[i] = true
	}
	return own
}

// indexOf is the index of the node of that name.
func (inv *Inventory) indexOf(name string) (int, bool) {
	return slices.BinarySearchFunc(inv.Nodes, name, func(n *corev1.Node, name string) int { return strings.Compare(n.Name, name) })
}

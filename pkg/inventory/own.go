package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// OfWhichNothingIsSaid reports whether the node offers devices under the resource, no label
// says anything of them, and it offers no others of which that is so: pods that hold some of
// them show their variant what they are.
func (c *Carried) OfWhichNothingIsSaid(resource corev1.ResourceName) bool {
	found := false
	for i := range c.Devices {
		d := &c.Devices[i]
		if d.Resource == resource {
			found = d.unsaid && d.Count > 0
		} else if !d.Name.Known() {
			return false
		}
	}
	return found
}

// own are the nodes, by index, on which pods of a variant hold devices of which no label
// says anything: they are the variant's, which names its accelerator, on those nodes. To
// others they stay unknown, because a variant's word must not count for more than itself.
// Nil is none.
func (inv *Inventory) own(pods []*corev1.Pod, resource corev1.ResourceName) []bool {
	var own []bool
	for _, pod := range pods {
		i, found := inv.indexOf(pod.Spec.NodeName)
		if !found || HeldBy(pod) == "" || !inv.Carried[i].OfWhichNothingIsSaid(resource) || DeviceOf(pod) != resource {
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

package acceleratorplacement

import (
	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// ownOf are the nodes, by name, on which pods of the variant hold devices under the resource
// of which no label says anything. What the variant says of them counts for its own pods, as
// it does for the autoscaler. Nil is none.
func (p *Plugin) ownOf(variant *v1alpha1.VariantAutoscaling, resource corev1.ResourceName, nodes *snapshot) map[string]bool {
	var own map[string]bool
	for i, info := range nodes.infos {
		if !nodes.what[i].Unlabelled(resource) || info.GetRequested().GetScalarResources()[resource] <= 0 {
			continue
		}
		for _, on := range info.GetPods() {
			if pod := on.GetPod(); inventory.DeviceOf(pod) == resource && inventory.HeldBy(pod) != "" && p.isOf(pod, variant) {
				if own == nil {
					own = map[string]bool{}
				}
				own[nodes.what[i].node.Name] = true
				break
			}
		}
	}
	return own
}

// isOf reports whether the pod is one of the variant.
func (p *Plugin) isOf(pod *corev1.Pod, variant *v1alpha1.VariantAutoscaling) bool {
	if pod.Namespace != variant.Namespace {
		return false
	}
	of := p.variantOf(pod)
	return of != nil && of.Name == variant.Name
}

// variantOf is the variant of a pod, or nil.
func (p *Plugin) variantOf(pod *corev1.Pod) *v1alpha1.VariantAutoscaling {
	owners, _ := p.owners.of(pod)
	return p.variants.of(owners)
}

// showing are the pods that hold devices of which no label says anything, by their variant.
func (p *Plugin) showing(inv *inventory.Inventory, pods []*corev1.Pod) map[*v1alpha1.VariantAutoscaling][]*corev1.Pod {
	silent := map[string]bool{}
	for i, c := range inv.Carried {
		for j := range c.Devices {
			if c.Unlabelled(c.Devices[j].Resource) {
				silent[inv.Nodes[i].Name] = true
			}
		}
	}
	found := map[*v1alpha1.VariantAutoscaling][]*corev1.Pod{}
	for _, pod := range pods {
		if silent[pod.Spec.NodeName] {
			if v := p.variantOf(pod); v != nil {
				found[v] = append(found[v], pod)
			}
		}
	}
	return found
}

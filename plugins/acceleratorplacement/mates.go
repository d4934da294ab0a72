package acceleratorplacement

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// mates are how many pods of the same owner the nodes hold, by the node's name.
type mates map[string]int

// matesOf looks for pods of the same owner on the nodes. It does not look, and
// returns none, unless the owner has a few replicas, which are to be spread: with one
// there is no mate, and many are packed.
func (p *Plugin) matesOf(pod *corev1.Pod, devices corev1.ResourceName, nodes []fwk.NodeInfo) mates {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || !p.args.SpreadFirstReplicas {
		return nil
	}
	if replicas := p.owners.replicas(ref, pod.Namespace); replicas < 2 || replicas > placement.SpreadUpTo {
		return nil
	}
	var found mates
	for _, info := range nodes {
		if info.GetRequested().GetScalarResources()[devices] <= 0 {
			continue
		}
		if count := countOwned(info.GetPods(), ownerOf(pod)); count > 0 {
			if found == nil {
				found = mates{}
			}
			found[info.Node().Name] = count
		}
	}
	return found
}

func countOwned(pods []fwk.PodInfo, by owner) int {
	count := 0
	for _, info := range pods {
		if ownerOf(info.GetPod()) == by {
			count++
		}
	}
	return count
}

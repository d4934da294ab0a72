package inventory

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// unmodelled names what may keep the pod off a node and what the model does not
// know, so that counts are upper bounds; nothing means that counts are exact.
func (inv *Inventory) unmodelled(pod *corev1.Pod, takes Takes) []string {
	spec := &pod.Spec
	var found []string
	add := func(is bool, what string) {
		if is {
			found = append(found, what)
		}
	}
	if a := spec.Affinity; a != nil {
		add(a.PodAffinity != nil && len(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0, "pod affinity")
		add(a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0, "pod anti-affinity")
	}
	add(inv.repels(pod), "anti-affinity of other pods")
	add(slices.ContainsFunc(spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.WhenUnsatisfiable == corev1.DoNotSchedule
	}), "topology spread")
	add(slices.ContainsFunc(spec.Volumes, BindsToNode), "volumes")
	add(hasHostPorts(spec, spec.Containers) || hasHostPorts(spec, spec.InitContainers), "host ports")
	queued := queuedByKueue(pod)
	add(queued, "Kueue")
	add(!queued && len(spec.SchedulingGates) > 0, "scheduling gates")
	add(pod.Annotations[exclusiveTopology] != "", "exclusive topology")
	add(spec.SchedulingGroup != nil, "pod group")
	add(spec.OS != nil && !inv.allRun(string(spec.OS.Name)), "operating system")
	add(inv.overlapped(takes.Resource), "devices held under another resource")
	found = append(found, choosers(pod.Annotations)...)
	for _, r := range takes.Beyond {
		found = append(found, string(r))
	}
	return found
}

// exclusiveTopology on a LeaderWorkerSet and its pods keeps those of other groups off
// the group's topology domain, by affinity that its admission adds to the pods.
const exclusiveTopology = "leaderworkerset.sigs.k8s.io/exclusive-topology"

// queuedByKueue says whether Kueue holds such pods back until its own quota has room,
// and chooses nodes for them.
func queuedByKueue(pod *corev1.Pod) bool {
	const domain = "kueue.x-k8s.io/"
	return pod.Labels[domain+"queue-name"] != "" || slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool {
		return strings.HasPrefix(g.Name, domain)
	})
}

// allRun says whether all nodes are known to run the operating system.
func (inv *Inventory) allRun(system string) bool {
	return len(inv.systems) == 0 || len(inv.systems) == 1 && inv.systems[system]
}

// overlapped says whether pods hold devices of the same convention under another
// resource. Kubernetes counts both in full.
func (inv *Inventory) overlapped(resource corev1.ResourceName) bool {
	if resource == "" || len(inv.twice) == 0 || !overlaps(resource) {
		return false
	}
	return len(inv.twice) > 1 || !inv.twice[resource]
}

// sharedUnnamed says whether a node on which such devices count may offer the same device
// several times: more than it has.
func (inv *Inventory) sharedUnnamed(shape capacity.Shape, resource corev1.ResourceName, refused []string) bool {
	if shape.Devices == 0 {
		return false
	}
	return slices.ContainsFunc(inv.ofType[shape.Accelerator], func(i int) bool {
		d, ok := inv.Carried[i].Under(resource)
		return ok && d.oversold && inv.Cluster.Nodes[i].Type(shape) == placement.Fits && (refused == nil || refused[i] == "")
	})
}

// BindsToNode reports whether a volume limits the nodes of its pod, or a node limits
// the number of such volumes.
func BindsToNode(v corev1.Volume) bool {
	return v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil ||
		v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.AzureDisk != nil || v.Cinder != nil ||
		v.ISCSI != nil || v.RBD != nil
}

// hasHostPorts says whether containers of the pod take ports of their node. On the
// node's own network every port is one: the API server fills it in.
func hasHostPorts(spec *corev1.PodSpec, containers []corev1.Container) bool {
	return slices.ContainsFunc(containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort > 0 || spec.HostNetwork })
	})
}

// repellents are the pods of the cluster whose required anti-affinity may keep
// others away, and, once asked for, their terms by a label that they need.
type repellents struct {
	pods []*corev1.Pod
	// seen are the makers of such pods: those of one maker say the same.
	seen map[podMaker]bool

	read    bool
	byLabel map[label][]repellent
	others  []repellent
}

type label struct{ key, value string }

// podMaker is a revision of the owner of pods, within its namespace: a pod may name any owner.
type podMaker struct {
	namespace string
	uid       types.UID
	revision  string
}

// repellent is one term of one maker's pods.
type repellent struct {
	// namespaces are those that it means; nil is any.
	namespaces []string
	selector   labels.Selector
}

// add keeps a pod with required anti-affinity.
func (r *repellents) add(pod *corev1.Pod) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.UID != "" {
		// Pods of one maker differ by its revision at most, which other makers than
		// ReplicaSets write on the pod.
		by := podMaker{pod.Namespace, owner.UID, pod.Labels["controller-revision-hash"]}
		if r.seen[by] {
			return
		}
		if r.seen == nil {
			r.seen = map[podMaker]bool{}
		}
		r.seen[by] = true
	}
	r.pods = append(r.pods, pod)
}

// compile reads the terms of all pods.
func (r *repellents) compile() {
	r.read = true
	r.byLabel = map[label][]repellent{}
	known := map[string]bool{}
	for _, pod := range r.pods {
		terms := pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		for i := range terms {
			term := &terms[i]
			selector, err := metav1.LabelSelectorAsSelector(term.LabelSelector)
			if err != nil {
				selector = labels.Everything()
			}
			namespaces := term.Namespaces
			switch {
			case term.NamespaceSelector != nil:
				namespaces = nil
			case len(namespaces) == 0:
				namespaces = []string{pod.Namespace}
			}
			key := strings.Join(namespaces, ",") + " " + selector.String()
			if known[key] {
				continue
			}
			known[key] = true
			one := repellent{namespaces: namespaces, selector: selector}
			if term.LabelSelector != nil && len(term.LabelSelector.MatchLabels) > 0 {
				first := slices.Min(slices.Collect(maps.Keys(term.LabelSelector.MatchLabels)))
				l := label{first, term.LabelSelector.MatchLabels[first]}
				r.byLabel[l] = append(r.byLabel[l], one)
			} else {
				r.others = append(r.others, one)
			}
		}
	}
}

// repels says whether the required anti-affinity of other pods may keep the pod off
// some nodes.
func (inv *Inventory) repels(pod *corev1.Pod) bool {
	if len(inv.repelled.pods) == 0 {
		return false
	}
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if !inv.repelled.read {
		inv.repelled.compile()
	}
	means := func(r repellent) bool {
		return (r.namespaces == nil || pod.Namespace == "" || slices.Contains(r.namespaces, pod.Namespace)) &&
			r.selector.Matches(labels.Set(pod.Labels))
	}
	for key, value := range pod.Labels {
		if slices.ContainsFunc(inv.repelled.byLabel[label{key, value}], means) {
			return true
		}
	}
	return slices.ContainsFunc(inv.repelled.others, means)
}

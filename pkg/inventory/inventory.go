package inventory

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Inventory is what the nodes of a cluster hold and have free. Its methods are safe
// for concurrent use.
type Inventory struct {
	// Cluster is the capacity model's view. Its nodes are those of Nodes, by index.
	Cluster *placement.Cluster
	// Nodes are sorted by name.
	Nodes []*corev1.Node
	// Carried is what the nodes carry, by index.
	Carried []*Carried
	// Unlisted counts the nodes by product name that no rule knows.
	Unlisted map[string]int

	objects Objects
	// holding are the pods that hold something of a node, and leastPriority is the lowest
	// of theirs.
	holding       []held
	leastPriority int32
	// ofType are the indexes of the nodes that carry a type.
	ofType map[capacity.Accelerator][]int
	// announced are the indexes of the nodes of whose devices only labels speak.
	announced []int
	// claims counts, by node, the pods whose devices come by resource claims, and claimed are
	// the resources that such pods ask for by their plain names.
	claims  map[int]int
	claimed map[corev1.ResourceName]bool
	// declared are the devices and extended resources that nodes name, if only to say that
	// they have none, and unoffered those that they do not, by the number of containers
	// of placed pods that hold them all the same.
	declared  map[corev1.ResourceName]bool
	unoffered map[corev1.ResourceName]int
	// twice are the resources of overlapping conventions that some pod holds.
	twice map[corev1.ResourceName]bool
	// extended are the further extended resources that nodes offer, sorted. Their places
	// are the indexes of placement.Node.Other.
	extended []corev1.ResourceName
	// quotas are the indexes of the cluster's Quotas.
	quotas map[quotaKey]int
	// systems are the operating systems of the nodes.
	systems map[string]bool

	mu sync.Mutex
	// refused are the answers that requests have had, by what they ask for.
	refused  map[string][]string
	kept     map[uint64]kept
	seed     maphash.Seed
	answers  []answer
	repelled repellents
	// amounts are what requests take of extended resources.
	amounts [][]placement.Amount
	// lower is what pods hold that yield to a rank, and yielded what of that requests may
	// have.
	lower   map[rank]*below
	yielded map[yieldsKey][]placement.Yield
}

// held is a pod and the index of the node of which it holds something.
type held struct {
	pod  *corev1.Pod
	node int
}

// Objects are what an inventory is read from. None of them is changed; their order, and
// what is there twice, is of no account.
type Objects struct {
	Nodes []*corev1.Node
	// Pods are those of all schedulers.
	Pods []*corev1.Pod
	// What follows says what pods will be and how many there may be.

	RuntimeClasses  []*nodev1.RuntimeClass
	PriorityClasses []*schedulingv1.PriorityClass
	Budgets         []*policyv1.PodDisruptionBudget
	Quotas          []*corev1.ResourceQuota
	// Unread says of which kinds nobody knows what there is.
	Unread Unread

	// Known is what the node carries, for those who keep that; nil reads every node.
	Known func(*corev1.Node) *Carried
}

// Unread are kinds of objects that could not be read.
type Unread struct {
	RuntimeClasses, PriorityClasses, Budgets, Quotas bool
}

// Or is what is unread of either.
func (u Unread) Or(o Unread) Unread {
	return Unread{
		RuntimeClasses:  u.RuntimeClasses || o.RuntimeClasses,
		PriorityClasses: u.PriorityClasses || o.PriorityClasses,
		Budgets:         u.Budgets || o.Budgets,
		Quotas:          u.Quotas || o.Quotas,
	}
}

// Read takes stock of the nodes without overrides, in a cluster of nothing but nodes and
// pods.
func Read(nodes []*corev1.Node, pods []*corev1.Pod) *Inventory {
	return new(Names).Read(Objects{Nodes: nodes, Pods: pods})
}

// Read takes stock of the nodes. A pod counts once, on the node that HeldBy names; pods
// on nodes that are not listed do not count.
func (m *Names) Read(o Objects) *Inventory {
	inv := &Inventory{
		Nodes:     distinct(o.Nodes),
		objects:   o,
		Unlisted:  map[string]int{},
		ofType:    map[capacity.Accelerator][]int{},
		claims:    map[int]int{},
		claimed:   map[corev1.ResourceName]bool{},
		twice:     map[corev1.ResourceName]bool{},
		declared:  map[corev1.ResourceName]bool{},
		unoffered: map[corev1.ResourceName]int{},
		lower:     map[rank]*below{},
		yielded:   map[yieldsKey][]placement.Yield{},
		systems:   map[string]bool{},
		refused:   map[string][]string{},
		kept:      map[uint64]kept{},
		seed:      maphash.MakeSeed(),
	}
	inv.Cluster = &placement.Cluster{Nodes: make([]placement.Node, len(inv.Nodes))}
	inv.Carried = make([]*Carried, len(inv.Nodes))
	index := make(map[string]int, len(inv.Nodes))
	carried := o.Known
	if carried == nil {
		carried = m.Carried
	}
	for i, node := range inv.Nodes {
		inv.add(i, node, carried(node))
		index[node.Name] = i
	}
	inv.offered()
	inv.declare()
	inv.readQuotas()
	h := holder{extended: inv.extended}
	counted := make(map[types.UID]struct{}, len(o.Pods))
	for _, pod := range o.Pods {
		i, ok := index[HeldBy(pod)]
		if !ok || HeldBy(pod) == "" {
			continue
		}
		if pod.UID != "" {
			if _, ok := counted[pod.UID]; ok {
				continue
			}
			counted[pod.UID] = struct{}{}
		}
		h.read(pod, inv.Carried[i].Devices, len(inv.Cluster.Nodes[i].Other))
		inv.hold(i, &h)
		inv.holding = append(inv.holding, held{pod, i})
		inv.leastPriority = min(inv.leastPriority, priorityOf(pod))
		inv.remember(i, pod)
		inv.missing(pod)
	}
	return inv
}

// distinct are the nodes sorted by name, each name once.
func distinct(nodes []*corev1.Node) []*corev1.Node {
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b *corev1.Node) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		if c := strings.Compare(string(a.UID), string(b.UID)); c != 0 {
			return c
		}
		return strings.Compare(a.ResourceVersion, b.ResourceVersion)
	})
	return slices.CompactFunc(sorted, func(a, b *corev1.Node) bool { return a.Name == b.Name })
}

func (inv *Inventory) add(i int, node *corev1.Node, c *Carried) {
	inv.Carried[i] = c
	inv.Cluster.Nodes[i] = c.View(Used{}, nil)
	inv.systems[node.Labels[corev1.LabelOSStable]] = true
	if len(c.Devices) > 0 && c.Devices[0].Count == 0 {
		inv.announced = append(inv.announced, i)
	}
	unlisted := capacity.Accelerator("")
	for j := range c.Devices {
		name := c.Devices[j].Name
		if name.Unlisted && name.Short != unlisted {
			unlisted = name.Short
			inv.Unlisted[string(unlisted)]++
		}
		nodes := inv.ofType[name.Accelerator()]
		if len(nodes) == 0 || nodes[len(nodes)-1] != i {
			inv.ofType[name.Accelerator()] = append(nodes, i)
		}
	}
}

// hold takes what a pod holds off its node.
func (inv *Inventory) hold(i int, h *holder) {
	n := &inv.Cluster.Nodes[i]
	n.Free.MilliCPU = less(n.Free.MilliCPU, milli(h.cpu, most))
	n.Free.MemoryBytes = less(n.Free.MemoryBytes, amount(h.memory, most))
	n.Free.Pods = int(less(int64(n.Free.Pods), 1))
	for j := range h.other {
		n.Other[j].Free = less(n.Other[j].Free, amount(h.other[j], most))
	}
	for j := range h.devices {
		devices := amount(h.devices[j], most)
		if devices == 0 {
			continue
		}
		if j == 0 {
			n.Free.Devices = int(less(int64(n.Free.Devices), devices))
		} else {
			n.Beside[j-1].Free = int(less(int64(n.Beside[j-1].Free), devices))
		}
		if d := &inv.Carried[i].Devices[j]; overlaps(d.Resource) {
			inv.twice[d.Resource] = true
		}
	}
}

// remember keeps what else of a pod is of account to others.
func (inv *Inventory) remember(i int, pod *corev1.Pod) {
	if len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil {
		inv.claims[i]++
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		for j := range s.RequestMappings {
			inv.claimed[corev1.ResourceName(s.RequestMappings[j].ResourceName)] = true
		}
	}
	if a := pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		inv.repelled.add(pod)
	}
}

// Reason says in one line, for people, what keeps pods away from the node of that
// index or makes its numbers doubtful. Empty means that there is nothing to say.
func (inv *Inventory) Reason(node int) string {
	reason := inv.Carried[node].Reason()
	claims := inv.claims[node]
	if claims == 0 {
		return reason
	}
	if reason != "" {
		reason += "; "
	}
	return reason + fmt.Sprintf("%d of its pods use resource claims, whose devices are not counted", claims)
}

// HeldBy is the name of the node of which the pod holds something, or empty: the
// node that it is bound to, until it has succeeded or failed, also while it
// terminates; else the node that is nominated for it, after a preemption or while it
// is being bound.
//
// A nominated pod counts for every other pod that may not preempt it. A scheduler does
// not see what another scheduler has nominated and could find room there that is not
// counted here; never the other way round.
func HeldBy(pod *corev1.Pod) string {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return ""
	case pod.Spec.NodeName != "":
		return pod.Spec.NodeName
	case pod.DeletionTimestamp != nil:
		// Nobody will bind it any more.
		return ""
	default:
		return pod.Status.NominatedNodeName
	}
}

// removalTaints are how node autoscalers and clouds mark a node that they are about
// to remove.
var removalTaints = map[string]string{
	"ToBeDeletedByClusterAutoscaler":                         "being removed by the cluster autoscaler",
	"karpenter.sh/disrupted":                                 "being removed by Karpenter",
	"karpenter.sh/disruption":                                "being removed by Karpenter",
	"aws-node-termination-handler/spot-itn":                  "being removed by AWS",
	"aws-node-termination-handler/asg-lifecycle-termination": "being removed by AWS",
	"cloud.google.com/impending-node-termination":            "being removed by Google Cloud",
	"node.cloudprovider.kubernetes.io/shutdown":              "shut down",
	corev1.TaintNodeOutOfService:                             "out of service",
}

// cordoned is the Out of a node that people took out of use.
const cordoned = "cordoned"

// Out says why a node takes no new pods at all, or empty. A node that has not
// reported its readiness yet is not out by that: the API server taints it.
func Out(node *corev1.Node) string {
	if node.DeletionTimestamp != nil {
		return "being deleted"
	}
	for i := range node.Status.Conditions {
		c := &node.Status.Conditions[i]
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return placement.NodeNotReady
		}
	}
	if node.Spec.Unschedulable {
		return cordoned
	}
	for i := range node.Spec.Taints {
		if why := removalTaints[node.Spec.Taints[i].Key]; why != "" {
			return why
		}
	}
	return ""
}

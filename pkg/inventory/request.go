package inventory

import (
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Request is what one replica of the template asks of this cluster, as one pod;
// the caller sets Shape.Pods of a replica that spans nodes. The devices are those
// that the pods request; wanted names their accelerator and is of no account for
// pods without devices. The template's namespace, if it has one, is where its pods
// will be. Like is a pod that this template made, as Revision.Newest finds it: the next
// one will be the same. Without it the template counts, and the bound says that nobody
// knows what admission adds. Own are the variant's pods: where they hold devices of which no
// label says anything, these count as the wanted ones.
//
// It is an error, and the shape unknown, when the model cannot count such pods: the
// accelerator is unknown or contradicts the resource, devices come by resource
// claims, may do so because no node of their type offers any, are parts of slices over
// several hosts, a pod asks for several kinds of devices, or no such pod is admitted.
//
// What lists the request holds is shared with other requests and must not be changed.
func (inv *Inventory) Request(template *corev1.PodTemplateSpec, like *corev1.Pod, wanted Name, own ...*corev1.Pod) (*placement.Request, error) {
	if template == nil {
		return nil, fmt.Errorf("reading the pod template: %w", placement.ErrShapeUnknown)
	}
	next, err := inv.expect(template, like)
	if err != nil {
		return nil, err
	}
	pod := next.pod
	if len(pod.Spec.ResourceClaims) > 0 {
		return nil, fmt.Errorf("reading the pod template: %w", ErrClaims)
	}
	takes, err := PodTakes(pod)
	if err != nil {
		return nil, fmt.Errorf("reading the pod template: %w", err)
	}
	shape, err := takes.Shape(wanted)
	if err != nil {
		return nil, err
	}
	var shown []bool
	if shape.Devices > 0 {
		shown = inv.own(own, takes.Resource)
	}
	if err := inv.unserved(wanted, takes.Resource, shape); err != nil && shown == nil {
		return nil, err
	}
	if err := inv.spanning(&pod.Spec, wanted, takes, shape); err != nil {
		return nil, err
	}
	bounds := append(inv.unmodelled(pod, takes), next.bounds...)
	other, uncounted := inv.other(takes)
	bounds = append(bounds, uncounted...)
	// Resource claims may serve it, from Kubernetes 1.37 on always, and no node says anything
	// of these devices.
	switch {
	case shape.Devices == 0:
	case inv.claimed[takes.Resource]:
		bounds = append(bounds, string(takes.Resource)+claimedToo)
	case !inv.declared[takes.Resource]:
		bounds = append(bounds, string(takes.Resource)+" (no node offers it; resource claims are not counted)")
	}
	refused := inv.refusals(pod, shape, takes.Resource)
	if inv.sharedUnnamed(shape, takes.Resource, refused) {
		bounds = append(bounds, string(takes.Resource)+" (offered more often than there are devices)")
	}
	yields, guarded := inv.yields(pod, shape, takes.Resource)
	if guarded {
		bounds = append(bounds, "disruption budgets")
	}
	charges, unknown := inv.charges(&next)
	bounds = append(bounds, unknown...)
	return &placement.Request{
		Shape:   shape,
		Other:   other,
		Charges: charges,
		Bound:   strings.Join(bounds, ", "),
		Refused: refused,
		Own:     shown,
		Yields:  yields,
	}, nil
}

// claimedToo says of a resource that pods hold it by resource claims, beside what nodes
// offer of it.
const claimedToo = " (pods hold it by resource claims, which are not counted)"

// unserved is the error for devices that no node offers while labels say that nodes
// have them: resource claims may serve them, of which nothing is counted, so that none
// is no number. Once any node offers them, the others count as they are.
func (inv *Inventory) unserved(wanted Name, resource corev1.ResourceName, shape capacity.Shape) error {
	if shape.Devices == 0 {
		return nil
	}
	if n := inv.unoffered[resource]; n > 0 {
		return fmt.Errorf("no node offers %s, and containers of placed pods hold it (%d): %w", resource, n, ErrClaims)
	}
	for _, i := range inv.ofType[shape.Accelerator] {
		if d, ok := inv.Carried[i].Under(resource); ok && d.Count > 0 && shape.Device().Covers(d.Name.Device()) {
			return nil
		}
	}
	whole, count, first := wanted.whole(), 0, ""
	for _, i := range inv.announced {
		if c := inv.Carried[i]; c.Out == "" && whole.Covers(c.Devices[0].Name.whole()) {
			if count++; count == 1 {
				first = inv.Nodes[i].Name
			}
		}
	}
	if count == 0 {
		return nil
	}
	return fmt.Errorf("no node offers %s of %s, and labels announce them (nodes: %d, such as %s): the device plugin is not there yet, or %w",
		resource, whole, count, first, ErrClaims)
}

// Shape is what a replica of one such pod takes, when its devices are to be the
// wanted ones. Of a resource that counts slices or shared devices it takes slices or
// shares of them. It is an error when the pod asks for devices and wanted is unknown
// or contradicts their resource.
func (t Takes) Shape(wanted Name) (capacity.Shape, error) {
	shape := capacity.Shape{Devices: t.Devices, Pods: 1, MilliCPU: t.MilliCPU, MemoryBytes: t.MemoryBytes}
	if t.Devices <= 0 {
		return shape, nil
	}
	if !wanted.Known() {
		return capacity.Shape{}, fmt.Errorf("the pods ask for %d %s of an unknown accelerator: set spec.accelerator", t.Devices, t.Resource)
	}
	name, err := wanted.As(t.Resource)
	if err != nil {
		return capacity.Shape{}, fmt.Errorf("the pods ask for %d %s: %w", t.Devices, t.Resource, err)
	}
	device := name.Device()
	shape.Accelerator, shape.MemoryGiB, shape.Form = device.Accelerator, device.MemoryGiB, device.Form
	return shape, nil
}

// refusals asks every node of the right type whether it admits the pod. The result
// is nil when all do. Requests that differ in nothing that a node looks at share it.
func (inv *Inventory) refusals(pod *corev1.Pod, shape capacity.Shape, resource corev1.ResourceName) []string {
	key := admissionKey(pod, shape, resource)
	inv.mu.Lock()
	defer inv.mu.Unlock()
	refused, ok := inv.refused[key]
	if !ok {
		refused = inv.ask(pod, shape, resource)
		inv.refused[key] = refused
	}
	return refused
}

// ask asks the nodes. The answers of different requests are often the same, and are
// then kept once, because a list of all nodes is long.
func (inv *Inventory) ask(pod *corev1.Pod, shape capacity.Shape, resource corev1.ResourceName) []string {
	affinity := nodeaffinity.GetRequiredNodeAffinity(pod)
	free := pod.Spec.NodeName == "" && len(pod.Spec.NodeSelector) == 0 && requiredNodeAffinity(&pod.Spec) == nil
	inv.answers = inv.answers[:0]
	check := func(i int) {
		if !inv.mayTake(i, shape, resource) {
			return
		}
		c, why := inv.Carried[i], ""
		if shape.Devices > 0 {
			why = c.Elsewhere(shape.Device(), resource)
		}
		if why == "" && (c.tainted || !free) {
			why = Refusal(pod, inv.Nodes[i], affinity)
		}
		if why != "" {
			inv.answers = append(inv.answers, answer{i, why})
		}
	}
	if shape.Devices > 0 {
		for _, i := range inv.ofType[shape.Accelerator] {
			check(i)
		}
		for _, i := range inv.ofType[""] {
			if inv.Carried[i].Unlabelled(resource) {
				check(i)
			}
		}
	} else {
		for i := range inv.Nodes {
			check(i)
		}
	}
	if len(inv.answers) == 0 {
		return nil
	}
	return inv.keep(inv.answers)
}

// mayTake reports whether the node takes pods and has devices of the type, or some of which
// nothing is said, which are those of the variants that hold some of them.
func (inv *Inventory) mayTake(i int, shape capacity.Shape, resource corev1.ResourceName) bool {
	n := &inv.Cluster.Nodes[i]
	return n.Type(shape) == placement.Fits ||
		shape.Devices > 0 && n.Out == "" && inv.Carried[i].Unlabelled(resource)
}

// answer is why a node refuses a pod.
type answer struct {
	node int
	why  string
}

// keep is the list of the answers by node.
func (inv *Inventory) keep(answers []answer) []string {
	var hash maphash.Hash
	hash.SetSeed(inv.seed)
	for _, a := range answers {
		maphash.WriteComparable(&hash, a)
	}
	sum := hash.Sum64()
	if known, ok := inv.kept[sum]; ok && slices.Equal(known.answers, answers) {
		return known.byNode
	}
	byNode := make([]string, len(inv.Nodes))
	for _, a := range answers {
		byNode[a.node] = a.why
	}
	inv.kept[sum] = kept{slices.Clone(answers), byNode}
	return byNode
}

type kept struct {
	answers []answer
	byNode  []string
}

// admissionKey is the same for pods to which every node gives the same answer.
func admissionKey(pod *corev1.Pod, shape capacity.Shape, resource corev1.ResourceName) string {
	var b strings.Builder
	field := func(s string) {
		b.WriteString(s)
		b.WriteByte(0)
	}
	if shape.Devices > 0 {
		field(string(resource))
		field(shape.Device().String())
	}
	field(pod.Spec.NodeName)
	for _, key := range slices.Sorted(maps.Keys(pod.Spec.NodeSelector)) {
		field(key)
		field(pod.Spec.NodeSelector[key])
	}
	for i := range pod.Spec.Tolerations {
		t := &pod.Spec.Tolerations[i]
		b.WriteByte(1)
		field(t.Key)
		field(string(t.Operator))
		field(t.Value)
		field(string(t.Effect))
	}
	// Not as the API's own types write themselves, which takes a time that grows with the square of the
	// terms: whoever may create a Deployment may write thousands.
	expressions := func(kind byte, all []corev1.NodeSelectorRequirement) {
		for i := range all {
			b.WriteByte(kind)
			field(all[i].Key)
			field(string(all[i].Operator))
			for _, value := range all[i].Values {
				field(value)
			}
		}
	}
	if required := requiredNodeAffinity(&pod.Spec); required != nil {
		for i := range required.NodeSelectorTerms {
			b.WriteByte(2)
			expressions(3, required.NodeSelectorTerms[i].MatchExpressions)
			expressions(4, required.NodeSelectorTerms[i].MatchFields)
		}
	}
	return b.String()
}

func requiredNodeAffinity(spec *corev1.PodSpec) *corev1.NodeSelector {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
}

// Refusal says why the node keeps the pod away, or empty: what the scheduler's node
// name, taint and node affinity filters say. Affinity is the pod's, parsed once.
func Refusal(pod *corev1.Pod, node *corev1.Node, affinity nodeaffinity.RequiredNodeAffinity) string {
	if pod.Spec.NodeName != "" && pod.Spec.NodeName != node.Name {
		return "node name"
	}
	if taint := untolerated(pod.Spec.Tolerations, node.Spec.Taints); taint != nil {
		return "taint " + taint.Key
	}
	if matches, err := affinity.Match(node); err != nil {
		return "node affinity: " + err.Error()
	} else if !matches {
		return "node affinity or selector"
	}
	return ""
}

// keepsAway says whether a taint keeps pods away that do not tolerate it.
func keepsAway(t corev1.Taint) bool {
	return t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
}

// untolerated is the first taint that keeps pods with these tolerations away.
func untolerated(tolerations []corev1.Toleration, taints []corev1.Taint) *corev1.Taint {
	i := slices.IndexFunc(taints, func(t corev1.Taint) bool {
		return keepsAway(t) && !quietly(corev1helpers.TolerationsTolerateTaint, tolerations, &t)
	})
	if i < 0 {
		return nil
	}
	return &taints[i]
}

// quietly calls the helper with the zero logger, which discards. The helper only
// logs malformed numbers of the comparison operators, which are off by default, and
// this package has no logger.
func quietly[L any](tolerate func(L, []corev1.Toleration, *corev1.Taint, bool) bool, tolerations []corev1.Toleration, taint *corev1.Taint) bool {
	var discard L
	return tolerate(discard, tolerations, taint, false)
}

package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// assemble makes the report of the facts.
func assemble(seen *facts) report.Capacity {
	a := newAssembly(seen)
	for i := range seen.variants {
		a.addVariant(&seen.variants[i])
	}
	a.left = a.reserve()
	for i := range a.out.Variants {
		a.addRoom(&a.out.Variants[i])
	}
	a.addNodes()
	a.addAccelerators()
	a.addRelocations()
	a.out.Notes = append(a.out.Notes, a.seen.notes...)
	return a.out
}

// assembly is a report in the making.
type assembly struct {
	seen      *facts
	inventory *inventory.Inventory
	// sending is what the manager's webhook fills in.
	sending *inventory.Sending
	// left is the cluster without what is spoken for.
	left  *placement.Cluster
	nodes map[string]*corev1.Node
	// byNamespace are the pods of each namespace, byNode those that hold each node.
	byNamespace, byNode map[string][]*corev1.Pod
	// owners are the variants of pods, by the namespaced names of both.
	owners map[string]string
	// claimed are the pods and the request of each variant that the model can count.
	claimed map[string]claim
	// requests are those of claimed, in the order of the variants.
	requests []*placement.Request
	out      report.Capacity
}

// claim is the pods of a variant and what each of them asks for.
type claim struct {
	request *placement.Request
	pods    []*corev1.Pod
}

func newAssembly(seen *facts) *assembly {
	objects := seen.rules
	objects.Nodes, objects.Pods = seen.nodes, seen.pods
	a := &assembly{
		seen: seen, inventory: seen.names.Read(objects),
		sending: inventory.NewSending(managerScheduler, seen.names, seen.nodes),
		nodes:   map[string]*corev1.Node{}, owners: map[string]string{}, claimed: map[string]claim{},
		byNamespace: map[string][]*corev1.Pod{}, byNode: map[string][]*corev1.Pod{},
	}
	for _, node := range seen.nodes {
		a.nodes[node.Name] = node
	}
	for _, pod := range seen.pods {
		a.byNamespace[pod.Namespace] = append(a.byNamespace[pod.Namespace], pod)
		if node := inventory.HeldBy(pod); node != "" {
			a.byNode[node] = append(a.byNode[node], pod)
		}
	}
	return a
}

// addVariant counts the pods of a variant and finds out what one of them asks for.
func (a *assembly) addVariant(v *variant) {
	spec := &v.object.Spec
	out := report.VariantCapacity{
		Namespace: v.object.Namespace, Name: v.object.Name, Model: spec.ModelID,
		Target: v.target.kind + "/" + spec.ScaleTargetRef.Name,
	}
	pods, nodes := a.addPods(v, &out)
	request, err := a.request(v, nodes, pods)
	if err == nil {
		err = request.Countable()
	}
	if request != nil {
		out.Shape = shapeOf(request)
	}
	switch {
	case err != nil:
		out.Explanation = err.Error()
	case !a.seen.podsKnown:
		out.Explanation = "what is free is not known"
	default:
		a.claimed[out.Key()] = claim{request, pods}
		a.requests = append(a.requests, request)
	}
	a.out.Variants = append(a.out.Variants, out)
}

// addPods counts the variant's pods, claims them, and returns them and the nodes that
// they are on. Pods that are being deleted hold their devices still and are counted no
// more.
func (a *assembly) addPods(v *variant, out *report.VariantCapacity) (pods []*corev1.Pod, nodes []*corev1.Node) {
	if v.target.selector == nil && v.target.owners == nil || !a.seen.podsKnown {
		return nil, nil
	}
	out.Placed, out.Waiting = new(int), new(int)
	for _, pod := range a.byNamespace[v.object.Namespace] {
		if !v.target.has(pod) {
			continue
		}
		pods = append(pods, pod)
		a.owners[key(pod)] = out.Key()
		if node := a.nodes[pod.Spec.NodeName]; node != nil {
			nodes = append(nodes, node)
		}
		switch {
		case !isReplica(pod):
		case pod.Spec.NodeName != "":
			*out.Placed++
		default:
			*out.Waiting++
		}
	}
	return pods, nodes
}

// request is what one replica asks for, where its pods are on these nodes. Of a kind whose
// pod template is not known, the object may say it.
func (a *assembly) request(v *variant, nodes []*corev1.Node, pods []*corev1.Pod) (*placement.Request, error) {
	spec := &v.object.Spec
	if v.target.problem != "" {
		return nil, fmt.Errorf("%s", v.target.problem)
	}
	name, source, err := a.seen.names.Resolve(spec.Accelerator, v.object.Labels[v1alpha1.LabelAcceleratorName], v.target.template, nodes)
	switch {
	case err != nil:
		return nil, err
	case v.target.template != nil:
		template := *v.target.template
		if a.seen.placed[v.object.Namespace] {
			template = *a.sending.Template(&template, name, source)
		}
		template.Namespace = v.object.Namespace
		r, err := a.inventory.Request(&template, v.target.revision.Newest(pods), name, pods...)
		if err == nil {
			r.Shape.Pods = max(1, v.target.podsPerReplica)
		}
		return r, err
	case name.Known() && spec.AcceleratorCount != nil:
		return &placement.Request{
			Shape: shapeFor(name.Device(), int(*spec.AcceleratorCount)),
			Bound: "the pod template of a " + v.target.kind,
		}, nil
	}
	return nil, fmt.Errorf("the pod template of a %s is not known: set spec.accelerator and spec.acceleratorCount", v.target.kind)
}

// addRoom asks the model how many more fit, and why no more, for a variant that it can
// count.
func (a *assembly) addRoom(out *report.VariantCapacity) {
	c, ok := a.claimed[out.Key()]
	if !ok {
		return
	}
	slots, err := a.left.Slots(c.request)
	if err != nil {
		out.Explanation = err.Error()
		return
	}
	out.Slots, out.SlotsBound = &slots, c.request.Bound
	out.LargestHole = new(a.left.LargestHole(c.request))
	if slots == 0 {
		out.Explanation = a.left.Explain(c.request).String()
	}
}

func shapeFor(d capacity.Device, count int) capacity.Shape {
	return capacity.Shape{Accelerator: d.Accelerator, MemoryGiB: d.MemoryGiB, Form: d.Form, Devices: count, Pods: 1}
}

func shapeOf(r *placement.Request) *report.Shape {
	s := r.Shape
	return &report.Shape{
		Text: placement.Wants(s, r.Other), Accelerator: s.Device().String(), Devices: s.Devices, Pods: s.Pods,
		MilliCPU: s.MilliCPU, MemoryBytes: s.MemoryBytes,
	}
}

func key(pod *corev1.Pod) string { return pod.Namespace + "/" + pod.Name }

package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/apis/llmd/v1alpha1"
)

// Destination is where the pods of a variant go.
type Destination struct {
	// Scheduler places them. It owns the nodes with the taint wva.llmd.ai/scheduler of its
	// name.
	Scheduler string
	// Accelerator is what they need; unknown says nothing of nodes.
	Accelerator Name
	// Labels are those of the nodes that have it, of which one suffices, as NodeLabels
	// finds them; none says nothing of nodes.
	Labels []corev1.NodeSelectorRequirement
}

// Send is the spec of a pod with devices that says where it goes: by its scheduler, by
// required node affinity, which node autoscalers understand, and by the toleration of the
// scheduler's nodes. What the pod says already stays. A pod that says otherwise in one of
// these is left alone as a whole, and why says what it says; so is one that says all of
// it, and one that is on its node. The result is nil for them, and else a copy.
func (m *Names) Send(spec *corev1.PodSpec, to Destination) (sent *corev1.PodSpec, why string) {
	taint := corev1.Taint{Key: v1alpha1.TaintScheduler, Value: to.Scheduler, Effect: corev1.TaintEffectNoSchedule}
	selected, err := m.selected(spec)
	switch other := otherOwner(spec, to.Scheduler); {
	case spec.NodeName != "":
		return nil, fmt.Sprintf("it is on the node %s already", spec.NodeName)
	case DeviceOf(PodOf(&corev1.PodTemplateSpec{Spec: *spec})) == "":
		return nil, "it asks for no devices"
	case !isDefaultScheduler(spec.SchedulerName) && spec.SchedulerName != to.Scheduler:
		return nil, fmt.Sprintf("it asks for the scheduler %s", spec.SchedulerName)
	case other != "":
		return nil, fmt.Sprintf("it tolerates the nodes of the scheduler %s", other)
	case err != nil:
		return nil, fmt.Sprintf("it selects %v", err)
	}
	for _, n := range selected {
		if to.Accelerator.Known() && n.Short != to.Accelerator.Short {
			return nil, fmt.Sprintf("it selects %s nodes", n)
		}
	}
	whole := spec.DeepCopy()
	whole.SchedulerName = to.Scheduler
	if untolerated(spec.Tolerations, []corev1.Taint{taint}) != nil {
		whole.Tolerations = append(whole.Tolerations, corev1.Toleration{Key: taint.Key, Operator: corev1.TolerationOpEqual, Value: taint.Value})
	}
	if len(selected) == 0 {
		selectLabels(whole, to.Labels)
	}
	if spec.SchedulerName == whole.SchedulerName && len(spec.Tolerations) == len(whole.Tolerations) && (len(selected) > 0 || len(to.Labels) == 0) {
		return nil, "it says so already"
	}
	return whole, ""
}

// Sending says where the pods of many variants go. It remembers the labels of the nodes.
// It is not safe for concurrent use.
type Sending struct {
	scheduler string
	names     *Names
	nodes     []*corev1.Node
	labels    map[string][]corev1.NodeSelectorRequirement
}

// NewSending sends pods by a scheduler to the nodes of a cluster.
func NewSending(scheduler string, names *Names, nodes []*corev1.Node) *Sending {
	return &Sending{scheduler: scheduler, names: names, nodes: nodes, labels: map[string][]corev1.NodeSelectorRequirement{}}
}

// Send is Names.Send to the nodes of an accelerator, which may be unknown.
func (s *Sending) Send(spec *corev1.PodSpec, name Name) (sent *corev1.PodSpec, why string) {
	resource := DeviceOf(PodOf(&corev1.PodTemplateSpec{Spec: *spec}))
	key := string(resource) + " " + name.String()
	if _, known := s.labels[key]; !known {
		s.labels[key] = s.names.NodeLabels(s.nodes, name, resource)
	}
	return s.names.Send(spec, Destination{Scheduler: s.scheduler, Accelerator: name, Labels: s.labels[key]})
}

// Template is the template of pods that will be sent, with what will be filled in. The
// name of the accelerator is what Resolve found; whoever sends a pod does not know what
// only the nodes of other pods say of it.
func (s *Sending) Template(template *corev1.PodTemplateSpec, name Name, source Source) *corev1.PodTemplateSpec {
	if source == SourceNodes {
		name = Name{}
	}
	spec, _ := s.Send(&template.Spec, name)
	if spec == nil {
		return template
	}
	return &corev1.PodTemplateSpec{ObjectMeta: template.ObjectMeta, Spec: *spec}
}

// isDefaultScheduler says whether a pod asks for no scheduler of its own: the API server
// fills in the cluster's one before anybody is asked.
func isDefaultScheduler(name string) bool { return name == "" || name == corev1.DefaultSchedulerName }

// otherOwner is another scheduler whose nodes the pod tolerates by name.
func otherOwner(spec *corev1.PodSpec, scheduler string) string {
	for i := range spec.Tolerations {
		if t := &spec.Tolerations[i]; t.Key == v1alpha1.TaintScheduler && t.Operator != corev1.TolerationOpExists && t.Value != scheduler {
			return t.Value
		}
	}
	return ""
}

// selectLabels adds to the required node affinity that one of the labels holds.
func selectLabels(spec *corev1.PodSpec, labels []corev1.NodeSelectorRequirement) {
	if len(labels) == 0 {
		return
	}
	if spec.Affinity == nil {
		spec.Affinity = &corev1.Affinity{}
	}
	if spec.Affinity.NodeAffinity == nil {
		spec.Affinity.NodeAffinity = &corev1.NodeAffinity{}
	}
	affinity := spec.Affinity.NodeAffinity
	// Terms are alternatives, and all of one term must hold: so each of them is needed with
	// each label.
	terms := []corev1.NodeSelectorTerm{{}}
	if required := affinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		terms = slices.DeleteFunc(required.NodeSelectorTerms, func(t corev1.NodeSelectorTerm) bool {
			return len(t.MatchExpressions) == 0 && len(t.MatchFields) == 0 // which no node matches
		})
	}
	var all []corev1.NodeSelectorTerm
	for _, term := range terms {
		for _, label := range labels {
			with := *term.DeepCopy()
			with.MatchExpressions = append(with.MatchExpressions, label)
			all = append(all, with)
		}
	}
	if len(all) > 0 {
		affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: all}
	}
}

// NodeLabels are the labels that name an accelerator on the nodes that offer it under a
// resource, with all values that do: the fewest labels with which each such node has one
// of them, those first that more of the nodes have and that are believed more. Nodes that
// come later with another label are not among them.
func (m *Names) NodeLabels(nodes []*corev1.Node, wanted Name, resource corev1.ResourceName) []corev1.NodeSelectorRequirement {
	wanted, err := wanted.As(resource)
	if err != nil || !wanted.Known() {
		return nil
	}
	// with has, by label, the nodes that have it.
	with, values := map[string]map[string]bool{}, map[string]map[string]bool{}
	left := map[string]bool{}
	for _, node := range nodes {
		if d, ok := m.Carried(node).Under(resource); !ok || !wanted.Covers(d.Name) {
			continue
		}
		for key, value := range node.Labels {
			p, ok := productOf(key)
			if !ok || m.Of(p.decode(value)).Short != wanted.Short {
				continue
			}
			if with[key] == nil {
				with[key], values[key] = map[string]bool{}, map[string]bool{}
			}
			with[key][node.Name], values[key][value], left[node.Name] = true, true, true
		}
	}
	return fewest(with, values, left)
}

// fewest takes labels until no node is left.
func fewest(with, values map[string]map[string]bool, left map[string]bool) []corev1.NodeSelectorRequirement {
	var taken []corev1.NodeSelectorRequirement
	count := func(key string) (n int) {
		for name := range with[key] {
			if left[name] {
				n++
			}
		}
		return n
	}
	for len(left) > 0 {
		best := slices.MinFunc(slices.Collect(maps.Keys(with)), func(a, b string) int {
			return cmp.Or(count(b)-count(a), cmp.Compare(products[a].level, products[b].level), cmp.Compare(a, b))
		})
		taken = append(taken, corev1.NodeSelectorRequirement{
			Key: best, Operator: corev1.NodeSelectorOpIn, Values: slices.Sorted(maps.Keys(values[best])),
		})
		for name := range with[best] {
			delete(left, name)
		}
	}
	return taken
}

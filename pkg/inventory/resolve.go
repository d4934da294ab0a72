package inventory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Source says where an accelerator's name was found.
type Source string

// The sources, in the order in which they are believed.
const (
	SourceSpec     Source = "spec.accelerator"
	SourceLabel    Source = "label " + AcceleratorLabel
	SourceTemplate Source = "pod template"
	SourceNodes    Source = "nodes"
)

// Resolve finds the accelerator of a variant without overrides; Names.Resolve does
// with them.
func Resolve(spec, label string, template *corev1.PodTemplateSpec, nodes []*corev1.Node) (Name, Source, error) {
	return new(Names).Resolve(spec, label, template, nodes)
}

// Resolve finds the accelerator of a variant: what its spec says, else the label of
// the object, else a node selector or required node affinity of the template on a
// product label, else the nodes that its pods run on. Neither a guess nor a choice
// is made: where a source names several types, it is an error that says so. The
// zero Name without error means that no source says anything.
func (m *Names) Resolve(spec, label string, template *corev1.PodTemplateSpec, nodes []*corev1.Node) (Name, Source, error) {
	if n := m.Of(spec); n.Known() {
		return n, SourceSpec, nil
	}
	if n := m.Of(label); n.Known() {
		return n, SourceLabel, nil
	}
	resource := corev1.ResourceName("")
	if template != nil {
		resource = DeviceOf(podOf(template))
		if n, err := common(m.selected(&template.Spec)); err != nil {
			return Name{}, SourceTemplate, fmt.Errorf("the pod template selects %w: set spec.accelerator", err)
		} else if n.Known() {
			return n, SourceTemplate, nil
		}
	}
	carried := make([]Name, 0, len(nodes))
	for _, node := range nodes {
		if d, ok := m.Carried(node).used(resource); ok && d.Name.Known() {
			carried = append(carried, d.Name)
		}
	}
	n, err := common(carried)
	if err != nil {
		return Name{}, SourceNodes, fmt.Errorf("the pods run on nodes with %w: set spec.accelerator", err)
	}
	if !n.Known() {
		return Name{}, "", nil
	}
	// Where the pods happen to run names their type. That they need that very memory
	// or form is not said.
	n.MemoryGiB, n.Form = 0, ""
	return n, SourceNodes, nil
}

// used are the devices of the node that pods use which ask for the resource, or, if
// it is not known, the only devices of the node.
func (c *Carried) used(resource corev1.ResourceName) (Devices, bool) {
	if d, ok := c.Under(resource); ok || resource != "" || len(c.Devices) != 1 {
		return d, ok
	}
	return c.Devices[0], true
}

// selected are the accelerators that a pod's node selector and required node
// affinity name.
func (m *Names) selected(spec *corev1.PodSpec) []Name {
	var found []Name
	add := func(key, value string) {
		if p, ok := productOf(key); ok {
			if n := m.Of(p.decode(value)); n.Known() {
				found = append(found, n)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		add(key, spec.NodeSelector[key])
	}
	if required := requiredNodeAffinity(spec); required != nil {
		for _, term := range required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				if e.Operator == corev1.NodeSelectorOpIn {
					for _, v := range e.Values {
						add(e.Key, v)
					}
				}
			}
		}
	}
	part := selectedPart(spec.NodeSelector)
	for i := range found {
		found[i].MIG, found[i].Shared = cmp.Or(found[i].MIG, part.MIG), found[i].Shared || part.Shared
	}
	return found
}

// selectedPart is which part of a device a node selector names by a label of its own.
func selectedPart(selector map[string]string) Name {
	var part Name
	if len(selector) == 0 {
		return part
	}
	for i := range kinds {
		for _, l := range kinds[i].partitions {
			part.MIG = cmp.Or(part.MIG, profile(selector[l]))
		}
		for _, l := range kinds[i].sharing {
			part.Shared = part.Shared || selector[l] != ""
		}
	}
	return part
}

// common is what all names agree on. Names of different types are an error that
// names two of them; the zero Name means that there were none.
func common(names []Name) (Name, error) {
	if len(names) == 0 {
		return Name{}, nil
	}
	all := names[0]
	for _, n := range names[1:] {
		if n.Accelerator() != all.Accelerator() {
			return Name{}, fmt.Errorf("both %s and %s", all.Accelerator(), n.Accelerator())
		}
		if n.MemoryGiB != all.MemoryGiB {
			all.MemoryGiB = 0
		}
		if n.Form != all.Form {
			all.Form = ""
		}
	}
	return all, nil
}

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
		resource = DeviceOf(PodOf(template))
		selected, err := m.selected(&template.Spec)
		n := Name{}
		if err == nil {
			n, err = common(selected)
		}
		if err != nil {
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

// selected are the accelerators of the nodes that a pod's node selector and required
// node affinity allow; none where they allow any. Labels of one selector or term must
// all hold, values of one label and terms are alternatives. It is an error when no
// node can be all that is asked for.
func (m *Names) selected(spec *corev1.PodSpec) ([]Name, error) {
	var allowed []Name
	var err error
	for _, key := range slices.Sorted(maps.Keys(spec.NodeSelector)) {
		if allowed, err = narrowed(allowed, m.named(key, spec.NodeSelector[key])); err != nil {
			return nil, err
		}
	}
	if allowed, err = m.selectedByTerms(allowed, requiredNodeAffinity(spec)); err != nil {
		return nil, err
	}
	part := selectedPart(spec.NodeSelector)
	for i := range allowed {
		allowed[i].MIG, allowed[i].Shared = cmp.Or(allowed[i].MIG, part.MIG), allowed[i].Shared || part.Shared
	}
	return allowed, nil
}

// selectedByTerms are those of the accelerators that some term allows.
func (m *Names) selectedByTerms(allowed []Name, required *corev1.NodeSelector) ([]Name, error) {
	if required == nil || len(required.NodeSelectorTerms) == 0 {
		return allowed, nil
	}
	var found []Name
	var impossible error
	for _, term := range required.NodeSelectorTerms {
		of := allowed
		var err error
		for _, e := range term.MatchExpressions {
			if e.Operator == corev1.NodeSelectorOpIn && err == nil {
				of, err = narrowed(of, m.named(e.Key, e.Values...))
			}
		}
		switch {
		case err != nil:
			impossible = cmp.Or(impossible, err)
		case len(of) == 0:
			return nil, nil // any would do
		default:
			found = append(found, of...)
		}
	}
	if len(found) == 0 {
		return nil, impossible
	}
	return found, nil
}

// named are the accelerators that values of a label name; none where it is no product
// label, or a value names none.
func (m *Names) named(key string, values ...string) []Name {
	p, ok := productOf(key)
	if !ok {
		return nil
	}
	var found []Name
	for _, v := range values {
		if n := m.Of(p.decode(v)); n.Known() {
			found = append(found, n)
		}
	}
	return found
}

// narrowed is what both lists allow, where none allow any. Where they agree on types
// and not on forms, as labels of different makers may, their types count.
func narrowed(allowed, also []Name) ([]Name, error) {
	if len(allowed) == 0 || len(also) == 0 {
		return append(slices.Clone(allowed), also...), nil
	}
	for _, strictly := range [...]bool{true, false} {
		var both []Name
		for _, a := range allowed {
			for _, b := range also {
				if n, same := a.and(b); n.Known() && (same || !strictly) {
					both = append(both, n)
				}
			}
		}
		if len(both) > 0 {
			return both, nil
		}
	}
	return nil, fmt.Errorf("both %s and %s, which no node is", allowed[0].Accelerator(), also[0].Accelerator())
}

// and is the accelerator that both names describe, or the zero Name. It reports false
// where they agree on the type alone.
func (n Name) and(o Name) (both Name, same bool) {
	if n.Short != o.Short || n.MIG != "" && o.MIG != "" && n.MIG != o.MIG {
		return Name{}, false
	}
	whole, other := n.whole().Device(), o.whole().Device()
	n.MIG, n.Shared, n.Under = cmp.Or(n.MIG, o.MIG), n.Shared || o.Shared, cmp.Or(n.Under, o.Under)
	same = true
	if whole.MemoryGiB == 0 || other.MemoryGiB == 0 {
		n.MemoryGiB = max(whole.MemoryGiB, other.MemoryGiB)
	} else if whole.MemoryGiB != other.MemoryGiB {
		n.MemoryGiB, same = 0, false
	}
	if whole.Form == "" || other.Form == "" {
		n.Form = cmp.Or(whole.Form, other.Form)
	} else if whole.Form != other.Form {
		n.Form, same = "", false
	}
	return n, same
}

// selectedPart is which part of a device a node selector names by a label of its own.
func selectedPart(selector map[string]string) Name {
	var part Name
	if len(selector) == 0 {
		return part
	}
	for i := range families {
		for _, l := range families[i].partitions {
			part.MIG = cmp.Or(part.MIG, profile(selector[l]))
		}
		part.Shared = part.Shared || families[i].shares(selector)
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

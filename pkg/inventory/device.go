package inventory

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Devices is what a node offers of one resource.
type Devices struct {
	// Resource is the resource that counts them.
	Resource corev1.ResourceName
	// Name is unknown when no label says it, or when labels contradict each other.
	Name Name
	// Source is the label that gave the name.
	Source string
	// Count is the allocatable number. It is 0 on a node whose label is there before
	// its devices.
	Count int
	// Why says, for people, why the name is not known or the devices are not there.
	// Empty means that both are.
	Why string
	// Notes say what else of the labels is doubtful, and what was believed.
	Notes []string

	// oversold is set where the node offers more than its labels say that it has, times
	// as often as they say that each is offered: something else shares them.
	oversold bool
	// unlabelled is set where the labels say nothing of the devices at all.
	unlabelled bool
	// slice is the name of devices that are part of a slice over several hosts, which
	// have no Name because they are to be had with those of the other hosts alone.
	slice Name
}

// offer is a device resource of a node.
type offer struct {
	convention
	resource corev1.ResourceName
	count    int
	// all are the devices of the node, with those that are not allocatable.
	all int
	// alone is set when the node offers devices of one kind only, so that a label that
	// names devices of any maker means these.
	alone bool
	// registered is how many devices there are by the node's annotations, or 0.
	registered int
	// besideSlices and besideShared are set when the node offers slices, or shared
	// devices, of the same kind under names of their own.
	besideSlices, besideShared bool
}

// said is what one label says.
type said struct {
	name   Name
	source string
	level  level
}

// compare orders what labels say by how much it is worth. Within a level, a text that
// no rule knows, such as a pool's name, contradicts none that a rule knows.
func (s said) compare(other said) int {
	if s.level != other.level {
		return int(s.level) - int(other.level)
	}
	unlisted := func(n Name) int {
		if n.Unlisted {
			return 1
		}
		return 0
	}
	return unlisted(s.name) - unlisted(other.name)
}

// devices reads what the labels say of an offer. The level of a label decides
// between two that contradict each other, because it says who knows better; within
// one level nobody does, and the name stays unknown. A higher level that is
// contradicted by a lower one is believed, and a note says so; an override is there
// to contradict.
func (m *Names) devices(labels map[string]string, o offer) Devices {
	d := Devices{Resource: o.resource, Count: o.count}
	all, notes := m.hear(labels, o)
	d.Notes = notes
	if len(all) == 0 {
		d.Why = "no label names the type of its " + string(o.resource) + " yet"
		if why := o.expects(labels); why != "" {
			d.Why = why
			return d
		}
		var part Name
		part.refine(labels, o)
		most := o.most(labels, part)
		d.unlabelled = part == Name{} && o.spans(labels) == "" && (most == 0 || o.all <= most)
		return d
	}
	best := slices.MinFunc(all, said.compare)
	name, err := best.name.counted(o.convention, o.resource)
	if err != nil && best.level > byOverride {
		d.Notes = append(d.Notes, fmt.Sprintf("label %s: %v", best.source, err))
	}
	for _, s := range all {
		switch {
		case s.name.Short == best.name.Short:
			name.adopt(s.name, o)
		case s.compare(best) == 0:
			d.Why = fmt.Sprintf("labels contradict each other: %s says %s, %s says %s", best.source, best.name, s.source, s.name)
			return d
		case best.level > byOverride:
			d.Notes = append(d.Notes, fmt.Sprintf("label %s says %s and %s says %s; the first is believed", best.source, best.name, s.source, s.name))
		case s.level == byDiscovery:
			name.adopt(s.name, o)
		}
	}
	name.refine(labels, o)
	if most := o.most(labels, name); most > 0 && o.all > most {
		d.oversold = true
		d.Notes = append(d.Notes, fmt.Sprintf("it offers %d %s, and its labels say %d: they are shared by something that no label names, and no whole devices",
			o.all, o.resource, most))
	} else if why := o.cut(labels, name); why != "" {
		d.oversold = true
		d.Notes = append(d.Notes, why)
	}
	if d.Why = o.confused(labels, name, best); d.Why != "" {
		return d
	}
	if d.Why = o.spans(labels); d.Why != "" {
		d.slice = name
		return d
	}
	d.Name, d.Source = name, best.source
	return d
}

// adopt takes over which part of a device another label means. Whoever names a type
// over that label, such as an override, does not say that a slice is a whole device.
func (n *Name) adopt(other Name, o offer) {
	if o.counts == wholeDevices && n.MIG == "" {
		n.MIG = other.MIG
	}
	n.Shared = n.Shared || other.Shared
}

// hear is what the labels say of the offer, in the order in which they are believed
// within a level, and what of them cannot be used.
func (m *Names) hear(labels map[string]string, o offer) (all []said, notes []string) {
	listen := func(raw, source string, level level, anyMaker bool) {
		name, overridden := m.read(raw)
		if !name.Known() {
			return
		}
		if anyMaker && !o.alone && name.maker != o.family.maker {
			if name.maker == unknownMaker {
				notes = append(notes, fmt.Sprintf("label %s says %s and does not say of which of the node's devices", source, name))
			}
			return
		}
		if overridden {
			level = min(level, byOverride)
		}
		if o.counts == deviceSlices && level != byNode && source != o.ownProduct() {
			// What the other label says of a part is said of the devices, not of their
			// slices.
			name.MIG, name.Shared = "", false
		}
		all = append(all, said{name, source, level})
	}
	if v := labels[AcceleratorLabel]; v != "" {
		listen(v, AcceleratorLabel, byNode, true)
	}
	f := o.family
	if f.named {
		listen(strings.TrimPrefix(string(o.resource), domainOf(f.slices)), string(o.resource), byDiscovery, false)
	}
	if f.described && o.counts == deviceSlices {
		if v := labels[o.ownProduct()]; v != "" {
			listen(v, o.ownProduct(), byDiscovery, false)
		}
	}
	for i := range f.products {
		p := &f.products[i]
		if p.counted {
			for _, c := range p.countedIn(labels) {
				listen(c.value, c.key, p.level, p.anyMaker)
			}
		} else if v := p.decode(labels[p.key]); v != "" {
			listen(v, p.key, p.level, p.anyMaker)
		}
	}
	return all, notes
}

// decode is the product that the label's value names, or empty.
func (p *product) decode(value string) string {
	if p.ids == nil || value == "" {
		return value
	}
	return p.ids[strings.ToUpper(value)]
}

type counted struct{ key, value string }

// countedIn are the products of the labels that carry them in their keys, as a node
// with several has them, sorted.
func (p *product) countedIn(labels map[string]string) []counted {
	var found []counted
	for key, value := range labels {
		rest, ok := strings.CutPrefix(key, p.key)
		if !ok {
			continue
		}
		// Intel's keys have .count and .present after the id; the number is AMD's value.
		rest, _, _ = strings.Cut(rest, ".")
		if n, err := strconv.Atoi(value); err == nil && n <= 0 || value == "false" {
			continue
		}
		if rest = p.decode(rest); rest != "" {
			found = append(found, counted{key, rest})
		}
	}
	slices.SortFunc(found, func(a, b counted) int { return strings.Compare(a.key, b.key) })
	return found
}

// domainOf is the part of a resource's name up to the slash.
func domainOf(resource string) string { return resource[:strings.IndexByte(resource, '/')+1] }

// described is the resource after which the labels that describe an offer are
// called.
func (o *offer) described() corev1.ResourceName {
	return corev1.ResourceName(strings.TrimSuffix(string(o.resource), ".shared"))
}

// ownProduct is the label that names the product of these very devices.
func (o *offer) ownProduct() string { return string(o.described()) + ".product" }

// counted is the name of devices as the resource counts them: slices by their
// profile, shared devices as such, and those of a maker's further resources by them. It is an error, beside the name by the resource,
// when the name says that it is another slice.
func (n Name) counted(c convention, resource corev1.ResourceName) (Name, error) {
	var err error
	switch c.counts {
	case sharedDevices:
		n.Shared = true
	case deviceSlices:
		rest := strings.TrimPrefix(string(resource), c.family.slices)
		whole, renamed := strings.CutSuffix(rest, ".shared")
		slice := profile(whole)
		if slice == "" {
			slice = "core"
		}
		if n.MIG != "" && n.MIG != slice {
			err = fmt.Errorf("%s is no %s: name the accelerator without its slice, or the same slice", n, resource)
		}
		n.MIG, n.Shared, n.Under = slice, n.Shared || renamed, ""
	case wholeDevices:
		under := c.family.under(resource)
		if n.Under != "" && n.Under != under {
			err = fmt.Errorf("%s is no %s: name the accelerator without the resource, or the same resource", n, resource)
		}
		n.Under = under
		if c.family.named && n.maker != c.family.maker {
			err = fmt.Errorf("%s is no %s", n, resource)
		}
	}
	return n, err
}

// refine adds what the other labels say of the device.
func (n *Name) refine(labels map[string]string, o offer) {
	f := o.family
	if o.counts == wholeDevices && n.MIG == "" {
		for _, l := range f.partitions {
			if n.MIG = profile(labels[l]); n.MIG != "" {
				break
			}
		}
	}
	n.Shared = n.Shared || f.shares(labels)
	if f.described && !o.besideShared {
		base := string(o.described())
		replicas, err := strconv.Atoi(labels[base+".replicas"])
		strategy := labels[base+".sharing-strategy"]
		n.Shared = n.Shared || err == nil && replicas > 1 || strategy != "" && strategy != "none"
	}
	if n.MIG != "" || n.MemoryGiB != 0 {
		return
	}
	if f.described {
		n.MemoryGiB = memory{key: string(o.described()) + ".memory", perGiB: 1024}.in(labels)
	}
	for i := 0; i < len(f.memory) && n.MemoryGiB == 0; i++ {
		n.MemoryGiB = f.memory[i].in(labels)
	}
}

// most is how many of the resource the labels let expect: the devices that they count,
// times as often as they say that each is offered. 0 is that they do not say.
func (o *offer) most(labels map[string]string, n Name) int {
	if o.registered > 0 && o.counts == wholeDevices && n.MIG == "" {
		return o.registered
	}
	f, often := o.family, 1
	for _, label := range f.clients {
		often = max(often, number(labels[label]))
	}
	if f.described {
		base := string(o.described())
		often = max(often, number(labels[base+".replicas"]))
		if count := number(labels[base+".count"]); count > 0 {
			return capacity.Times(count, often)
		}
	}
	if o.counts == deviceSlices || n.MIG != "" || n.Shared && often == 1 {
		return 0 // of how many parts of the machine's devices nothing is said
	}
	for _, label := range f.numbers {
		if count := number(labels[label]); count > 0 {
			return capacity.Times(count, often)
		}
	}
	return 0
}

// number is the number that a label has, up to the most devices of a node, or 0.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return min(max(n, 0), mostDevices)
}

// migConfig is the label by which NVIDIA's operator is told to cut devices.
const migConfig = "nvidia.com/mig.config"

// expects says what the labels let expect that is not there yet, of an offer that no
// label names.
func (o *offer) expects(labels map[string]string) string {
	if o.family.maker == nvidia && labels[migConfig] != "" {
		return fmt.Sprintf("%s is %s, and nvidia.com/gpu.product is not there yet", migConfig, labels[migConfig])
	}
	return ""
}

// confused says why a name cannot be trusted, or empty: what the label and the
// resources say of slices and shares does not go together.
func (o *offer) confused(labels map[string]string, n Name, from said) string {
	switch {
	case n.MIG == invalidSlices:
		return fmt.Sprintf("label %s says that the slices of its %s are not all alike, or not there", from.source, o.resource)
	case o.counts != wholeDevices:
		return ""
	case o.besideSlices && n.MIG != "":
		return fmt.Sprintf("label %s says that %s counts slices (%s), and the node offers slices by their own names too", from.source, o.resource, n)
	case o.besideShared && n.Shared:
		return fmt.Sprintf("label %s says that %s is shared, and the node offers %s too", from.source, o.resource, o.family.shared)
	case o.family.maker == nvidia && from.level >= byCloud && cuts(labels[migConfig]):
		return fmt.Sprintf("%s is %s, and nvidia.com/gpu.product does not say yet whether %s counts slices", migConfig, labels[migConfig], o.resource)
	}
	return ""
}

// cuts says whether a MIG configuration cuts any devices.
func cuts(config string) bool { return config != "" && config != "all-disabled" }

// offers are the device resources of which the node has any, in the order of the
// table, and its further extended resources, by name.
func offers(status *corev1.NodeStatus) (found []offer, further []extended) {
	for resource, quantity := range status.Allocatable {
		if quantity.Sign() <= 0 {
			continue
		}
		if c, ok := conventionOf(resource); ok {
			count := int(amount(quantity, mostDevices))
			all := max(count, int(amount(status.Capacity[resource], mostDevices)))
			found = append(found, offer{convention: c, resource: resource, count: count, all: all, alone: true})
		} else if isExtended(resource) {
			further = append(further, extended{resource, amount(quantity, mostAmount)})
		}
	}
	slices.SortFunc(further, compareExtended)
	if len(found) < 2 {
		return found, further
	}
	slices.SortFunc(found, func(a, b offer) int {
		if a.rank != b.rank {
			return a.rank - b.rank
		}
		return strings.Compare(string(a.resource), string(b.resource))
	})
	for i := range found {
		for j := range found {
			if i == j {
				continue
			}
			sameFamily := found[i].family == found[j].family
			found[i].alone = found[i].alone && sameFamily
			found[i].besideSlices = found[i].besideSlices || sameFamily && found[j].counts == deviceSlices
			found[i].besideShared = found[i].besideShared || sameFamily && found[j].counts == sharedDevices
		}
	}
	return found, further
}

// exhausted are the devices and further extended resources that the node names and of
// which it has none now.
func exhausted(status *corev1.NodeStatus) []corev1.ResourceName {
	var none []corev1.ResourceName
	for resource, quantity := range status.Allocatable {
		if quantity.Sign() <= 0 && (isExtended(resource) || IsDevice(resource)) {
			none = append(none, resource)
		}
	}
	slices.Sort(none)
	return none
}

// announced reads the labels of a node whose devices are not there: not yet, or
// because they are served through resource claims.
func (m *Names) announced(labels map[string]string) (Devices, bool) {
	if !speaks(labels) {
		return Devices{}, false
	}
	var found Devices
	for i := range families {
		f := &families[i]
		if len(f.whole) == 0 {
			continue
		}
		c := conventions[f.whole[0]]
		d := m.devices(labels, offer{convention: c, resource: f.whole[0], alone: true})
		if d.Name.Known() && (found.Resource == "" || d.Name.maker == f.maker && found.Name.maker != familyMaker(found.Resource)) {
			found = d
		}
	}
	if found.Resource == "" {
		return Devices{}, false
	}
	found.Why = fmt.Sprintf("label %s says %s, and the node offers no %s: its device plugin is not there yet, or the devices are served through resource claims",
		found.Source, found.Name, found.Resource)
	return found, true
}

func familyMaker(resource corev1.ResourceName) maker { return conventions[resource].family.maker }

// speaks says quickly whether any label may name a product.
func speaks(labels map[string]string) bool {
	for key := range labels {
		if _, ok := products[key]; ok {
			return true
		}
		for _, prefix := range countedPrefixes {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
	}
	return false
}

var countedPrefixes = func() []string {
	all := map[string]bool{}
	for i := range families {
		for _, p := range families[i].products {
			if p.counted {
				all[p.key] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}()

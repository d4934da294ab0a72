package inventory

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Carried is what a node carries by its Node object alone, whatever pods hold of it.
// It never changes, so that it can be kept for as long as the Node object and the
// generation of the names are the same.
type Carried struct {
	// Devices are the node's devices, one entry per resource, in the order of the
	// table of conventions. The first ones are those that placement.Node has itself,
	// the others it has beside.
	Devices []Devices
	// Out says why the node takes no new pods at all, as Out does.
	Out string
	// Notes say what of the node is doubtful, and what was made of it.
	Notes []string

	// empty is the node with nothing on it. Its Beside is shared and never changes.
	empty placement.Node
	// extended are the extended resources that are no devices, by name.
	extended []extended
	// exhausted are the devices and extended resources of which the node offers none,
	// and names them.
	exhausted []corev1.ResourceName
	// tainted is set when the node has taints that keep pods away.
	tainted bool
	// discouraging are its taints that ask pods to go elsewhere.
	discouraging []corev1.Taint
}

// Bounds of what is believed of a node, so that sums of absurd amounts stay numbers.
// They are beyond any machine; a request beyond most is more than any node has.
const (
	mostDevices = 1 << 20
	mostPods    = 1 << 20
	mostAmount  = 1 << 53
	most        = 1 << 60
)

// Carried reads a node.
func (m *Names) Carried(node *corev1.Node) *Carried {
	c := &Carried{Out: Out(node), tainted: slices.ContainsFunc(node.Spec.Taints, keepsAway)}
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectPreferNoSchedule {
			c.discouraging = append(c.discouraging, t)
		}
	}
	offered, further := offers(&node.Status)
	c.extended, c.exhausted = further, exhausted(&node.Status)
	for _, o := range offered {
		if o.family.maker == nvidia {
			o.registered = registered(node.Annotations)
		}
		c.Devices = append(c.Devices, m.devices(node.Labels, o))
	}
	if len(c.Devices) == 0 {
		if d, ok := m.announced(node.Labels); ok {
			c.Devices = append(c.Devices, d)
		}
	}
	allocatable := node.Status.Allocatable
	holds := placement.Resources{
		MilliCPU:    milli(*allocatable.Cpu(), mostAmount),
		MemoryBytes: amount(*allocatable.Memory(), mostAmount),
		Pods:        int(amount(*allocatable.Pods(), mostPods)),
	}
	c.empty = placement.Node{Name: node.Name, Out: c.Out}
	for i := range c.Devices {
		d := &c.Devices[i]
		device := d.Name.Device()
		if i == 0 {
			c.empty.Accelerator, c.empty.MemoryGiB, c.empty.Form = device.Accelerator, device.MemoryGiB, device.Form
			holds.Devices = d.Count
			continue
		}
		c.empty.Beside = append(c.empty.Beside, placement.Pool{Device: device, Allocatable: d.Count, Free: d.Count})
	}
	c.empty.Allocatable, c.empty.Free = holds, holds
	c.Notes = absurd(allocatable)
	return c
}

// Used is what pods hold of a node. Devices are by resource; resources that count no
// devices are ignored.
type Used struct {
	MilliCPU, MemoryBytes int64
	Pods                  int
	Devices               map[corev1.ResourceName]int64
}

// View is the node as the capacity model sees it while pods hold that much of it.
// Devices beside the first are put into scratch, which is then part of the result;
// with enough room in it, nothing is allocated.
func (c *Carried) View(used Used, scratch []placement.Pool) (n placement.Node) {
	n = c.empty
	n.Free.MilliCPU = less(n.Free.MilliCPU, used.MilliCPU)
	n.Free.MemoryBytes = less(n.Free.MemoryBytes, used.MemoryBytes)
	n.Free.Pods = int(less(int64(n.Free.Pods), int64(used.Pods)))
	if len(c.Devices) == 0 {
		return n
	}
	n.Free.Devices = int(less(int64(n.Free.Devices), used.Devices[c.Devices[0].Resource]))
	if len(n.Beside) > 0 {
		n.Beside = append(scratch[:0], n.Beside...)
		for i := range n.Beside {
			n.Beside[i].Free = int(less(int64(n.Beside[i].Free), used.Devices[c.Devices[i+1].Resource]))
		}
	}
	return n
}

// Cordoned reports whether nothing keeps new pods away from the node but that people took
// it out of use, and perhaps taints of the node, of which Out says nothing then.
func (c *Carried) Cordoned() bool { return c.Out == cordoned }

// Discourages reports whether a taint asks pods with these tolerations to go elsewhere
// where they can. It is no reason to count the node any less.
func (c *Carried) Discourages(tolerations []corev1.Toleration) bool {
	for i := range c.discouraging {
		if !quietly(corev1helpers.TolerationsTolerateTaint, tolerations, &c.discouraging[i]) {
			return true
		}
	}
	return false
}

// Under is what the node offers under the resource. It reports false when it offers
// none.
func (c *Carried) Under(resource corev1.ResourceName) (Devices, bool) {
	for i := range c.Devices {
		if c.Devices[i].Resource == resource {
			return c.Devices[i], true
		}
	}
	return Devices{}, false
}

// Elsewhere says why devices that the model takes for those that are asked for are
// not what a pod gets that asks for the resource, or empty: they are offered under
// another one.
func (c *Carried) Elsewhere(wanted capacity.Device, resource corev1.ResourceName) string {
	for i := range c.Devices {
		d := &c.Devices[i]
		if wanted.Covers(d.Name.Device()) {
			if d.Resource == resource {
				return ""
			}
			return "offers them as " + string(d.Resource)
		}
	}
	return ""
}

// Reason says in one line, for people, what keeps pods away from the node or makes
// its numbers doubtful. Empty means that there is nothing to say.
func (c *Carried) Reason() string {
	var parts []string
	add := func(said ...string) {
		for _, s := range said {
			// Two kinds of devices may have the same to say of one label.
			if s != "" && !slices.Contains(parts, s) {
				parts = append(parts, s)
			}
		}
	}
	add(c.Out)
	for i := range c.Devices {
		add(c.Devices[i].Why)
	}
	for i := range c.Devices {
		add(c.Devices[i].Notes...)
	}
	add(c.Notes...)
	return strings.Join(parts, "; ")
}

// less is what is left of free when that much of it is taken. An amount below none
// is none.
func less(free, taken int64) int64 {
	return max(free-min(max(taken, 0), most), -most)
}

// amount is a quantity from 0 to the bound.
func amount(q resource.Quantity, bound int64) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case q.CmpInt64(bound) >= 0:
		return bound
	default:
		return q.Value()
	}
}

// milli is a quantity in thousandths, from 0 to the bound.
func milli(q resource.Quantity, bound int64) int64 {
	switch {
	case q.Sign() <= 0:
		return 0
	case q.CmpInt64(bound/1000) >= 0:
		return bound
	default:
		return q.MilliValue()
	}
}

// absurd names the amounts that no node can have, and what was made of them.
func absurd(allocatable corev1.ResourceList) []string {
	var notes []string
	for name, q := range allocatable {
		bound := int64(mostAmount)
		switch {
		case name == corev1.ResourcePods || IsDevice(name):
			bound = mostDevices
		case name == corev1.ResourceCPU:
			bound = mostAmount / 1000
		case name != corev1.ResourceMemory:
			continue
		}
		if q.Sign() < 0 {
			notes = append(notes, "allocatable "+string(name)+" is negative and counts as none")
		} else if q.CmpInt64(bound) > 0 {
			notes = append(notes, "allocatable "+string(name)+" is more than any node has and was bounded")
		}
	}
	slices.Sort(notes)
	return notes
}

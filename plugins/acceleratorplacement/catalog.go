package acceleratorplacement

import (
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// carried is what a Node object carries, as it was read with the names of one
// generation. It never changes.
type carried struct {
	*inventory.Carried
	node       *corev1.Node
	generation uint64
	// devices are those of Carried.Devices, in the model's terms.
	devices []capacity.Device
}

func carriedBy(names *inventory.Names, node *corev1.Node) *carried {
	c := &carried{node: node, generation: names.Generation()}
	c.Carried = names.Carried(node)
	for i := range c.Devices {
		c.devices = append(c.devices, c.Devices[i].Name.Device())
	}
	return c
}

// pool is which of the node's devices a pod gets that asks for devices of that kind
// by the resource, or -1.
func (c *carried) pool(wanted capacity.Device, resource corev1.ResourceName) int {
	for i := range c.devices {
		if wanted.Covers(c.devices[i]) {
			// The model takes the first that would do; what is offered under another
			// resource is nothing to this pod.
			if c.Devices[i].Resource != resource {
				return -1
			}
			return i
		}
	}
	return -1
}

// under is which of the node's devices are offered under the resource, or -1.
func (c *carried) under(resource corev1.ResourceName) int {
	for i := range c.Devices {
		if c.Devices[i].Resource == resource {
			return i
		}
	}
	return -1
}

// spanning is which of the node's devices are offered under the resource as parts of a
// slice over several hosts, or -1.
func (c *carried) spanning(resource corev1.ResourceName) int {
	if i := c.under(resource); i >= 0 && c.Devices[i].Spanning() {
		return i
	}
	return -1
}

// catalog remembers what the nodes of the snapshot carry, because Node objects change
// seldom and pods come often. It is only a memory: what it does not know is read from
// the node.
type catalog struct {
	mu sync.Mutex
	// nodes is the snapshot's list that the slots are of.
	nodes []fwk.NodeInfo
	slots []*atomic.Pointer[carried]
	// objects are the Node objects that the slots are of, as the names of one
	// generation read them. They are kept beside the slots because they are compared
	// for every pod.
	objects    []*corev1.Node
	generation uint64
	// last is what was seen last.
	last *snapshot

	byName atomic.Pointer[map[string]*atomic.Pointer[carried]]
}

// snapshot is the nodes with devices among those of a snapshot. Their order is the
// snapshot's. It never changes but for what it remembers.
type snapshot struct {
	infos []fwk.NodeInfo
	what  []*carried
	// others is how many further nodes there are: without devices, and labels that
	// announce any.
	others int

	mu    sync.Mutex
	names map[string]sets.Set[string]
}

// of is what the node carries.
func (c *catalog) of(names *inventory.Names, node *corev1.Node) *carried {
	if slots := c.byName.Load(); slots != nil {
		if slot := (*slots)[node.Name]; slot != nil {
			if known := slot.Load(); known != nil && known.node == node && known.generation == names.Generation() {
				return known
			}
		}
	}
	return carriedBy(names, node)
}

// snapshotOf brings the catalog up to the snapshot and returns its nodes with devices.
func (c *catalog) snapshotOf(names *inventory.Names, nodes []fwk.NodeInfo) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := c.align(nodes)
	generation := names.Generation()
	if generation != c.generation {
		c.generation = generation
		clear(c.objects)
	}
	objects := c.objects[:len(nodes)]
	for i, info := range nodes {
		node := info.Node()
		if objects[i] == node {
			continue
		}
		objects[i], changed = node, true
		if known := c.slots[i].Load(); known == nil || known.node != node || known.generation != generation {
			c.slots[i].Store(carriedBy(names, node))
		}
	}
	if changed || c.last == nil {
		c.last = c.withDevices()
	}
	return c.last
}

// align gives every node of the snapshot its slot. The framework keeps the list while
// no node comes or goes.
func (c *catalog) align(nodes []fwk.NodeInfo) (changed bool) {
	if len(nodes) == len(c.nodes) && (len(nodes) == 0 || &nodes[0] == &c.nodes[0]) {
		return false
	}
	var old map[string]*atomic.Pointer[carried]
	if known := c.byName.Load(); known != nil {
		old = *known
	}
	byName := make(map[string]*atomic.Pointer[carried], len(nodes))
	c.nodes, c.slots, c.objects = nodes, make([]*atomic.Pointer[carried], len(nodes)), make([]*corev1.Node, len(nodes))
	for i, info := range nodes {
		name := info.Node().Name
		slot := old[name]
		if slot == nil {
			slot = &atomic.Pointer[carried]{}
		}
		c.slots[i], byName[name] = slot, slot
	}
	c.byName.Store(&byName)
	return true
}

func (c *catalog) withDevices() *snapshot {
	s := &snapshot{names: map[string]sets.Set[string]{}}
	for i := range c.slots {
		if what := c.slots[i].Load(); len(what.Devices) > 0 {
			s.infos, s.what = append(s.infos, c.nodes[i]), append(s.what, what)
		} else {
			s.others++
		}
	}
	return s
}

// maxRemembered bounds how many different requests are remembered.
const maxRemembered = 256

// candidates are the names of the nodes that have devices which would do, free or
// not. The framework copies the set before it changes it.
func (s *snapshot) candidates(w *preFilterState) sets.Set[string] {
	if w.own != nil {
		// The nodes of one variant are not those of another.
		return s.choices(w)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	key := w.key()
	if found, ok := s.names[key]; ok {
		return found
	}
	found := s.choices(w)
	if len(s.names) < maxRemembered {
		s.names[key] = found
	}
	return found
}

// choices is candidates, looked for.
func (s *snapshot) choices(w *preFilterState) sets.Set[string] {
	found := sets.New[string]()
	for _, what := range s.what {
		if _, _, ok := w.choose(what); ok {
			found.Insert(what.node.Name)
		}
	}
	return found
}

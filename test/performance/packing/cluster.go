package main

import "slices"

// State is what matters of a node: its model, free CPU and the free thousandths of
// its devices, in ascending order. Devices beyond Count are 0.
type State struct {
	Model    uint8
	Count    uint8
	MilliCPU int32
	Free     [maxDevices]uint16
}

// devices are the free thousandths of the node's devices, in ascending order.
func (s *State) devices() []uint16 { return s.Free[:s.Count] }

// free is the sum over the devices, in thousandths.
func (s *State) free() int {
	sum := 0
	for _, d := range s.devices() {
		sum += int(d)
	}
	return sum
}

// empty is the number of devices of which nothing is taken.
func (s *State) empty() int {
	n := 0
	for i := int(s.Count) - 1; i >= 0 && s.Free[i] == whole; i-- {
		n++
	}
	return n
}

// fits says whether the class's CPU, devices and model are there.
func (s *State) fits(c *Class) bool {
	switch {
	case int64(s.MilliCPU) < c.MilliCPU:
		return false
	case c.Devices == 0:
		return true
	case !c.Models.has(s.Model):
		return false
	case c.partial():
		return s.Count > 0 && int(s.Free[s.Count-1]) >= c.Share
	default:
		return s.empty() >= c.Devices
	}
}

// take places a pod of the class: a share on the device at the index, whole devices on
// empty ones.
func (s *State) take(c *Class, device int) {
	s.MilliCPU -= int32(c.MilliCPU)
	if c.partial() {
		s.lower(device, uint16(c.Share))
		return
	}
	// The empty ones are the last, so what is taken of them becomes the first.
	n := int(s.Count)
	copy(s.Free[c.Devices:n], s.Free[:n-c.Devices])
	clear(s.Free[:c.Devices])
}

// lower takes a share of the device at the index and keeps the order.
func (s *State) lower(i int, share uint16) {
	rest := s.Free[i] - share
	for ; i > 0 && s.Free[i-1] > rest; i-- {
		s.Free[i] = s.Free[i-1]
	}
	s.Free[i] = rest
}

// options are the devices on which a pod of the class could go, one for each different
// outcome: the indexes of devices for a share, a single 0 otherwise. The state must fit.
func (s *State) options(c *Class, buffer []int) []int {
	buffer = buffer[:0]
	if !c.partial() {
		return append(buffer, 0)
	}
	for i, free := range s.devices() {
		if int(free) >= c.Share && (i == 0 || free != s.Free[i-1]) {
			buffer = append(buffer, i)
		}
	}
	return buffer
}

// Member is a node in a replay.
type Member struct {
	State
	MemoryMiB int64
	// Version is at least 1 and changes whenever the state does.
	Version int32
	// Order is the free thousandths in the order of the devices, which only decides ties
	// of a policy that counts in whole points.
	Order [maxDevices]uint16
}

// Cluster is all nodes in the order that breaks ties.
type Cluster struct {
	Members   []Member
	Allocated int64 // of the devices, in thousandths
	Capacity  int64
}

func newCluster(s *Study, order []int) *Cluster {
	c := &Cluster{Capacity: s.capacity, Members: make([]Member, len(order))}
	for i, n := range order {
		node := &s.Nodes[n]
		m := &c.Members[i]
		*m = Member{MemoryMiB: node.MemoryMiB, Version: 1, State: State{Model: s.modelOf[n], Count: uint8(node.Devices), MilliCPU: int32(node.MilliCPU)}}
		for d := range node.Devices {
			m.Free[d], m.Order[d] = whole, whole
		}
	}
	return c
}

// fits adds memory to what State.fits asks.
func (m *Member) fits(c *Class, p *Pod) bool {
	return m.MemoryMiB >= p.MemoryMiB && m.State.fits(c)
}

// Choice is a node and, for shares, the free thousandths of the device to take.
type Choice struct {
	Node int
	Free uint16
}

// place puts a pod on the chosen node. It must fit.
func (c *Cluster) place(p *Pod, class *Class, choice Choice) {
	m := &c.Members[choice.Node]
	device := 0
	if class.partial() {
		device = slices.Index(m.devices(), choice.Free)
		m.Order[slices.Index(m.Order[:m.Count], choice.Free)] -= uint16(class.Share)
	} else {
		for i, left := 0, class.Devices; left > 0; i++ {
			if m.Order[i] == whole {
				m.Order[i] = 0
				left--
			}
		}
	}
	m.take(class, device)
	m.MemoryMiB -= p.MemoryMiB
	m.Version++
	c.Allocated += p.Demand()
}

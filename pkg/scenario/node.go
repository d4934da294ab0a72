package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
)

// The bounds of what a person means.
const (
	mostNodes   = 100_000
	mostDevices = 1_024
	defaultPods = 110
	// plenty is what a node has of what nobody has counted: CPU and memory.
	plenty = math.MaxInt64 / 1024
)

// nodes makes the nodes of some groups, sorted by name.
func nodes(at string, groups []nodeGroup) (*placement.Cluster, error) {
	made, seen, total := &placement.Cluster{}, map[string]bool{}, 0
	for i := range groups {
		g := &groups[i]
		at := index(at, i)
		if err := g.check(at); err != nil {
			return nil, err
		}
		if seen[g.Name] {
			return nil, fmt.Errorf("%s is %q, as that of another group: expected a name of its own", key(at, "name"), g.Name)
		}
		seen[g.Name] = true
		if total += g.count(); total > mostNodes {
			return nil, fmt.Errorf("%s: with it there are %d nodes: expected at most %d", at, total, mostNodes)
		}
		made.Nodes = append(made.Nodes, g.nodes()...)
	}
	if total == 0 {
		return nil, fmt.Errorf("%s has no node: expected at least one", at)
	}
	slices.SortFunc(made.Nodes, func(a, b placement.Node) int { return strings.Compare(a.Name, b.Name) })
	return made, nil
}

func (g *nodeGroup) count() int {
	if g.Count == nil {
		return 1
	}
	return *g.Count
}

func (g *nodeGroup) check(at string) error {
	wrong := func(name, format string, args ...any) error {
		return fmt.Errorf("%s %s", key(at, name), fmt.Sprintf(format, args...))
	}
	switch {
	case g.Name == "":
		return wrong("name", "is missing: expected a name for the nodes of the group")
	case g.count() < 0:
		return wrong("count", "is %d: expected a number of nodes, at least 0", g.count())
	case g.Devices < 0 || g.Devices > mostDevices:
		return wrong("devices", "is %d: expected the devices of one node, from 0 to %d", g.Devices, mostDevices)
	case g.Devices > 0 && !inventory.Normalize(g.Accelerator).Known():
		return wrong("accelerator", "is %q: expected the type of the node's devices, such as H100", g.Accelerator)
	case g.Devices == 0 && g.Accelerator != "":
		return wrong("devices", "is missing: expected how many %s one node has", g.Accelerator)
	case g.CPU != nil && g.CPU.Sign() < 0:
		return wrong("cpu", "is %s: expected at least 0", g.CPU)
	case g.Memory != nil && g.Memory.Sign() < 0:
		return wrong("memory", "is %s: expected at least 0", g.Memory)
	case g.Pods != nil && *g.Pods < 0:
		return wrong("pods", "is %d: expected at least 0", *g.Pods)
	case len(g.Used) > 0 && g.Busy != nil:
		return wrong("busy", "and used are both given: expected one of them")
	}
	for i, used := range g.Used {
		if used < 0 || used > g.Devices {
			return fmt.Errorf("%s is %d: expected from 0 to the node's %d devices", index(key(at, "used"), i), used, g.Devices)
		}
	}
	return nil
}

// nodes are those of one group, with what other work holds of them.
func (g *nodeGroup) nodes() []placement.Node {
	device := inventory.Normalize(g.Accelerator).Device()
	all := placement.Resources{
		Devices: g.Devices, MilliCPU: milli(g.CPU, plenty), MemoryBytes: bytes(g.Memory, plenty), Pods: defaultPods,
	}
	if g.Pods != nil {
		all.Pods = *g.Pods
	}
	held := g.held()
	made := make([]placement.Node, g.count())
	digits := len(fmt.Sprint(g.count() - 1))
	for i := range made {
		made[i] = placement.Node{
			Name:        fmt.Sprintf("%s-%0*d", g.Name, digits, i),
			Accelerator: device.Accelerator, MemoryGiB: device.MemoryGiB, Form: device.Form,
			Allocatable: all, Free: all.Minus(part(all, held[i])),
		}
	}
	return made
}

// groupOf is the group of a node, by its name.
func groupOf(node string) string {
	group := strings.TrimRight(node, "0123456789")
	return strings.TrimSuffix(group, "-")
}

// part is what work on so many devices of a node holds: of CPU and memory the same
// share as of the devices, and a pod for each.
func part(all placement.Resources, devices int) placement.Resources {
	if devices == 0 {
		return placement.Resources{}
	}
	share := func(n int64) int64 { return int64(float64(n) * float64(devices) / float64(all.Devices)) }
	return placement.Resources{
		Devices: devices, MilliCPU: share(all.MilliCPU), MemoryBytes: share(all.MemoryBytes), Pods: min(devices, all.Pods),
	}
}

// held is how many devices of each node other work holds.
func (g *nodeGroup) held() []int {
	held := make([]int, g.count())
	switch {
	case g.Busy != nil:
		return g.spread()
	case len(g.Used) > 0:
		for i := range held {
			held[i] = g.Used[i%len(g.Used)]
		}
	}
	return held
}

// spread fills the nodes with other work but for holes. Real clusters have holes of
// many sizes, so these take turns: a whole node, half of one, a quarter, and so on down
// to a single device. They are as far from each other as the group allows.
func (g *nodeGroup) spread() []int {
	count, free := g.count(), int(math.Round((1-float64(*g.Busy))*float64(g.count()*g.Devices)))
	var holes []int
	for size := g.Devices; free > 0 && len(holes) < count; {
		holes = append(holes, min(size, free))
		free -= min(size, free)
		if size /= 2; size == 0 {
			size = g.Devices
		}
	}
	// What is left when every node has a hole makes the holes larger.
	for i := 0; free > 0 && i < len(holes); i++ {
		more := min(free, g.Devices-holes[i])
		holes[i] += more
		free -= more
	}
	held := make([]int, count)
	for i := range held {
		held[i] = g.Devices
	}
	for i, hole := range holes {
		held[i*count/len(holes)] -= hole
	}
	return held
}

// milli is a quantity in thousandths; without one it is otherwise.
func milli(q *resource.Quantity, otherwise int64) int64 {
	if q == nil {
		return otherwise
	}
	return min(q.MilliValue(), plenty)
}

func bytes(q *resource.Quantity, otherwise int64) int64 {
	if q == nil {
		return otherwise
	}
	return min(q.Value(), plenty)
}

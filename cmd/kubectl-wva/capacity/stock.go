package capacity

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/inventory"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// addNodes shows each node as the model has it.
func (a *assembly) addNodes() {
	for i := range a.inventory.Cluster.Nodes {
		n := &a.inventory.Cluster.Nodes[i]
		shown := report.NodeCapacity{Name: n.Name, Out: n.Out, Reason: a.inventory.Reason(i)}
		for j, d := range a.inventory.Carried[i].Devices {
			shown.Pools = append(shown.Pools, report.PoolCapacity{Accelerator: d.Name.String(), Devices: d.Count, Free: a.known(freeOf(n, j))})
		}
		if a.seen.podsKnown {
			shown.FreeMilliCPU, shown.FreeMemoryBytes, shown.FreePods = &n.Free.MilliCPU, &n.Free.MemoryBytes, &n.Free.Pods
			a.addHolders(i, shown.Pools)
		}
		a.out.Nodes = append(a.out.Nodes, shown)
	}
}

// known is a number that the pods decide.
func (a *assembly) known(n int) *int {
	if !a.seen.podsKnown {
		return nil
	}
	return &n
}

// freeOf is what is free of the node's devices of that index.
func freeOf(n *placement.Node, devices int) int {
	if devices > 0 {
		return n.Beside[devices-1].Free
	}
	return n.Free.Devices
}

// addHolders says which pods hold the devices of a node.
func (a *assembly) addHolders(node int, pools []report.PoolCapacity) {
	for _, pod := range a.byNode[a.inventory.Nodes[node].Name] {
		if len(pools) == 0 || !inventory.UsesDevices(pod) {
			continue
		}
		requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{UseStatusResources: true})
		for j, d := range a.inventory.Carried[node].Devices {
			if held := requests[d.Resource]; held.Sign() > 0 {
				pools[j].Holders = append(pools[j].Holders, report.Holder{Pod: key(pod), Variant: a.owners[key(pod)], Devices: int(held.Value())})
			}
		}
	}
}

// addAccelerators adds up the nodes by type of device.
func (a *assembly) addAccelerators() {
	sums := map[capacity.Accelerator]*report.AcceleratorCapacity{}
	for i := range a.inventory.Cluster.Nodes {
		counted := map[capacity.Accelerator]bool{}
		for j, d := range a.inventory.Carried[i].Devices {
			kind := d.Name.Accelerator()
			sum := sums[kind]
			if sum == nil {
				sum = &report.AcceleratorCapacity{Accelerator: string(kind), Free: a.known(0), LargestHole: a.known(0)}
				sums[kind] = sum
			}
			a.addPool(sum, &a.inventory.Cluster.Nodes[i], j, !counted[kind])
			counted[kind] = true
		}
	}
	a.addUnusable(sums)
	for _, kind := range slices.Sorted(maps.Keys(sums)) {
		a.out.Accelerators = append(a.out.Accelerators, *sums[kind])
	}
}

// addPool adds one kind of a node's devices; first says that the node has not been
// counted for this type.
func (a *assembly) addPool(sum *report.AcceleratorCapacity, n *placement.Node, devices int, first bool) {
	sum.Devices += devicesOf(n, devices)
	if first {
		sum.Nodes++
		if n.Out != "" {
			sum.NodesOut++
		}
	}
	if n.Out == "" && a.seen.podsKnown {
		free := max(0, freeOf(n, devices))
		*sum.Free += free
		*sum.LargestHole = max(*sum.LargestHole, free)
	}
}

func devicesOf(n *placement.Node, devices int) int {
	if devices > 0 {
		return n.Beside[devices-1].Allocatable
	}
	return n.Allocatable.Devices
}

// addUnusable asks which free devices lie idle whatever replica of a known variant
// comes. For types that no variant asks for there is no answer.
func (a *assembly) addUnusable(sums map[capacity.Accelerator]*report.AcceleratorCapacity) {
	if len(a.requests) == 0 {
		return
	}
	asked := map[capacity.Accelerator]bool{}
	var outlook placement.Outlook
	for _, r := range a.requests {
		if r.Shape.Devices > 0 {
			asked[r.Shape.Accelerator] = true
			outlook = append(outlook, placement.Expected{Shape: r.Shape, Weight: 1})
		}
	}
	for kind, unusable := range placement.NewTable(outlook, a.inventory.Cluster).Fragmentation(a.inventory.Cluster) {
		if sum := sums[kind]; sum != nil && asked[kind] {
			sum.Unusable = &unusable
		}
	}
}

// addRelocations looks for replicas to move for each variant that has no room.
func (a *assembly) addRelocations() {
	var placed []placement.Placed
	var pods []*corev1.Pod
	nodes := map[string]int{}
	for i, node := range a.inventory.Nodes {
		nodes[node.Name] = i
	}
	for _, name := range slices.Sorted(maps.Keys(a.claimed)) {
		for _, pod := range a.claimed[name].pods {
			if i, ok := nodes[inventory.HeldBy(pod)]; ok && pod.DeletionTimestamp == nil {
				placed = append(placed, placement.Placed{Name: key(pod), Request: a.claimed[name].request, Node: i})
				pods = append(pods, pod)
			}
		}
	}
	for i := range a.out.Variants {
		v := &a.out.Variants[i]
		if v.Slots == nil || *v.Slots > 0 {
			continue
		}
		room, ok := a.left.Moves(a.claimed[v.Key()].request, placed)
		if !ok || len(room.Moves) == 0 {
			continue
		}
		r := report.Relocation{Variant: v.Key(), Shape: v.Shape.Text, Node: a.inventory.Nodes[room.Node].Name}
		for _, move := range room.Moves {
			r.Moves = append(r.Moves, report.Move{
				Pod: key(pods[move.Replica]), Variant: a.owners[key(pods[move.Replica])], Shape: placed[move.Replica].Request.Shape.String(),
				From: a.inventory.Nodes[move.From].Name, To: a.inventory.Nodes[move.To].Name,
			})
		}
		a.out.Relocations = append(a.out.Relocations, r)
	}
}

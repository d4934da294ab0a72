package closedloop

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

type node struct {
	placement.Node
	// by is the fault by which it does not answer, since failedAt; nil where it does.
	by       *Fault
	failedAt time.Duration
}

// addNode adds an empty node. CPU, memory and pod slots never bind.
func (w *world) addNode(accelerator capacity.Accelerator, devices int, name string) {
	room := placement.Resources{Devices: devices, MilliCPU: 512_000, MemoryBytes: 4 << 40, Pods: 250}
	w.nodes = append(w.nodes, &node{Node: placement.Node{Name: name, Accelerator: accelerator, Allocatable: room, Free: room}})
	slices.SortFunc(w.nodes, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
}

// shape is what one replica takes.
func (v *Variant) shape() capacity.Shape {
	return capacity.Shape{Accelerator: v.Accelerator, Devices: v.Devices, Pods: 1, MilliCPU: 1000, MemoryBytes: 1 << 30}
}

func (v *Variant) takes() placement.Resources {
	shape := v.shape()
	return placement.Resources{Devices: shape.Devices, MilliCPU: shape.MilliCPU, MemoryBytes: shape.MemoryBytes, Pods: 1}
}

// place puts a pod on the node with the least room that has enough, or with the most. Only devices and the
// state of the nodes bind.
func (w *world) place(v *variantState, p *pod) bool {
	var best *node
	for _, n := range w.nodes {
		if n.Accelerator == v.Accelerator && n.Out == "" && n.Free.Devices >= v.Devices &&
			(best == nil || n.Free.Devices != best.Free.Devices && n.Free.Devices < best.Free.Devices != w.scenario.Spreads) {
			best = n
		}
	}
	if best == nil {
		p.refused = true
		return false
	}
	best.Free = best.Free.Minus(v.takes())
	p.node, p.placed, p.refused, p.starts = best, w.now, false, w.startup(v)
	v.placedAt = w.now
	return true
}

// free gives back what a pod took.
func (w *world) free(v *variantState, p *pod) {
	if p.node != nil {
		p.node.Free = p.node.Free.Plus(v.takes())
		p.node = nil
	}
}

// slots is how many more replicas of a variant fit now.
func (w *world) slots(v *variantState) (n int) {
	for _, node := range w.nodes {
		n += node.Slots(v.shape())
	}
	if w.scenario.Quota > 0 {
		n = max(0, min(n, int(w.quotaLeft())/v.Devices))
	}
	return n
}

// fits says whether so many more replicas of each variant fit now, together. It puts
// the largest first where the room is least; sizes that divide each other need no more.
func (w *world) fits(more map[*variantState]int) bool {
	wanted := make([]*variantState, 0, len(more))
	for v, n := range more {
		for range n {
			wanted = append(wanted, v)
		}
	}
	if len(wanted) == 0 {
		return true
	}
	taken := 0
	for v, n := range more {
		// Pods that are there count already.
		taken += max(0, n-v.unscheduled()) * v.Devices
	}
	if w.scenario.Quota > 0 && w.quotaLeft() < int64(taken) {
		return false
	}
	slices.SortFunc(wanted, func(a, b *variantState) int {
		return cmp.Or(cmp.Compare(b.Devices, a.Devices), cmp.Compare(a.key.Name, b.key.Name))
	})
	free := make([]int, len(w.nodes))
	for i, n := range w.nodes {
		if n.Out == "" {
			free[i] = n.Free.Devices
		}
	}
	for _, v := range wanted {
		best := -1
		for i, n := range w.nodes {
			if n.Accelerator == v.Accelerator && free[i] >= v.Devices && (best < 0 || free[i] < free[best]) {
				best = i
			}
		}
		if best < 0 {
			return false
		}
		free[best] -= v.Devices
	}
	return true
}

// runPods has the scheduler, the kubelets and a node autoscaler do their part.
func (w *world) runPods() {
	w.growNodes()
	w.evictLate()
	for _, m := range w.models {
		for _, v := range m.variants {
			v.leaving = slices.DeleteFunc(v.leaving, func(p *pod) bool {
				if p.ends > w.now {
					return false
				}
				w.free(v, p)
				return true
			})
			if v.replacing {
				w.replaceNext(v)
			}
			w.update(v)
			w.flap(v)
			if v.Ordered {
				w.takeTurns(v)
			}
			w.makeUp(v)
			full := false
			for _, p := range v.pods {
				// What one pod finds no node for, the next of the variant finds none for either.
				full = w.runPod(v, p, full)
			}
		}
	}
}

// runPod reports whether the cluster is full for the variant, which it may be known to be.
func (w *world) runPod(v *variantState, p *pod, full bool) bool {
	switch {
	case p.node == nil && w.now < p.created+w.scenario.Schedules:
	case p.node == nil:
		refused := p.refused
		if full || w.refuses(v) || !w.place(v, p) {
			p.refused, full = true, true
			w.orderNode(v)
			w.changed = w.changed || !refused
		}
	case !p.serving && !p.crashes && !p.absent && !p.down() && w.now >= p.placed+p.starts:
		if w.failsToStart(v) {
			p.crashes = true
			break
		}
		p.serving, p.since = true, w.now
		w.changed = true
	}
	return full
}

// orderNode asks a node autoscaler for a node, one at a time for each accelerator.
func (w *world) orderNode(v *variantState) {
	if w.scenario.Grows > 0 && w.coming[v.Accelerator] == 0 {
		w.coming[v.Accelerator] = w.now + w.scenario.Grows
	}
}

func (w *world) growNodes() {
	for _, device := range devices {
		if at := w.coming[device.name]; at > 0 && at <= w.now {
			delete(w.coming, device.name)
			w.changed = true
			w.clock.Event(round.Soon)
			w.addNode(device.name, 8, fmt.Sprintf("%s-new-%06d", device.name, int(w.now/time.Second)))
		}
	}
}

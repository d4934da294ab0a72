package closedloop

import (
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/round"
)

// evictsAfter is how long Kubernetes leaves a pod on a node that does not answer.
const evictsAfter = 5 * time.Minute

// drawNodeFaults draws nodes that fail.
func drawNodeFaults(d *dice, s *Scenario) {
	if !d.chance(0.15) {
		return
	}
	for range 1 + d.below(2) {
		f := drawFault(d, s)
		f.Kind = pick(d, FaultNodes, FaultNodes, FaultReclaim)
		s.Faults = append(s.Faults, f)
	}
}

// failNodes has nodes that hold replicas of a variant fail.
func (w *world) failNodes(f *Fault, v *variantState) {
	for _, p := range v.pods {
		if p.node == nil || p.node.Out != "" || w.hit[f] == f.Count {
			continue
		}
		w.hit[f]++
		p.node.Out, p.node.failedAt, p.node.by = placement.NodeNotReady, w.now, f
		w.changed = true
		w.clock.Event(round.Soon)
		w.stop(p.node)
		if f.Kind == FaultReclaim {
			gone := p.node
			w.evict(gone, true)
			w.nodes = slices.DeleteFunc(w.nodes, func(n *node) bool { return n == gone })
		}
	}
}

// stop has the replicas on a node serve nobody. What is in service there is lost.
func (w *world) stop(n *node) {
	w.on(n, func(v *variantState, p *pod) {
		v.model.held += p.waiting
		p.queue = queue{completed: p.completed, ttft: p.ttft, itl: p.itl, service: p.service}
		p.absent = false
		if p.serving {
			p.serving, p.stopped, p.cut = false, w.now, true
		}
	})
}

// evict has the pods of a node made anew. Those of a StatefulSet wait for the node, unless it is
// gone for good.
func (w *world) evict(n *node, gone bool) {
	w.on(n, func(v *variantState, p *pod) {
		if v.Ordered && !gone {
			return
		}
		w.free(v, p)
		v.born++
		name := p.name
		if !v.Ordered {
			name = fmt.Sprintf("%s-%05d", v.key.Name, v.born)
		}
		*p = pod{name: name, created: w.now, version: v.version, extra: p.extra}
		w.changed = true
	})
}

// on calls f for the pods that a node holds.
func (w *world) on(n *node, f func(*variantState, *pod)) {
	for _, m := range w.models {
		for _, v := range m.variants {
			for _, p := range v.pods {
				if p.node == n {
					f(v, p)
				}
			}
		}
	}
}

// evictLate has the pods go whose node has not answered for long.
func (w *world) evictLate() {
	for _, n := range w.nodes {
		if n.by != nil && w.now == n.failedAt+evictsAfter {
			w.evict(n, false)
		}
	}
}

// mendNodes has the nodes of a fault answer again, or others come in their place.
func (w *world) mendNodes(f *Fault, v *variantState) {
	w.opened, w.changed = w.now, true
	w.clock.Event(round.Soon)
	if f.Kind == FaultReclaim {
		for i := range w.hit[f] {
			w.addNode(v.Accelerator, max(8, v.Devices), fmt.Sprintf("%s-back-%06d-%d", v.Accelerator, int(w.now/time.Second), i))
		}
		return
	}
	for _, n := range w.nodes {
		if n.by != f {
			continue
		}
		n.Out, n.by = "", nil
		w.on(n, func(_ *variantState, p *pod) {
			if p.cut {
				p.serving, p.since, p.cut = true, w.now, false
			}
		})
	}
}

// down says whether the pod's node does not answer.
func (p *pod) down() bool { return p.node != nil && p.node.by != nil }

// failing says whether nodes fail just now.
func (w *world) failing() bool {
	return slices.ContainsFunc(w.scenario.Faults, func(f Fault) bool {
		return (f.Kind == FaultNodes || f.Kind == FaultReclaim) && f.From <= w.now && w.now < f.To
	})
}

package churn

import (
	"math/rand/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// variant is one variant with the replicas that run.
type variant struct {
	kind *kind
	// requests is what one replica asks for, by the order of the kind's types.
	requests []placement.Request
	wave     wave
	target   int
	// nodes are the nodes of the running replicas, in no order that means anything.
	nodes []int
}

// missing is how many replicas are wanted and do not run.
func (v *variant) missing() int { return max(0, v.target-len(v.nodes)) }

// surplus is how many replicas run and are not wanted.
func (v *variant) surplus() int { return max(0, len(v.nodes)-v.target) }

// takes is what one pod of the variant takes from a node.
func (v *variant) takes() placement.Resources {
	return placement.Resources{Devices: v.kind.devices, MilliCPU: v.kind.milliCPU(), Pods: 1}
}

// world is the cluster and all variants at one instant.
type world struct {
	cluster  *placement.Cluster
	variants []*variant
	beside   beside
}

// beside counts the second and third replicas of variants that want no more than three
// which had a node to themselves to go to, and those of them that went beside another
// one all the same. Only ours looks.
type beside struct{ choices, taken int }

// pct is the part of them that did in per cent.
func (b beside) pct() float64 { return 100 * float64(b.taken) / float64(max(1, b.choices)) }

// newWorld is the empty cluster with the scenario's variants at a load in per cent;
// chance draws their waves.
func newWorld(s *scenario, loadPct int, chance *rand.Rand) *world {
	w := &world{cluster: s.cluster()}
	for i, devices := range s.demand(float64(loadPct) / 100) {
		k := &s.kinds[i]
		mean := devices / float64(s.perKind) / float64(k.devices)
		for range s.perKind {
			v := &variant{kind: k, wave: newWave(mean, chance)}
			for _, a := range k.accelerators {
				v.requests = append(v.requests, placement.Request{Shape: capacity.Shape{
					Accelerator: a, Devices: k.devices, Pods: 1, MilliCPU: k.milliCPU(),
				}})
			}
			w.variants = append(w.variants, v)
		}
	}
	return w
}

// fits reports whether one more replica of the variant fits on the node, and the
// place of the node's type in the variant's order.
func (w *world) fits(v *variant, node int) (order int, ok bool) {
	order = v.kind.order(w.cluster.Nodes[node].Accelerator)
	return order, order >= 0 && w.cluster.Fits(&v.requests[order], node)
}

// start runs one more replica of the variant on a node where it fits.
func (w *world) start(v *variant, node int) {
	n := &w.cluster.Nodes[node]
	n.Free = n.Free.Minus(v.takes())
	v.nodes = append(v.nodes, node)
}

// stop ends replica i of the variant; the last one takes its index.
func (w *world) stop(v *variant, i int) {
	n, last := &w.cluster.Nodes[v.nodes[i]], len(v.nodes)-1
	n.Free = n.Free.Plus(v.takes())
	v.nodes[i] = v.nodes[last]
	v.nodes = v.nodes[:last]
}

// free is the free devices on the nodes of the types that the variant accepts.
func (w *world) free(v *variant) int {
	free := 0
	for i := range w.cluster.Nodes {
		if n := &w.cluster.Nodes[i]; v.kind.order(n.Accelerator) >= 0 {
			free += n.Free.Devices
		}
	}
	return free
}

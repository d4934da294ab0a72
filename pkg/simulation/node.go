package simulation

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// Cluster is what the nodes hold and have free now: a replica holds its node from
// Placed until it is Gone. Nobody but the world changes it.
func (w *World) Cluster() *placement.Cluster { return w.cluster }

// Unplaced is the number of replicas that no node holds now.
func (w *World) Unplaced() int { return w.unplaced }

// pricing is what room was worth when it was last asked.
type pricing struct {
	outlook, scratch placement.Outlook
	table            *placement.Table
}

// place gives nodes to the replicas that wait for one, the oldest first.
func (w *World) place() {
	if w.unplaced == 0 {
		return
	}
	for i := range w.models {
		for j := range w.models[i].variants {
			w.models[i].variants[j].full = false
		}
	}
	for _, r := range w.live {
		if r.Stage == Created && w.hold(r) {
			w.start(r)
		}
	}
}

// hold has the best node with room hold a replica; it reports false when there is
// none.
func (w *World) hold(r *replica) bool {
	v := r.variant
	if v.full {
		return false
	}
	node := w.best(v)
	if node < 0 {
		v.full = true
		return false
	}
	r.Node = node
	w.change(v, node, 1)
	v.unplaced--
	w.unplaced--
	return true
}

// release takes a replica off its node, or out of those that wait for one.
func (w *World) release(r *replica) {
	if r.Node < 0 {
		r.variant.unplaced--
		w.unplaced--
		return
	}
	w.change(r.variant, r.Node, -1)
}

// change has a node hold one replica more or less.
func (w *World) change(v *variant, node, by int) {
	if by < 0 {
		w.cluster.Remove(v.Request, node)
	} else {
		w.cluster.Put(v.Request, node)
	}
	v.on[node] += by
	v.held += by
}

// best is the node that the scheduler plugin's score prefers among those with room
// for one more replica, of equals the first, or -1.
func (w *World) best(v *variant) int {
	best, bestScore := -1, int64(0)
	var table *placement.Table
	for i := range w.cluster.Nodes {
		if !w.cluster.Fits(v.Request, i) {
			continue
		}
		if best < 0 {
			table = w.table()
		}
		mates := 0
		if v.wanted > 1 && v.wanted <= placement.SpreadUpTo {
			mates = v.on[i]
		}
		score := table.Score(&w.cluster.Nodes[i], v.Request.Shape, 0, mates)
		if best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	return best
}

// table is what room is worth now.
func (w *World) table() *placement.Table {
	p := &w.pricing
	p.scratch = p.scratch[:0]
	for i := range w.models {
		for j := range w.models[i].variants {
			v := &w.models[i].variants[j]
			shape := v.Request.Shape
			shape.Pods = 1
			wanted := max(v.wanted-v.held, v.unplaced)
			p.scratch = append(p.scratch, placement.Expecting(shape, wanted, v.held, v.Max))
		}
	}
	if p.table != nil && equal(p.outlook, p.scratch) {
		p.table = p.table.Refresh(w.cluster)
		return p.table
	}
	// A table keeps its outlook.
	p.outlook, p.scratch = p.scratch, nil
	p.table = placement.NewTable(p.outlook, w.cluster)
	return p.table
}

// equal says whether two outlooks without further accelerators are the same.
func equal(a, b placement.Outlook) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Shape != b[i].Shape || a[i].Weight != b[i].Weight {
			return false
		}
	}
	return true
}

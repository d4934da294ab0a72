package churn

import (
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// outlook is the replicas still expected, from the variants as they stand. None of
// them has a maximum here.
func outlook(w *world) placement.Outlook {
	expected := make(placement.Outlook, 0, len(w.variants))
	for _, v := range w.variants {
		e := placement.Expecting(v.requests[0].Shape, v.missing(), len(v.nodes), -1)
		for _, further := range v.requests[1:] {
			e.Also = append(e.Also, further.Shape.Accelerator)
		}
		expected = append(expected, e)
	}
	return expected
}

// refreshShare has the table look at the nodes once for so many pods as there are
// nodes by this number, as the scheduler plugin has.
const refreshShare = 16

// ours places by the capacity model's score.
type ours struct {
	table *placement.Table
	// together lets the few replicas of a small variant be on one node.
	together bool
	// placed counts the pods since the table looked at the nodes.
	placed int
}

func (p *ours) begin(w *world) {
	p.table, p.placed = placement.NewTable(outlook(w), w.cluster), 0
}

func (p *ours) place(w *world, v *variant) int {
	if p.placed++; p.placed > len(w.cluster.Nodes)/refreshShare {
		p.table, p.placed = p.table.Refresh(w.cluster), 0
	}
	mates := map[int]int{}
	if v.target <= placement.SpreadUpTo {
		for _, node := range v.nodes {
			mates[node]++
		}
	}
	best, bestScore := -1, int64(0)
	for i := range w.cluster.Nodes {
		order, ok := w.fits(v, i)
		if !ok {
			continue
		}
		near := mates[i]
		if p.together {
			near = 0
		}
		score := p.table.Score(&w.cluster.Nodes[i], v.requests[order].Shape, order, near)
		if best < 0 || score > bestScore {
			best, bestScore = i, score
		}
	}
	if len(mates) > 0 && best >= 0 && p.hasOther(w, v, mates) {
		w.beside.choices++
		if mates[best] > 0 {
			w.beside.taken++
		}
	}
	return best
}

// hasOther reports whether a node without a mate has room.
func (p *ours) hasOther(w *world, v *variant, mates map[int]int) bool {
	for i := range w.cluster.Nodes {
		if _, ok := w.fits(v, i); ok && mates[i] == 0 {
			return true
		}
	}
	return false
}

package decision

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// scarcity is how many times its price a replica is compared by that holds room which
// another model lacks: what keeps the promise to others may be that much dearer. At 1 a model gives up what is dearest for itself, and others go on to miss
// theirs.
const scarcity = 2

// scarceModels is how many models are looked at that lack room on one accelerator, and for how
// many of the least important ones others make room: it bounds the time of a round.
const scarceModels = 2

// unplaced is a variant of which its model lately lacked one more replica for want of room.
type unplaced struct {
	m *model
	v *variant
}

// scarce finds out, in a cluster that does not grow, whose replicas hold room that another
// model of at least the same importance lacks: they go first, are bought last, and
// others take their place that are no dearer than the room is worth. Of each accelerator only the most important models are looked at.
func (r *round) scarce() {
	wants := r.wanting()
	if len(wants) == 0 {
		return
	}
	room, nodes := r.withoutNominated(), r.nodes()
	for _, m := range r.models {
		for _, v := range m.variants {
			if r.unknown(v) != nil {
				continue
			}
			for _, w := range wants[v.in.Request.Shape.Accelerator] {
				if w.m != m && w.m.promise.Priority <= m.promise.Priority && opens(room, nodes, v, w.v) {
					v.scarceFor = w.m
					break
				}
			}
		}
	}
}

// wanting are the variants that lack room, by accelerator, the more important first.
func (r *round) wanting() map[capacity.Accelerator][]unplaced {
	if !r.policy.Limited || r.trial == nil {
		return nil
	}
	all := map[capacity.Accelerator][]unplaced{}
	for _, m := range r.models {
		for _, v := range m.variants {
			// What was found at this very instant tells nothing new.
			if m.advisory || v.old.Lacked.IsZero() || !v.old.Lacked.Before(r.snapshot.Time) || r.unknown(v) != nil {
				continue
			}
			key := v.in.Request.Shape.Accelerator
			all[key] = append(all[key], unplaced{m, v})
		}
	}
	for key, list := range all {
		slices.SortStableFunc(list, func(a, b unplaced) int { return cmp.Compare(a.m.promise.Priority, b.m.promise.Priority) })
		all[key] = list[:min(len(list), scarceModels)]
	}
	return all
}

// opens reports whether a replica of w fits on some node without those of v, or v has none
// and would take what w lacks.
func opens(room *placement.Cluster, nodes map[string]int, v, w *variant) bool {
	held := map[int]int{}
	hold := func(name string) {
		if node, known := nodes[name]; known {
			held[node]++
		}
	}
	for i := range v.in.Replicas {
		hold(v.in.Replicas[i].Node)
	}
	for i := range v.in.Starting {
		hold(v.in.Starting[i].Node)
	}
	found := len(held) == 0
	for node, n := range held {
		for range n {
			room.Remove(v.in.Request, node)
		}
		found = found || admits(room, w.in.Request, node)
		for range n {
			room.Put(v.in.Request, node)
		}
	}
	return found
}

// remember notes of which variants models lack one more replica for want of room. It is
// remembered for as long as a scale-down waits: whoever gives needs that long.
func (r *round) remember(models []*model, found answer) {
	if !r.policy.Limited || r.trial == nil {
		return
	}
	for _, m := range models {
		lacks := r.lacking(m, found.lacks[m])
		for _, v := range m.variants {
			switch {
			case len(lacks) > 0 && v == lacks[0]:
				v.next.Lacked = r.snapshot.Time
				if v.policy.Up.Window > 0 {
					// It is not to begin when there is room.
					found.ideal[v] = max(found.ideal[v], v.target+1)
				}
			case r.snapshot.Time.Sub(v.old.Lacked) < v.policy.Down.Window:
				v.next.Lacked = v.old.Lacked
			}
		}
	}
}

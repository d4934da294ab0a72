package decision

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// victims names the replicas that should go, the first one first, of every variant
// whose choice is ours and whose nodes the capacity model knows: those whose room is
// worth the most to the replicas still expected. All variants choose together, because
// a node that none of them empties alone may be emptied by several.
func (r *round) victims(models []*model) {
	var choosing []*variant
	var leaving []placement.Leaving
	for _, m := range models {
		m.each(func(v *variant) {
			// Of the pods, not of what the target asks for: some of those may have no pod
			// yet, and some pods of an earlier scale-down may still be there.
			n := v.in.Ready + len(v.in.Starting) - v.target
			if n <= 0 || v.target >= v.in.Current || !v.in.Picks || v.in.Rolling || r.unknown(v) != nil {
				return
			}
			choosing = append(choosing, v)
			leaving = append(leaving, placement.Leaving{Request: v.in.Request, Replicas: r.removable(v, n), Count: n})
		})
	}
	if len(leaving) == 0 {
		return
	}
	for i, chosen := range r.trial.Cluster().VictimsTogether(leaving) {
		for _, j := range chosen {
			choosing[i].plan.Victims = append(choosing[i].plan.Victims, leaving[i].Replicas[j].Name)
		}
	}
}

// removable are the variant's pods as the capacity model sees them, of which n go:
// without those that are saturated, unless there are too few others, because what waits
// in them would be lost and who is chosen in their place has room for their load.
func (r *round) removable(v *variant, n int) []placement.Replica {
	all := make([]placement.Replica, 0, len(v.in.Starting)+len(v.in.Replicas))
	for i := range v.in.Starting {
		s := &v.in.Starting[i]
		state := placement.NotReady
		switch {
		case !s.Placed:
			state = placement.Unplaced
		case s.Pending:
			state = placement.Pending
		}
		all = append(all, placement.Replica{Name: s.Name, Node: r.node(s.Node), State: state, Stuck: s.Stuck, Chosen: s.Marked || slices.Contains(v.giving, s.Name)})
	}
	var hot []placement.Replica
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		replica := placement.Replica{Name: p.Name, Node: r.node(p.Node), State: placement.Ready, Chosen: p.Marked || slices.Contains(v.giving, p.Name), Load: r.load(v, p)}
		// Who was chosen before is on its way out.
		if v.load.of[i] == saturated && !p.Marked {
			hot = append(hot, replica)
			continue
		}
		all = append(all, replica)
	}
	if more := n - len(all); more > 0 {
		// Of which nothing is known may be the fullest.
		slices.SortStableFunc(hot, func(a, b placement.Replica) int {
			return cmp.Compare(atWorst(a.Load), atWorst(b.Load))
		})
		all = append(all, hot[:min(more, len(hot))]...)
	}
	return all
}

// atWorst is a load, without one the highest.
func atWorst(load float64) float64 {
	if math.IsNaN(load) {
		return math.Inf(1)
	}
	return load
}

// load is how busy a replica is: the used share of what limits it, and the requests
// that wait; NaN means unknown.
func (r *round) load(v *variant, p *Replica) float64 {
	load, known := v.full(r, p)
	if !known {
		return math.NaN()
	}
	if r.usable(p.Waiting) {
		load += p.Waiting.Value
	}
	return load
}

// node is the index of a node of the cluster, or -1.
func (r *round) node(name string) int {
	if r.nodes == nil {
		nodes := r.trial.Cluster().Nodes
		r.nodes = make(map[string]int, len(nodes))
		for i := range nodes {
			r.nodes[nodes[i].Name] = i
		}
	}
	if i, ok := r.nodes[name]; ok {
		return i
	}
	return -1
}

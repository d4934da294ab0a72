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
// a node that none of them empties alone may be emptied by several. Of a rolling update
// its controller chooses. Giving are those that give way to a more important model.
func (r *round) victims(giving map[*variant][]string) {
	var choosing []*variant
	var leaving []placement.Leaving
	r.each(func(v *variant) {
		// Of the pods, not of what the target asks for: some of those may have no pod
		// yet, and some pods of an earlier scale-down may still be there.
		n := v.in.Ready + len(v.in.Starting) - v.target
		if n <= 0 || v.target >= v.in.Current || !r.picks(v) {
			return
		}
		choosing = append(choosing, v)
		leaving = append(leaving, placement.Leaving{Request: v.in.Request, Replicas: r.removable(v, n, giving[v], r.nodes()), Count: n})
	})
	if len(leaving) == 0 {
		return
	}
	for i, chosen := range r.trial.Cluster().VictimsTogether(leaving) {
		for _, j := range chosen {
			choosing[i].plan.Victims = append(choosing[i].plan.Victims, leaving[i].Replicas[j].Name)
		}
	}
}

// picks reports whether it is ours to choose which replicas of the variant go.
func (r *round) picks(v *variant) bool { return v.in.Picks && !v.in.Rolling && r.unknown(v) == nil }

// removable are the variant's pods as the capacity model sees them, of which n go:
// without those that are saturated, unless there are too few others, because what waits
// in them would be lost and who is chosen in their place has room for their load.
func (r *round) removable(v *variant, n int, giving []string, nodes map[string]int) []placement.Replica {
	all := make([]placement.Replica, 0, len(v.in.Starting)+len(v.in.Replicas))
	add := func(name, node string, marked bool) *placement.Replica {
		// Who was chosen before is on its way out.
		at, known := nodes[node]
		if !known {
			at = -1
		}
		all = append(all, placement.Replica{Name: name, Node: at, State: placement.NotReady, Chosen: marked || slices.Contains(giving, name)})
		return &all[len(all)-1]
	}
	for i := range v.in.Starting {
		s := &v.in.Starting[i]
		replica := add(s.Name, s.Node, s.Marked)
		replica.Failing = s.Failing
		switch {
		case !s.Placed:
			replica.State = placement.Unplaced
		case s.Pending:
			replica.State = placement.Pending
		}
	}
	var busiest []placement.Replica
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		replica := add(p.Name, p.Node, p.Marked)
		replica.State, replica.Load, replica.Failing = placement.Ready, r.busy(v, p), v.odd.at(i) || v.odd.idles(i)
		if v.load.of[i] == dead {
			replica.State, replica.Load = placement.NotReady, 0
		}
		if v.load.of[i] == saturated && !replica.Chosen {
			busiest = append(busiest, *replica)
			all = all[:len(all)-1]
		}
	}
	// One of which nothing is known may be the fullest.
	atWorst := func(load float64) float64 {
		if math.IsNaN(load) {
			return math.Inf(1)
		}
		return load
	}
	slices.SortStableFunc(busiest, func(a, b placement.Replica) int { return cmp.Compare(atWorst(a.Load), atWorst(b.Load)) })
	return append(all, busiest[:min(max(0, n-len(all)), len(busiest))]...)
}

// busy is how much a replica has to do: the used share of what limits it, and the requests
// that wait; NaN means unknown.
func (r *round) busy(v *variant, p *Replica) float64 {
	busy, known := r.saturation(v, p)
	if !known {
		return math.NaN()
	}
	return busy + r.value(p.Waiting)
}

// nodes are the indexes of the cluster's nodes by name.
func (r *round) nodes() map[string]int {
	if all := r.trial.Cluster().Nodes; r.nodesByName == nil {
		r.nodesByName = make(map[string]int, len(all))
		for i := range all {
			r.nodesByName[all[i].Name] = i
		}
	}
	return r.nodesByName
}

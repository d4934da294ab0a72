package preempt

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// Removable are the variant's pods as the capacity model sees them, of which n go:
// without those that are saturated, unless there are too few others, because what waits
// in them would be lost and who is chosen in their place has room for their load.
func Removable(r *limit.Round, v *limit.Variant, n int, giving []string, nodes map[string]int) []placement.Replica {
	all := make([]placement.Replica, 0, len(v.In.Starting)+len(v.In.Replicas))
	add := func(name, node string, marked bool) *placement.Replica {
		// Who was chosen before is on its way out.
		at, known := nodes[node]
		if !known {
			at = -1
		}
		all = append(all, placement.Replica{Name: name, Node: at, State: placement.NotReady, Chosen: marked || slices.Contains(giving, name)})
		return &all[len(all)-1]
	}
	for i := range v.In.Starting {
		s := &v.In.Starting[i]
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
	for i := range v.In.Replicas {
		p := &v.In.Replicas[i]
		replica := add(p.Name, p.Node, p.Marked)
		replica.State, replica.Load, replica.Failing = placement.Ready, busyOf(r, v, p), v.Odd.At(i) || v.Odd.Idles(i)
		if v.Load.Of[i] == fleet.Dead {
			replica.State, replica.Load = placement.NotReady, 0
		}
		if v.Load.Of[i] == fleet.Saturated && !replica.Chosen {
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

// busyOf is how much a replica has to do: the used share of what limits it, and the requests
// that wait; NaN means unknown.
func busyOf(r *limit.Round, v *limit.Variant, p *contract.Replica) float64 {
	busy, known := v.Saturation(p)
	if !known {
		return math.NaN()
	}
	return busy + r.Value(p.Waiting)
}

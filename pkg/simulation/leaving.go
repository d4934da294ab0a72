package simulation

import (
	"cmp"
	"slices"
)

// victims are the replicas of a variant that could go, the first to go first: the
// named ones in their order, then the others as the ReplicaSet controller orders them:
// those without a node, those that do not serve, those on the nodes with the most
// replicas of the variant, those that have served for the shortest time, the youngest.
func (w *World) victims(v *variant, named []string) []*replica {
	beside := make([]int, len(w.cluster.Nodes))
	var order []*replica
	for _, r := range w.live {
		if r.variant != v || r.Stage == Leaving || r.Stage == Gone {
			continue
		}
		order = append(order, r)
		if r.Node >= 0 {
			beside[r.Node]++
		}
	}
	rank := make(map[*replica]int, len(order))
	for _, r := range order {
		if at := slices.Index(named, r.Name); at >= 0 {
			rank[r] = at
		} else {
			rank[r] = len(named)
		}
	}
	on := func(r *replica) int {
		if r.Node < 0 {
			return 0
		}
		return beside[r.Node]
	}
	slices.SortFunc(order, func(a, b *replica) int {
		return cmp.Or(
			cmp.Compare(rank[a], rank[b]),
			cmp.Compare(a.Stage.standing(), b.Stage.standing()),
			cmp.Compare(on(b), on(a)),
			cmp.Compare(b.Ready, a.Ready),
			cmp.Compare(b.ordinal, a.ordinal),
		)
	})
	return order
}

// standing is how far a replica has come; one that is not ready has begun to run at
// least.
func (s Stage) standing() int {
	switch s {
	case Created:
		return 0
	case Placed:
		return 1
	case NotReady:
		return 2
	case Serving, Leaving, Gone:
	}
	return 3
}

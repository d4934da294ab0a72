package placement

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// ReplicaState is how far a replica has come.
type ReplicaState uint8

// The states of a replica, in the order in which they are removed. It is the order of
// the ReplicaSet controller, which looks at the cost of a deletion only among pods
// that these do not tell apart.
const (
	// Unplaced: no node holds it.
	Unplaced ReplicaState = iota
	// Pending: a node holds it and its containers have not all started.
	Pending
	// NotReady: its containers have started and it does not serve.
	NotReady
	// Ready: it serves.
	Ready

	states = int(Ready) + 1
)

// Replica is a replica that could be removed.
type Replica struct {
	Name string
	// Node is the index of the node that holds it, or -1.
	Node  int
	State ReplicaState
	// Failing: it cannot come up by itself, or does not do what the others do.
	Failing bool
	// Chosen: it was chosen for a removal that is still under way.
	Chosen bool
	// Load is how busy it is, in any unit; NaN is unknown and counts as busiest.
	Load float64
}

// Victims chooses which n of the replicas of one request to remove, and returns their
// indexes in the order of removal: by state; of one state those that were chosen
// before, so that a choice is not taken back, then those that are failing; and of those
// alike in all that, the ones that together leave the room that is worth the most.
// Where that is equal, the least loaded, then by name. The choice looks at all of the
// n together: a node that two removals empty is seen.
//
// Room is worth what the cluster's table says, and free^2/all devices for each node:
// what else is on a node goes some day too, and the more of it is free by then, the
// sooner there is a whole one.
func (c *Cluster) Victims(r *Request, replicas []Replica, n int) []int {
	if r == nil {
		return nil
	}
	n = min(max(n, 0), len(replicas))
	v := choice{c: c, r: r, replicas: replicas, gone: map[int]int{}}
	var byRank [ranks][]int
	for i := range replicas {
		rank := v.rank(i)
		byRank[rank] = append(byRank[rank], i)
	}
	var victims []int
	for rank, candidates := range byRank {
		count := min(n-len(victims), len(candidates))
		if rank < placedRanks {
			victims = append(victims, v.inOrder(candidates)[:count]...)
			continue
		}
		victims = append(victims, v.best(candidates, count)...)
	}
	return victims
}

// Each state has four ranks: chosen and failing, chosen, failing, neither. From
// placedRanks on, nodes hold the replicas.
const (
	ranks       = states * placedRanks
	placedRanks = 4
)

// rank is the place of a replica in the order of removal.
func (v *choice) rank(i int) int {
	r := &v.replicas[i]
	rank := int(min(r.State, Ready)) * placedRanks
	if r.Node < 0 || r.Node >= len(v.c.Nodes) {
		rank = 0
	}
	if !r.Chosen {
		rank += 2
	}
	if !r.Failing {
		rank++
	}
	return rank
}

// choice is the working state of choosing victims.
type choice struct {
	c        *Cluster
	r        *Request
	replicas []Replica
	// gone is how many replicas were already chosen, by node.
	gone map[int]int
}

// gain is what a removal brings. Its fields count one after the other.
type gain struct {
	worth, load int64
}

func (g gain) plus(o gain) gain {
	return gain{capacity.Plus(g.worth, o.worth), capacity.Plus(g.load, o.load)}
}

func (g gain) compare(o gain) int {
	return cmp.Or(cmp.Compare(g.worth, o.worth), cmp.Compare(o.load, g.load))
}

// inOrder sorts candidates by rank, then by load, then by name.
func (v *choice) inOrder(candidates []int) []int {
	slices.SortFunc(candidates, func(a, b int) int {
		ra, rb := &v.replicas[a], &v.replicas[b]
		return cmp.Or(
			cmp.Compare(v.rank(a), v.rank(b)),
			cmp.Compare(load(ra), load(rb)),
			cmp.Compare(ra.Name, rb.Name),
			cmp.Compare(a, b),
		)
	})
	return candidates
}

// best chooses so many of the candidates, all of the same rank. It is exact: for each
// node in turn, the best for every number removed so far.
func (v *choice) best(candidates []int, count int) []int {
	if count == 0 {
		return nil
	}
	nodes, on := v.byNode(candidates)
	best := make([]gain, count+1)
	reached := make([]bool, count+1)
	reached[0] = true
	took := make([][]int, len(nodes))
	for i, node := range nodes {
		gains := v.gains(node, on[node], count)
		took[i] = make([]int, count+1)
		for removed := count; removed >= 0; removed-- {
			found := reached[removed]
			sum := best[removed]
			for k := 1; k < len(gains) && k <= removed; k++ {
				if !reached[removed-k] {
					continue
				}
				if with := best[removed-k].plus(gains[k]); !found || with.compare(sum) > 0 {
					found, sum, took[i][removed] = true, with, k
				}
			}
			best[removed], reached[removed] = sum, found
		}
	}
	var victims []int
	left := count
	for i := len(nodes) - 1; i >= 0; i-- {
		k := took[i][left]
		left -= k
		v.gone[nodes[i]] += k
		victims = append(victims, on[nodes[i]][:k]...)
	}
	return v.inOrder(victims)
}

// byNode sorts the candidates in the order of removal and groups them by node. The
// nodes come in the order of their first candidates.
func (v *choice) byNode(candidates []int) (nodes []int, on map[int][]int) {
	on = map[int][]int{}
	for _, i := range v.inOrder(candidates) {
		node := v.replicas[i].Node
		if on[node] == nil {
			nodes = append(nodes, node)
		}
		on[node] = append(on[node], i)
	}
	return nodes, on
}

// gains is what removing the first k of the node's candidates brings, by k.
func (v *choice) gains(node int, candidates []int, most int) []gain {
	n := &v.c.Nodes[node]
	pool := v.c.holding(v.r, node)
	gone := v.gone[node]
	before := v.worth(n, pool, gone)
	gains := make([]gain, 1, len(candidates)+1)
	busy := int64(0)
	for k := 1; k <= len(candidates) && k <= most; k++ {
		busy = capacity.Plus(busy, load(&v.replicas[candidates[k-1]]))
		gains = append(gains, gain{worth: capacity.Minus(v.worth(n, pool, gone+k), before), load: busy})
	}
	return gains
}

// worth is what the node's room is worth without so many replicas of the request. A
// node that takes no pods is worth nothing.
func (v *choice) worth(n *Node, pool, gone int) int64 {
	if n.Out != "" {
		return 0
	}
	worth := v.c.Table.worthOf(n, &v.r.Shape, pool, -gone)
	if pool != noPool {
		free := int64(min(max(capacity.Plus(n.free(pool), capacity.Times(v.r.Shape.Devices, gone)), 0), maxDevices))
		worth += Unit * free * free / int64(max(n.pool(pool).Allocatable, 1))
	}
	return worth
}

// load is how busy a replica is, in thousandths of its unit, within bounds.
func load(r *Replica) int64 {
	const most = 1 << 40
	switch thousandths := r.Load * 1000; {
	case math.IsNaN(thousandths) || thousandths > most:
		return most
	case thousandths < 0:
		return 0
	default:
		return int64(thousandths)
	}
}

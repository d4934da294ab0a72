package placement

import (
	"cmp"
	"math"
	"slices"
)

// ReplicaState is how far a replica has come.
type ReplicaState uint8

// The states of a replica, in the order in which they are removed. The second and the
// third have the same rank.
const (
	// Unplaced: no node holds it.
	Unplaced ReplicaState = iota
	// NotReady: a node holds it and it does not serve yet.
	NotReady
	// Stuck: it cannot come up by itself.
	Stuck
	// Ready: it serves.
	Ready
)

// rank is the place of a state in the order of removal.
func (s ReplicaState) rank() int {
	switch s {
	case Unplaced:
		return 0
	case NotReady, Stuck:
		return 1
	default:
		return 2
	}
}

// Replica is a replica that could be removed.
type Replica struct {
	Name string
	// Node is the index of the node that holds it, or -1.
	Node  int
	State ReplicaState
	// Load is how busy it is, in any unit; NaN is unknown and counts as busiest.
	Load float64
}

// Victims chooses which n of the replicas of one request to remove, and returns their
// indexes in the order of removal: those that no node holds; those that do not serve;
// and of the others those that together leave the room that is worth the most. Where
// that is equal, the least loaded, then by name. The choice looks at all of the n
// together: a node that two removals empty is seen.
//
// Room is worth what the cluster's table says, and free^2/all devices for each node:
// what else is on a node goes some day too, and the more of it is free by then, the
// sooner there is a whole one.
func (c *Cluster) Victims(r *Request, replicas []Replica, n int) []int {
	n = min(n, len(replicas))
	if n <= 0 || r == nil {
		return nil
	}
	var byRank [3][]int
	for i := range replicas {
		rank := replicas[i].State.rank()
		if replicas[i].Node < 0 || replicas[i].Node >= len(c.Nodes) {
			rank = 0
		}
		byRank[rank] = append(byRank[rank], i)
	}
	v := choice{c: c, r: r, replicas: replicas, gone: map[int]int{}}
	var victims []int
	for rank, candidates := range byRank {
		count := min(n-len(victims), len(candidates))
		if rank == 0 {
			victims = append(victims, v.inOrder(candidates)[:count]...)
			continue
		}
		victims = append(victims, v.best(candidates, count)...)
	}
	return victims
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
	return gain{plus(g.worth, o.worth), plus(g.load, o.load)}
}

func (g gain) compare(o gain) int {
	return cmp.Or(cmp.Compare(g.worth, o.worth), cmp.Compare(o.load, g.load))
}

// inOrder sorts candidates by state, then by load, then by name.
func (v *choice) inOrder(candidates []int) []int {
	slices.SortFunc(candidates, func(a, b int) int {
		ra, rb := &v.replicas[a], &v.replicas[b]
		return cmp.Or(
			// What is stuck is of less use than what is still on its way.
			cmp.Compare(rb.State, ra.State),
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
	pool := n.holding(v.r)
	gone := v.gone[node]
	before := v.worth(n, pool, gone)
	gains := make([]gain, 1, len(candidates)+1)
	busy := int64(0)
	for k := 1; k <= len(candidates) && k <= most; k++ {
		busy = plus(busy, load(&v.replicas[candidates[k-1]]))
		gains = append(gains, gain{worth: minus(v.worth(n, pool, gone+k), before), load: busy})
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
		free := int64(min(max(plus(n.free(pool), times(v.r.Shape.Devices, gone)), 0), maxDevices))
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

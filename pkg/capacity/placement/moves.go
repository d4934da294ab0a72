package placement

import (
	"cmp"
	"slices"
)

// Placed is a replica that a node holds.
type Placed struct {
	Name    string
	Request *Request
	// Node is the index of its node; a replica with another number is left alone.
	Node int
}

// Move is a replica that goes to another node.
type Move struct {
	// Replica is the index of the replica.
	Replica int
	// From and To are indexes of nodes.
	From, To int
}

// Room is where one more replica fits once some others have moved.
type Room struct {
	// Node is the index of the node.
	Node int
	// Moves are in an order in which each finds its place free.
	Moves []Move
}

// movedAtOnce is the most replicas that are moved off one node. More than that is no
// advice that anybody would take.
const movedAtOnce = 4

// Moves says which of the placed replicas to move so that one more of the request
// fits: the fewest on any one node, and of equally many those with the fewest devices,
// such that each finds a place on another node. There are no moves when it fits now.
// It reports false when moving up to four replicas of one node does not help, or the
// request cannot be counted. Other replicas are never moved to make a place for those
// that move.
func (c *Cluster) Moves(r *Request, placed []Placed) (Room, bool) {
	if r.Countable() != nil {
		return Room{}, false
	}
	trial := c.Clone()
	if node, ok := trial.Place(r); ok {
		return Room{Node: node}, true
	}
	on := make([][]int, len(c.Nodes))
	for i, p := range placed {
		if p.Node >= 0 && p.Node < len(c.Nodes) && p.Request.Countable() == nil {
			on[p.Node] = append(on[p.Node], i)
		}
	}
	m := mover{trial: trial, r: r, placed: placed}
	// Few moves are looked for on all nodes before more are on any.
	for count := 1; count <= movedAtOnce; count++ {
		best, found := Room{}, false
		least := 0
		for node := range c.Nodes {
			if len(on[node]) < count || !m.couldHold(node) {
				continue
			}
			moves, devices, ok := m.fewest(node, on[node], count)
			if ok && (!found || devices < least) {
				best, least, found = Room{Node: node, Moves: moves}, devices, true
			}
		}
		if found {
			return best, true
		}
	}
	return Room{}, false
}

// mover is the working state of looking for moves.
type mover struct {
	trial  *Cluster
	r      *Request
	placed []Placed
}

// couldHold reports whether the node takes such pods and lacks only what is free.
func (m *mover) couldHold(node int) bool {
	v := m.trial.Verdict(m.r, node)
	return v == Fits || v.Resolvable()
}

// fewest tries the sets of that many replicas of a node, those with the fewest devices
// first.
func (m *mover) fewest(node int, replicas []int, count int) (moves []Move, devices int, ok bool) {
	for _, set := range m.sets(replicas, count) {
		if moves, ok := m.move(node, set); ok {
			return moves, m.devices(set), true
		}
	}
	return nil, 0, false
}

// sets are the sets of count replicas, by the devices that they hold. Replicas of one
// request are the same to the cluster: of each only the first ones are in a set.
func (m *mover) sets(replicas []int, count int) [][]int {
	var sets [][]int
	var grow func(set []int, from int)
	grow = func(set []int, from int) {
		if len(set) == count {
			sets = append(sets, slices.Clone(set))
			return
		}
		for i := from; i < len(replicas); i++ {
			same := slices.ContainsFunc(replicas[from:i], func(other int) bool {
				return m.placed[other].Request == m.placed[replicas[i]].Request
			})
			if !same {
				grow(append(set, replicas[i]), i+1)
			}
		}
	}
	grow(nil, 0)
	slices.SortStableFunc(sets, func(a, b []int) int { return cmp.Compare(m.devices(a), m.devices(b)) })
	return sets
}

func (m *mover) devices(set []int) int {
	devices := 0
	for _, i := range set {
		devices = plus(devices, m.placed[i].Request.Shape.Devices)
	}
	return devices
}

// move tries to move a set of replicas off a node so that the request fits there, the
// largest first. It leaves the cluster as it was.
func (m *mover) move(node int, set []int) ([]Move, bool) {
	for _, i := range set {
		m.trial.put(m.placed[i].Request, node, -1)
	}
	fits := m.trial.Verdict(m.r, node) == Fits
	var moves []Move
	if fits {
		// The room is taken before the others look for theirs.
		m.trial.put(m.r, node, 1)
		moves = m.rehouse(node, set)
		m.trial.put(m.r, node, -1)
	}
	for _, i := range set {
		m.trial.put(m.placed[i].Request, node, 1)
	}
	return moves, len(moves) == len(set)
}

// rehouse finds a place on another node for each of the set, as far as it goes.
func (m *mover) rehouse(node int, set []int) []Move {
	largest := slices.Clone(set)
	slices.SortStableFunc(largest, func(a, b int) int {
		return cmp.Compare(m.placed[b].Request.Shape.Devices, m.placed[a].Request.Shape.Devices)
	})
	var moves []Move
	for _, i := range largest {
		to := m.trial.best(m.placed[i].Request, func(other int) bool { return other != node })
		if to < 0 {
			break
		}
		m.trial.put(m.placed[i].Request, to, 1)
		moves = append(moves, Move{Replica: i, From: node, To: to})
	}
	for _, moved := range moves {
		m.trial.put(m.placed[moved.Replica].Request, moved.To, -1)
	}
	return moves
}

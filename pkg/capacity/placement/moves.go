package placement

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
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

// Bounds of the search. Nobody would move more replicas off one node than that, and where
// so many sets do not help, a further one hardly does.
const (
	movedAtOnce = 4
	setsTried   = 1 << 16
)

// Moves says which of the placed replicas to move so that one more of the request
// fits: the fewest on any one node, and of equally many those with the fewest devices,
// such that each finds a place on another node. There are no moves when it fits now.
// It reports false when moving up to four replicas of one node does not help, a quota
// allows no more, or the request cannot be counted. Other replicas are never moved to make a place for those
// that move. Of each number of moves it tries the first 65,536 sets of replicas.
func (c *Cluster) Moves(r *Request, placed []Placed) (Room, bool) {
	if r.Countable() != nil {
		return Room{}, false
	}
	if allowed, _ := c.Allowed(r); allowed < 1 {
		return Room{}, false
	}
	trial := c.Clone()
	if node, ok := trial.Place(r); ok {
		return Room{Node: node}, true
	}
	m := newMover(trial, r, placed)
	// Few moves are looked for on all nodes before more are on any.
	for count := 1; count <= movedAtOnce; count++ {
		m.left = setsTried
		for i := range m.nodes {
			m.grow(&m.nodes[i], count, m.set[:0], 0)
		}
		if m.found {
			return m.best, true
		}
	}
	return Room{}, false
}

// mover is the working state of looking for moves.
type mover struct {
	trial  *Cluster
	r      *Request
	placed []Placed
	// requests are the different ones of what is placed, and requestOf that of each.
	requests  []moving
	requestOf []int
	// nodes are those that can be cleared.
	nodes []clearing
	set   [movedAtOnce]int
	// left is how many sets may still be tried.
	left int
	// best is the room found with the fewest devices moved, which are least.
	best  Room
	least int
	found bool
}

// moving is a request that replicas ask for which may move.
type moving struct {
	r *Request
	// homes are the nodes that it fits on, the best first. There are as many as to have
	// one left when its own node and those that others move to are none.
	homes []home
	known bool
}

type home struct {
	node  int
	score int64
}

// clearing is a node that could hold the request, and its replicas that could move.
type clearing struct {
	node     int
	replicas []int
}

// newMover looks once at every node and every request: most replicas of a full
// cluster can go nowhere, and most nodes cannot be cleared.
func newMover(trial *Cluster, r *Request, placed []Placed) *mover {
	m := &mover{trial: trial, r: r, placed: placed, requestOf: make([]int, len(placed))}
	known := map[Identity]int{}
	on := make([][]int, len(trial.Nodes))
	for i, p := range placed {
		if p.Node < 0 || p.Node >= len(trial.Nodes) || p.Request.Countable() != nil {
			continue
		}
		key := p.Request.Identity()
		at, ok := known[key]
		if !ok {
			at = len(m.requests)
			known[key] = at
			m.requests = append(m.requests, moving{r: p.Request})
		}
		m.requestOf[i] = at
		on[p.Node] = append(on[p.Node], i)
	}
	for node := range trial.Nodes {
		if !trial.Verdict(r, node).Resolvable() {
			continue
		}
		replicas := slices.DeleteFunc(on[node], func(i int) bool { return m.home(i, node, nil) < 0 })
		if m.clears(node, replicas) {
			m.nodes = append(m.nodes, clearing{node, replicas})
		}
	}
	return m
}

// clears reports whether the request fits on the node without those replicas.
func (m *mover) clears(node int, replicas []int) bool {
	for _, i := range replicas {
		m.trial.put(m.placed[i].Request, node, -1)
	}
	fits := m.trial.Verdict(m.r, node) == Fits
	for _, i := range replicas {
		m.trial.put(m.placed[i].Request, node, 1)
	}
	return fits
}

// grow tries the sets of that many replicas of a node which begin with the set.
// Replicas of one request are the same to the cluster: of each only the first ones are in
// a set.
func (m *mover) grow(n *clearing, count int, set []int, from int) {
	if len(set) == count {
		m.try(n.node, set)
		return
	}
	for i := from; i < len(n.replicas) && m.left > 0; i++ {
		request := m.requestOf[n.replicas[i]]
		same := slices.ContainsFunc(n.replicas[from:i], func(other int) bool { return m.requestOf[other] == request })
		if !same {
			m.grow(n, count, append(set, n.replicas[i]), i+1)
		}
	}
}

// try keeps the moves of a set when it helps and holds fewer devices than the best
// so far.
func (m *mover) try(node int, set []int) {
	m.left--
	devices := 0
	for _, i := range set {
		devices = capacity.Plus(devices, m.placed[i].Request.Shape.Devices)
	}
	if m.found && devices >= m.least {
		return
	}
	if moves := m.move(node, set); moves != nil {
		m.best, m.least, m.found = Room{Node: node, Moves: moves}, devices, true
	}
}

// move tries to move a set of replicas off a node so that the request fits there. It
// leaves the cluster as it was.
func (m *mover) move(node int, set []int) []Move {
	if !m.clears(node, set) {
		return nil
	}
	// The request's room is on this node, which the others do not look at.
	return m.rehouse(node, set)
}

// rehouse finds a place on another node for each of the set, the largest first; nil
// is none for some.
func (m *mover) rehouse(node int, set []int) []Move {
	largest := slices.Clone(set)
	slices.SortStableFunc(largest, func(a, b int) int {
		return cmp.Compare(m.placed[b].Request.Shape.Devices, m.placed[a].Request.Shape.Devices)
	})
	moves := make([]Move, 0, len(set))
	for _, i := range largest {
		to := m.home(i, node, moves)
		if to < 0 {
			break
		}
		m.trial.put(m.placed[i].Request, to, 1)
		moves = append(moves, Move{Replica: i, From: node, To: to})
	}
	for _, moved := range moves {
		m.trial.put(m.placed[moved.Replica].Request, moved.To, -1)
	}
	if len(moves) < len(set) {
		return nil
	}
	return moves
}

// home is the best node for a replica besides its own, or -1. Nodes that others moved
// to are looked at as they now are.
func (m *mover) home(replica, from int, moved []Move) int {
	k := &m.requests[m.requestOf[replica]]
	if !k.known {
		k.homes, k.known = m.homes(k.r), true
	}
	best := home{node: -1}
	for _, h := range k.homes {
		if h.node != from && !slices.ContainsFunc(moved, func(other Move) bool { return other.To == h.node }) {
			best = h
			break
		}
	}
	for _, other := range moved {
		if !m.trial.vacant(k.r, other.To) {
			continue
		}
		h := home{other.To, m.trial.Table.Score(&m.trial.Nodes[other.To], k.r.on(other.To), 0, 0)}
		if best.node < 0 || h.before(best) {
			best = h
		}
	}
	return best.node
}

// before reports whether it is the better one. The order of the nodes breaks ties.
func (h home) before(o home) bool {
	return h.score > o.score || h.score == o.score && h.node < o.node
}

// homes are the best nodes that the request fits on.
func (m *mover) homes(r *Request) []home {
	var best []home
	for i := range m.trial.Nodes {
		if !m.trial.vacant(r, i) {
			continue
		}
		h := home{i, m.trial.Table.Score(&m.trial.Nodes[i], r.on(i), 0, 0)}
		at, _ := slices.BinarySearchFunc(best, h, func(b, h home) int {
			if b.before(h) {
				return -1
			}
			return 1
		})
		if at > movedAtOnce {
			continue
		}
		best = slices.Insert(best, at, h)
		best = best[:min(len(best), movedAtOnce+1)]
	}
	return best
}

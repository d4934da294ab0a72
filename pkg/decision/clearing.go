package decision

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// looksPerReplica is how often each replica that may go, and each node with one, is looked at in
// a round, in the mean. It bounds the time of a round in which many models ask for what nobody
// else asks for; whose turn does not come asks again in the next.
const looksPerReplica = 256

// clearing finds the node on which the fewest replicas have to go so that one more of another
// variant fits, and has them go. Like a Trial it remembers what it counted, and counts again
// only where something changed: in a crisis all models ask, for many replicas each.
type clearing struct {
	room  *placement.Cluster
	found answer
	now   time.Time
	// givers are the replicas that may go, by node, and nodes the indexes of those that have any.
	givers [][]giver
	nodes  []int
	// spreadOf says where the givers of a variant are, and mostOf how many of a model's are on one
	// node at most.
	spreadOf map[*variant]*spread
	mostOf   map[*model]int
	// charging are the nodes with givers that count against a quota, by its index.
	charging map[int][]int
	// changed are the nodes on which another number may have to go now, in order.
	changed []int
	// counted is what was counted for models of one priority.
	counted  map[placement.Identity]*counted
	priority int
	// left is how many more looks there are.
	left int
	gone []giver
}

// spread is where the givers of one variant are.
type spread struct {
	// nodes are those with any, and most is how many are on one of them at most.
	nodes []int
	most  int
	// byNumber is the node of each where they go by number.
	byNumber map[int]int
}

func newClearing(room *placement.Cluster, givers [][]giver, found answer, now time.Time) *clearing {
	c := &clearing{room: room, givers: givers, found: found, now: now, spreadOf: map[*variant]*spread{}, mostOf: map[*model]int{}}
	for node, list := range givers {
		if len(list) == 0 {
			continue
		}
		c.nodes = append(c.nodes, node)
		c.left += looksPerReplica * (1 + len(list))
		c.spread(node, list)
	}
	return c
}

// spread notes where the givers of one node are.
func (c *clearing) spread(node int, list []giver) {
	of, ofModel := map[*variant]int{}, map[*model]int{}
	for _, g := range list {
		s := c.spreadOf[g.v]
		if s == nil {
			s = &spread{byNumber: map[int]int{}}
			c.spreadOf[g.v] = s
		}
		if of[g.v] == 0 {
			s.nodes = append(s.nodes, node)
		}
		if g.number >= 0 {
			s.byNumber[g.number] = node
		}
		of[g.v]++
		ofModel[g.m]++
		s.most = max(s.most, of[g.v])
		c.mostOf[g.m] = max(c.mostOf[g.m], ofModel[g.m])
	}
}

// make has the fewest replicas go from one node without which one of v fits there; none where
// who goes already leaves enough. Less important ones go; equals, too, where they may be asked.
// It reports whether there is such a node.
func (c *clearing) make(m *model, v *variant, equals, atOnce bool) bool {
	gone, at := c.find(m, v, equals)
	if at < 0 {
		return false
	}
	made := Nomination{Node: c.room.Nodes[at].Name, At: c.now}
	for _, g := range gone {
		w := g.v
		if atOnce {
			w.yields++
		}
		c.room.Remove(w.in.Request, at)
		c.found.giving[w] = append(c.found.giving[w], g.name)
		delete(c.found.ideal, w)
		to := fmt.Sprintf("gives up a replica for %s (priority %d)", m.as(w.key.Namespace), m.promise.Priority)
		if g.m.promise.Priority == m.promise.Priority {
			to = fmt.Sprintf("gives up a replica for %s, which has a smaller share of its need", m.as(w.key.Namespace))
		}
		w.step(StageAllocation, w.present()-1, ReasonPreempted, "%s", to)
		made.By, made.To = w.key, w.target
		w.fact(ReasonPreempted, "%s", to)
		v.fact(ReasonNoSlots, "waits for room that %s gives", w.as(v.key.Namespace))
	}
	c.room.Put(v.in.Request, at)
	c.note(at, gone)
	v.nominated = slices.DeleteFunc(v.nominated, func(n nominated) bool { return !n.goes })
	v.nominated = append(v.nominated, nominated{made, at, false, atOnce})
	return true
}

// note notes who went from a node, and where others can go now, or can no more: the next ones by
// number, and all of a variant or a model of which so few are left that some have to stay.
func (c *clearing) note(at int, gone []giver) {
	c.changed = append(c.changed, at)
	for i, g := range gone {
		here := c.givers[at]
		here[slices.IndexFunc(here, func(o giver) bool { return o.v == g.v && o.name == g.name })].gave = true
		if slices.ContainsFunc(gone[:i], func(o giver) bool { return o.v == g.v }) {
			continue
		}
		s := c.spreadOf[g.v]
		if node, known := s.byNumber[g.v.present()-1]; known {
			c.changed = append(c.changed, node)
		}
		switch {
		case g.m.count((*variant).present) <= c.mostOf[g.m]:
			for _, w := range g.m.variants {
				if s := c.spreadOf[w]; s != nil {
					c.changed = append(c.changed, s.nodes...)
				}
			}
		case g.v.present()-g.v.policy.Min < s.most:
			c.changed = append(c.changed, s.nodes...)
		}
	}
}

// find is the node on which the fewest have to go, the first of equal ones, and who; -1 means
// that there is none.
func (c *clearing) find(m *model, v *variant, equals bool) (gone []giver, at int) {
	at = -1
	if c.left <= 0 {
		return nil, at
	}
	quota := exhausted(c.room, v.in.Request)
	switch {
	case quota >= 0:
		// Only who counts against it, too, helps, so that one goes at least.
		return c.scan(m, v, c.chargingTo(quota), equals, 1)
	case equals:
		// How much an equal may lose depends on who asks.
		return c.scan(m, v, c.nodes, equals, 0)
	}
	if at = c.counts(m, v).best(); at >= 0 {
		gone, _ = c.fewest(m, v, at, false)
		gone = slices.Clone(gone)
	}
	return gone, at
}

// scan looks at nodes one after the other, until no other can be better.
func (c *clearing) scan(m *model, v *variant, nodes []int, equals bool, least int) (best []giver, at int) {
	at = -1
	for _, node := range nodes {
		if gone, fits := c.fewest(m, v, node, equals); fits && (at < 0 || len(gone) < len(best)) {
			best, at = slices.Clone(gone), node
			if len(best) <= least {
				break
			}
		}
	}
	return best, at
}

// fewest are the first of the givers on a node without whom a replica of v fits, if it does
// without all of them. Who may give no more is passed over, and so are equals that may not be
// asked, or would have less of what they need then than m.
func (c *clearing) fewest(m *model, v *variant, node int, equals bool) (gone []giver, fits bool) {
	gone, fits = c.gone[:0], admits(c.room, v.in.Request, node)
	c.left--
	for _, g := range c.givers[node] {
		if fits || g.v.priority < m.promise.Priority || !equals && g.v.priority == m.promise.Priority {
			break
		}
		c.left -= len(g.m.variants)
		given, givenOf, lost := 0, 0, capacity.Rate(0)
		for _, o := range gone {
			if o.v == g.v {
				given++
			}
			if o.m == g.m {
				givenOf, lost = givenOf+1, lost+o.v.rate.serves()
			}
		}
		less := g.v.priority > m.promise.Priority ||
			g.m != m && m.has(v.rate.serves()) <= g.m.has(-lost-g.v.rate.serves()-g.m.served((*variant).comes))
		if g.gave || !less || !g.goes(g.v.present()-given) || g.v.present()-given <= g.v.policy.Min || g.m.count((*variant).present)-givenOf <= 1 {
			continue
		}
		c.room.Remove(g.v.in.Request, node)
		gone = append(gone, g)
		fits = admits(c.room, v.in.Request, node)
	}
	for _, g := range gone {
		c.room.Put(g.v.in.Request, node)
	}
	c.gone = gone
	return gone, fits
}

// admits reports whether one more such replica fits on the node and quotas allow it.
func admits(room *placement.Cluster, q *placement.Request, node int) bool {
	return exhausted(room, q) < 0 && room.Fits(q, node)
}

// exhausted is the index of a quota that allows no more replicas of the request, or -1.
func exhausted(room *placement.Cluster, q *placement.Request) int {
	for _, a := range q.Charges {
		if a.Count > 0 && room.Quotas[a.Index].Left < a.Count {
			return a.Index
		}
	}
	return -1
}

// chargingTo are the nodes with givers that count against a quota.
func (c *clearing) chargingTo(quota int) []int {
	if c.charging == nil {
		c.charging = map[int][]int{}
		for _, node := range c.nodes {
			for _, g := range c.givers[node] {
				for _, a := range g.v.in.Request.Charges {
					if list := c.charging[a.Index]; len(list) == 0 || list[len(list)-1] != node {
						c.charging[a.Index] = append(list, node)
					}
				}
			}
		}
	}
	return c.charging[quota]
}

// counted is how many have to go from each node for one kind of request, whatever quotas allow.
type counted struct {
	// count is by node; -1 means that it does not fit without all who may go. Of the heap an
	// entry that is not its node's present count is out of date.
	count []int
	heap  nodesByCount
	// at is how many changes are in it.
	at int
}

// counts is what less important replicas have to go for one of v, as things stand.
func (c *clearing) counts(m *model, v *variant) *counted {
	if c.counted == nil || c.priority != m.promise.Priority {
		c.counted, c.priority = map[placement.Identity]*counted{}, m.promise.Priority
	}
	key := v.in.Request.Identity()
	q, known := c.counted[key]
	count := func(node int) {
		gone, fits := c.fewest(m, v, node, false)
		q.count[node] = -1
		if fits {
			q.count[node] = len(gone)
			q.heap = append(q.heap, nodeCount{len(gone), node})
		}
	}
	if !known || len(c.changed)-q.at > len(c.nodes) {
		q = &counted{count: make([]int, len(c.givers))}
		for _, node := range c.nodes {
			count(node)
		}
		heap.Init(&q.heap)
		c.counted[key] = q
	} else {
		for _, node := range c.changed[q.at:] {
			before := len(q.heap)
			count(node)
			if len(q.heap) > before {
				heap.Fix(&q.heap, before)
			}
		}
	}
	q.at = len(c.changed)
	return q
}

// best is the node on which the fewest go, the first of equal ones; -1 means none.
func (q *counted) best() int {
	for len(q.heap) > 0 {
		if top := q.heap[0]; q.count[top.node] == top.count {
			return top.node
		}
		heap.Pop(&q.heap)
	}
	return -1
}

type nodeCount struct{ count, node int }

// nodesByCount is a heap of nodes, the fewest first, and of equal ones the first node.
type nodesByCount []nodeCount

func (h nodesByCount) Len() int { return len(h) }
func (h nodesByCount) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].count, h[j].count), cmp.Compare(h[i].node, h[j].node)) < 0
}
func (h nodesByCount) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *nodesByCount) Push(x any)   { *h = append(*h, x.(nodeCount)) }
func (h *nodesByCount) Pop() any {
	*h = (*h)[:len(*h)-1]
	return nil
}

package preempt

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// LooksPerReplica is how often each replica that may go, and each node with one, is looked at in
// a round, in the mean. It bounds the time of a round in which many models ask for what nobody
// else asks for; whose turn does not come asks again in the next.
const LooksPerReplica = 256

// Clearing finds the node on which the fewest replicas have to go so that one more of another
// variant fits, and has them go. Like a Trial it remembers what it counted, and counts again
// only where something changed: in a crisis all models ask, for many replicas each.
type Clearing struct {
	Room  *placement.Cluster
	Found allocate.Answer
	now   time.Time
	// Givers are the replicas that may go, by node, and nodes the indexes of those that have any.
	Givers [][]Giver
	Nodes  []int
	// spreadOf says where the givers of a variant are, and mostOf how many of a model's are on one
	// node at most.
	spreadOf map[*limit.Variant]*spread
	mostOf   map[*limit.Model]int
	// charging are the nodes with givers that count against a quota, by its index.
	charging map[int][]int
	// changed are the nodes on which another number may have to go now, in order.
	changed []int
	// counted is what was counted for models of one priority.
	counted  map[placement.Identity]*counted
	priority int
	// Left is how many more looks there are.
	Left int
	gone []Giver
}

// spread is where the givers of one variant are.
type spread struct {
	// nodes are those with any, and most is how many are on one of them at most.
	nodes []int
	most  int
	// byNumber is the node of each where they go by number.
	byNumber map[int]int
}

// NewClearing is a clearing of so much room, by these givers of each node.
func NewClearing(room *placement.Cluster, givers [][]Giver, found allocate.Answer, now time.Time) *Clearing {
	c := &Clearing{Room: room, Givers: givers, Found: found, now: now, spreadOf: map[*limit.Variant]*spread{}, mostOf: map[*limit.Model]int{}}
	for node, list := range givers {
		if len(list) == 0 {
			continue
		}
		c.Nodes = append(c.Nodes, node)
		c.Left += LooksPerReplica * (1 + len(list))
		c.spread(node, list)
	}
	return c
}

// spread notes where the givers of one node are.
func (c *Clearing) spread(node int, list []Giver) {
	of, ofModel := map[*limit.Variant]int{}, map[*limit.Model]int{}
	for _, g := range list {
		s := c.spreadOf[g.V]
		if s == nil {
			s = &spread{byNumber: map[int]int{}}
			c.spreadOf[g.V] = s
		}
		if of[g.V] == 0 {
			s.nodes = append(s.nodes, node)
		}
		if g.Number >= 0 {
			s.byNumber[g.Number] = node
		}
		of[g.V]++
		ofModel[g.M]++
		s.most = max(s.most, of[g.V])
		c.mostOf[g.M] = max(c.mostOf[g.M], ofModel[g.M])
	}
}

// Make has the fewest replicas go from one node without which one of v fits there; none where
// who goes already leaves enough. Less important ones go; equals, too, where they may be asked.
// It reports whether there is such a node.
func (c *Clearing) Make(m *limit.Model, v *limit.Variant, equals, atOnce bool) bool {
	gone, at := c.Find(m, v, equals)
	if at < 0 {
		return false
	}
	made := contract.ReservedRoom{Node: c.Room.Nodes[at].Name, At: c.now}
	for _, g := range gone {
		w := g.V
		if atOnce {
			w.Yields++
		}
		c.Room.Remove(w.In.Request, at)
		c.Found.Giving[w] = append(c.Found.Giving[w], g.Name)
		delete(c.Found.Ideal, w)
		to := contract.SaysGivesUp.With(m.Key.As(w.Key.Namespace), m.Promise.Priority)
		if g.M.Promise.Priority == m.Promise.Priority {
			to = contract.SaysGivesUpToEqual.With(m.Key.As(w.Key.Namespace))
		}
		w.Step(contract.StageAllocation, PresentOf(w)-1, contract.ReasonPreempted, to)
		made.By, made.To = w.Key, w.Target
		w.Fact(contract.ReasonPreempted, to)
		v.Fact(contract.ReasonNoSlots, contract.SaysWaitsForRoom.With(w.Key.As(v.Key.Namespace)))
	}
	c.Room.Put(v.In.Request, at)
	c.note(at, gone)
	v.Nominated = slices.DeleteFunc(v.Nominated, func(n limit.Nominated) bool { return !n.Goes })
	v.Nominated = append(v.Nominated, limit.Nominated{ReservedRoom: made, Index: at, Fits: false, Goes: atOnce})
	return true
}

// note notes who went from a node, and where others can go now, or can no more: the next ones by
// number, and all of a variant or a model of which so few are left that some have to stay.
func (c *Clearing) note(at int, gone []Giver) {
	c.changed = append(c.changed, at)
	for i, g := range gone {
		here := c.Givers[at]
		here[slices.IndexFunc(here, func(o Giver) bool { return o.V == g.V && o.Name == g.Name })].gave = true
		if slices.ContainsFunc(gone[:i], func(o Giver) bool { return o.V == g.V }) {
			continue
		}
		s := c.spreadOf[g.V]
		if node, known := s.byNumber[PresentOf(g.V)-1]; known {
			c.changed = append(c.changed, node)
		}
		switch {
		case signal.Count(g.M.Variants, PresentOf) <= c.mostOf[g.M]:
			for _, w := range g.M.Variants {
				if s := c.spreadOf[w]; s != nil {
					c.changed = append(c.changed, s.nodes...)
				}
			}
		case PresentOf(g.V)-g.V.Policy.Min < s.most:
			c.changed = append(c.changed, s.nodes...)
		}
	}
}

// Find is the node on which the fewest have to go, the first of equal ones, and who; -1 means
// that there is none.
func (c *Clearing) Find(m *limit.Model, v *limit.Variant, equals bool) (gone []Giver, at int) {
	at = -1
	if c.Left <= 0 {
		return nil, at
	}
	quota := allocate.Exhausted(c.Room, v.In.Request)
	switch {
	case quota >= 0:
		// Only who counts against it, too, helps, so that one goes at least.
		return c.scan(m, v, c.chargingTo(quota), equals, 1)
	case equals:
		// How much an equal may lose depends on who asks.
		return c.scan(m, v, c.Nodes, equals, 0)
	}
	if at = c.counts(m, v).best(); at >= 0 {
		gone, _ = c.fewest(m, v, at, false)
		gone = slices.Clone(gone)
	}
	return gone, at
}

// scan looks at nodes one after the other, until no other can be better.
func (c *Clearing) scan(m *limit.Model, v *limit.Variant, nodes []int, equals bool, least int) (best []Giver, at int) {
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
func (c *Clearing) fewest(m *limit.Model, v *limit.Variant, node int, equals bool) (gone []Giver, fits bool) {
	gone, fits = c.gone[:0], allocate.Admits(c.Room, v.In.Request, node)
	c.Left--
	for _, g := range c.Givers[node] {
		if fits || g.V.Priority < m.Promise.Priority || !equals && g.V.Priority == m.Promise.Priority {
			break
		}
		c.Left -= len(g.M.Variants)
		given, givenOf, lost := 0, 0, capacity.Rate(0)
		for _, o := range gone {
			if o.V == g.V {
				given++
			}
			if o.M == g.M {
				givenOf, lost = givenOf+1, lost+o.V.Rate.Serves()
			}
		}
		less := g.V.Priority > m.Promise.Priority ||
			g.M != m && HasShare(m, v.Rate.Serves()) <= HasShare(g.M, -lost-g.V.Rate.Serves()-rate.Served(g.M.Variants, ComingOf))
		if g.gave || !less || !g.Goes(PresentOf(g.V)-given) || PresentOf(g.V)-given <= g.V.Policy.Min || signal.Count(g.M.Variants, PresentOf)-givenOf <= 1 {
			continue
		}
		c.Room.Remove(g.V.In.Request, node)
		gone = append(gone, g)
		fits = allocate.Admits(c.Room, v.In.Request, node)
	}
	for _, g := range gone {
		c.Room.Put(g.V.In.Request, node)
	}
	c.gone = gone
	return gone, fits
}

// chargingTo are the nodes with givers that count against a quota.
func (c *Clearing) chargingTo(quota int) []int {
	if c.charging == nil {
		c.charging = map[int][]int{}
		for _, node := range c.Nodes {
			for _, g := range c.Givers[node] {
				for _, a := range g.V.In.Request.Charges {
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
func (c *Clearing) counts(m *limit.Model, v *limit.Variant) *counted {
	if c.counted == nil || c.priority != m.Promise.Priority {
		c.counted, c.priority = map[placement.Identity]*counted{}, m.Promise.Priority
	}
	key := v.In.Request.Identity()
	q, known := c.counted[key]
	count := func(node int) {
		gone, fits := c.fewest(m, v, node, false)
		q.count[node] = -1
		if fits {
			q.count[node] = len(gone)
			q.heap = append(q.heap, nodeCount{len(gone), node})
		}
	}
	if !known || len(c.changed)-q.at > len(c.Nodes) {
		q = &counted{count: make([]int, len(c.Givers))}
		for _, node := range c.Nodes {
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

func (h *nodesByCount) Push(x any) { *h = append(*h, x.(nodeCount)) }

func (h *nodesByCount) Pop() any {
	*h = (*h)[:len(*h)-1]
	return nil
}

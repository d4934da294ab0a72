package placement

import (
	"container/heap"
	"math"
)

// Trial is a cluster on which many placements are tried out, one after the other. Its
// answers are those of the Cluster; it remembers what it counted and brings up to date
// only the nodes that changed since, so that a placement costs the logarithm of the
// number of nodes and not all of them. Nobody else may change the cluster's nodes or
// table meanwhile.
type Trial struct {
	cluster    *Cluster
	byIdentity map[Identity]*candidates
	// expected is the outlook of the table that is still to be made, where due is set.
	expected Outlook
	due      bool
	// changed are the nodes that changed, in order.
	changed []int
}

// NewTrial begins with the cluster as it is.
func NewTrial(c *Cluster) *Trial {
	return &Trial{cluster: c, byIdentity: map[Identity]*candidates{}}
}

// Expect has the nodes weighed by what they are worth to the outlook, which is kept. Its
// table is made of the cluster as it stands, before that is changed or shown; most trials
// only count, and need none.
func (t *Trial) Expect(outlook Outlook) { t.expected, t.due = outlook, true }

func (t *Trial) weigh() {
	if t.due {
		t.cluster.Table, t.due = NewTable(t.expected, t.cluster), false
	}
}

// Cluster is the cluster as it stands.
func (t *Trial) Cluster() *Cluster {
	t.weigh()
	return t.cluster
}

// Allowed is that of the cluster.
func (t *Trial) Allowed(r *Request) (replicas int, by string) { return t.cluster.Allowed(r) }

// Slots is that of the cluster.
func (t *Trial) Slots(r *Request) (int, error) {
	if err := r.Countable(); err != nil {
		return 0, err
	}
	allowed, _ := t.cluster.Allowed(r)
	return min(t.upToDate(r).slots, allowed), nil
}

// LargestHole is that of the cluster.
func (t *Trial) LargestHole(r *Request) int {
	if r.Countable() != nil {
		return t.cluster.LargestHole(r)
	}
	q := t.upToDate(r)
	if q.holeAt != len(t.changed) {
		q.hole, q.holeAt = t.cluster.LargestHole(r), len(t.changed)
	}
	return q.hole
}

// Explain is that of the cluster.
func (t *Trial) Explain(r *Request) Explanation {
	if r.Countable() != nil {
		return t.cluster.Explain(r)
	}
	q := t.upToDate(r)
	if q.explainedAt != len(t.changed) {
		q.explained, q.explainedAt = t.cluster.explainNodes(r), len(t.changed)
		q.explained.text = q.explained.String()
	}
	return t.cluster.allowing(q.explained, r)
}

// Place is that of the cluster.
func (t *Trial) Place(r *Request) (node int, ok bool) {
	if r.Countable() != nil {
		return -1, false
	}
	if allowed, _ := t.cluster.Allowed(r); allowed < 1 {
		return -1, false
	}
	q := t.upToDate(r)
	if !q.ranked {
		t.rank(q, r)
	}
	for len(q.heap) > 0 {
		best := q.heap[0]
		if q.each[best.node] == 0 || q.score[best.node] != best.score {
			heap.Pop(q)
			continue
		}
		t.put(r, best.node, 1)
		return best.node, true
	}
	return -1, false
}

// Charge is that of the cluster.
func (t *Trial) Charge(r *Request, count int) { t.cluster.Charge(r, count) }

// Put is that of the cluster.
func (t *Trial) Put(r *Request, node int) { t.put(r, node, 1) }

// Remove is that of the cluster.
func (t *Trial) Remove(r *Request, node int) { t.put(r, node, -1) }

func (t *Trial) put(r *Request, node, count int) {
	t.weigh()
	t.cluster.put(r, node, count)
	t.changed = append(t.changed, node)
}

// candidates are the nodes for requests of one identity, and once one is placed, the best
// on top of a heap. An entry that is not its node's present score is out of date and
// dropped when it comes up.
type candidates struct {
	heap []candidate
	// ranked is set once the nodes are in the heap.
	ranked bool
	// score and each are by node: its score once they are ranked, and how many fit. A cluster may have
	// thousands of nodes, and as many identities.
	score []int64
	each  []int32
	// slots is the sum of each.
	slots     int
	hole      int
	explained Explanation
	// at, holeAt and explainedAt are how many changes are in it, in hole and in
	// explained.
	at, holeAt, explainedAt int
}

type candidate struct {
	score int64
	node  int
}

// upToDate are the candidates of a request as the cluster stands.
func (t *Trial) upToDate(r *Request) *candidates {
	key := r.Identity()
	q, known := t.byIdentity[key]
	nodes := len(t.cluster.Nodes)
	switch {
	case !known || len(t.changed)-q.at > nodes:
		q = &candidates{each: make([]int32, nodes), holeAt: -1, explainedAt: -1}
		for i := range nodes {
			t.judge(q, r, i)
		}
		t.byIdentity[key] = q
	default:
		for _, i := range t.changed[q.at:] {
			before := len(q.heap)
			t.judge(q, r, i)
			if len(q.heap) > before {
				heap.Fix(q, before)
			}
		}
	}
	q.at = len(t.changed)
	return q
}

// rank puts the nodes that fit into the heap.
func (t *Trial) rank(q *candidates, r *Request) {
	t.weigh()
	q.score = make([]int64, len(q.each))
	for i, each := range q.each {
		if each > 0 {
			t.score(q, r, i)
		}
	}
	heap.Init(q)
	q.ranked = true
}

func (t *Trial) score(q *candidates, r *Request, i int) {
	q.score[i] = t.cluster.score(r, i)
	q.heap = append(q.heap, candidate{q.score[i], i})
}

// judge looks at one node, and adds an entry where one fits and nodes are ranked.
func (t *Trial) judge(q *candidates, r *Request, i int) {
	each := int32(min(t.cluster.slotsOn(r, i), math.MaxInt32))
	q.slots += int(each) - int(q.each[i])
	q.each[i] = each
	if each > 0 && q.ranked {
		t.score(q, r, i)
	}
}

// Len, Less, Swap, Push and Pop implement heap.Interface: the highest score first, and
// of equal ones the first node.
func (q *candidates) Len() int { return len(q.heap) }

// Less is the order of the heap.
func (q *candidates) Less(a, b int) bool {
	if q.heap[a].score != q.heap[b].score {
		return q.heap[a].score > q.heap[b].score
	}
	return q.heap[a].node < q.heap[b].node
}

// Swap exchanges two entries.
func (q *candidates) Swap(a, b int) { q.heap[a], q.heap[b] = q.heap[b], q.heap[a] }

// Push adds an entry.
func (q *candidates) Push(x any) { q.heap = append(q.heap, x.(candidate)) }

// Pop takes the last entry off, which nobody looks at.
func (q *candidates) Pop() any {
	q.heap = q.heap[:len(q.heap)-1]
	return nil
}

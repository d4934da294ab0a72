package placement

import (
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Leaving is the replicas of one request of which some are to be removed at the same
// time as some of others.
type Leaving struct {
	Request  *Request
	Replicas []Replica
	// Count is how many of them are to be removed.
	Count int
}

// VictimsTogether is Victims for several requests that give up replicas at the same
// time; the victims come in the order of the requests. First each request chooses in
// turn, on what those before it leave. Then, node by node, they exchange what they
// chose elsewhere for their replicas on that node, as long as the room that all of
// them leave is worth more: so a node that no request empties alone is emptied by
// several. The choice is never worth less than choosing in turn, and not always the
// best that there is.
func (c *Cluster) VictimsTogether(leaving []Leaving) [][]int {
	t := exchange{c: c.Clone(), on: make([][]*party, len(c.Nodes))}
	victims := make([][]int, len(leaving))
	for i := range leaving {
		victims[i] = t.choose(&leaving[i])
		t.join(i, &leaving[i], victims[i])
	}
	for range exchangeRounds {
		if !t.round() {
			break
		}
	}
	for _, p := range t.parties {
		victims[p.index] = p.victims()
	}
	return victims
}

// exchangeRounds bounds the work; hardly anything changes after the second round.
const exchangeRounds = 4

// exchange is the working state of requests that choose together.
type exchange struct {
	// c is the cluster without the victims.
	c       *Cluster
	parties []*party
	// on are the parties with a choice on a node, by the index of the node.
	on [][]*party
}

// party is one request with a choice: some, but not all, of its replicas of one rank
// go, and all of the ranks before.
type party struct {
	choice
	// index is the place of the request in the order of all.
	index int
	// fixed are the victims that are no choice.
	fixed []int
	nodes []int
	// of are the replicas that can be chosen, by node, in the order of removal.
	of map[int][]int
	// goes is how many of them go, by node.
	goes map[int]int
}

// choose takes the request's own best choice out of the cluster.
func (t *exchange) choose(l *Leaving) []int {
	victims := t.c.Victims(l.Request, l.Replicas, l.Count)
	for _, i := range victims {
		if node := l.Replicas[i].Node; node >= 0 && node < len(t.c.Nodes) {
			t.c.release(l.Request, node, 1)
		}
	}
	return victims
}

// join adds a request that has a choice.
func (t *exchange) join(index int, l *Leaving, victims []int) {
	if len(victims) == 0 || len(victims) == len(l.Replicas) {
		return
	}
	p := &party{choice: choice{c: t.c, r: l.Request, replicas: l.Replicas}, index: index, goes: map[int]int{}}
	last := p.rank(victims[len(victims)-1])
	if last < placedRanks {
		return
	}
	for _, i := range victims {
		if p.rank(i) == last {
			p.goes[l.Replicas[i].Node]++
		} else {
			p.fixed = append(p.fixed, i)
		}
	}
	var candidates []int
	for i := range l.Replicas {
		if p.rank(i) == last {
			candidates = append(candidates, i)
		}
	}
	p.nodes, p.of = p.byNode(candidates)
	for _, node := range p.nodes {
		t.on[node] = append(t.on[node], p)
	}
	t.parties = append(t.parties, p)
}

// victims are what the party gives up in the end.
func (p *party) victims() []int {
	var chosen []int
	for _, node := range p.nodes {
		chosen = append(chosen, p.of[node][:p.goes[node]]...)
	}
	return append(slices.Clone(p.fixed), p.inOrder(chosen)...)
}

// swap has a party give up one replica more on one node and one fewer on another.
type swap struct {
	party     *party
	more, few int
	gain      int64
}

// round goes over all nodes once and reports whether anything changed. On each node
// it gives up one replica after the other, the least costly first, and keeps as many
// of these steps as are worth the most together: a step can cost room that the next
// one brings back.
func (t *exchange) round() (changed bool) {
	for node := range t.c.Nodes {
		var made []swap
		sum, best, keep := int64(0), int64(0), 0
		for {
			s, ok := t.next(node)
			if !ok {
				break
			}
			s.party.swap(s.more, s.few)
			made = append(made, s)
			if sum = capacity.Plus(sum, s.gain); sum > best {
				best, keep = sum, len(made)
			}
		}
		for _, s := range slices.Backward(made[keep:]) {
			s.party.swap(s.few, s.more)
		}
		changed = changed || keep > 0
	}
	return changed
}

// next is the swap that frees more of the node and brings the most.
func (t *exchange) next(node int) (best swap, ok bool) {
	for _, p := range t.on[node] {
		if p.goes[node] == len(p.of[node]) {
			continue
		}
		freed := p.gain(node, 1)
		for _, other := range p.nodes {
			if other == node || p.goes[other] == 0 {
				continue
			}
			if gain := capacity.Plus(freed, p.gain(other, -1)); !ok || gain > best.gain {
				best, ok = swap{p, node, other, gain}, true
			}
		}
	}
	return best, ok
}

func (p *party) swap(more, few int) {
	p.goes[more]++
	p.c.release(p.r, more, 1)
	p.goes[few]--
	p.c.release(p.r, few, -1)
}

// gain is what the room of a node gains when so many more replicas of it go.
func (p *party) gain(node, more int) int64 {
	n := &p.c.Nodes[node]
	pool := p.c.holding(p.r, node)
	return capacity.Minus(p.worth(n, pool, more), p.worth(n, pool, 0))
}

// holding is the pool with the devices of a request's replica that the node holds.
func (c *Cluster) holding(r *Request, node int) int {
	s := r.on(node)
	pool := c.Nodes[node].poolOf(&s)
	if pool == noPool && s.Devices > 0 {
		// Replicas may accept further types: these hold the devices that are there.
		pool = 0
	}
	return pool
}

// release takes replicas of the request off the node that holds them.
func (c *Cluster) release(r *Request, node, count int) {
	c.Nodes[node].change(r, c.holding(r, node), count)
}

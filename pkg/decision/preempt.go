package decision

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// equalsPerRound is for how many models a round looks for room that only equally important ones
// can make: it bounds its time.
const equalsPerRound = 8

// preempt has others give way, in a cluster that does not grow, to models that lack room:
// less important ones, and equally important ones that have more of what they need. Less
// important ones give what serves the arrivals at once, as far as their scaleDown policies allow.
// For what is beyond these, and among equals, each gives for one replica of each at a time, so that
// the scale-down window of who gives lies between two; never below a minimum, nor the model's last
// replica. A replica of several pods gets no room in this way.
func (r *round) preempt(ordered []*model, found answer) {
	if !r.policy.Limited || r.trial == nil {
		return
	}
	var lack []*model
	for _, m := range ordered {
		if len(r.lacking(m, found.lacks[m])) > 0 {
			lack = append(lack, m)
		}
	}
	if len(lack) == 0 {
		return
	}
	slices.SortStableFunc(lack, func(a, b *model) int {
		return cmp.Or(cmp.Compare(a.promise.Priority, b.promise.Priority), cmp.Compare(a.has(0), b.has(0)))
	})
	givers := r.givers(ordered)
	if len(givers) == 0 {
		return
	}
	room := r.withoutNominated()
	least, helped := ordered[len(ordered)-1].promise.Priority, 0
	for _, m := range r.inTurns(lack, least) {
		if m.promise.Priority == least && helped == scarceModels {
			return
		}
		if r.makeWay(m, room, givers, found) && m.promise.Priority == least {
			helped++
		}
	}
}

// makeWay has room made for what the model lacks, unless it is being made, and reports whether it
// is.
func (r *round) makeWay(m *model, room *placement.Cluster, givers map[int][]giver, found answer) bool {
	lacking := slices.DeleteFunc(r.lacking(m, found.lacks[m]), func(v *variant) bool { return v.in.Request.Shape.Pods > 1 })
	urgent, going := m.urgent(), 0
	for _, v := range m.variants {
		for _, made := range v.nominated {
			if made.goes {
				urgent, going = urgent-v.rate.serves(), going+1
			}
		}
	}
	for _, v := range lacking {
		for r.kind == RoundFull && urgent > 0 && len(v.nominated) < max(1, r.mayAdd(v)) && makeRoom(m, v, room, givers, found, r.snapshot.Time, true) {
			urgent, going = urgent-max(v.rate.serves(), oneMore), going+1
		}
	}
	return going > 0 || slices.ContainsFunc(lacking, func(v *variant) bool {
		return makeRoom(m, v, room, givers, found, r.snapshot.Time, false)
	})
}

// urgent is the rate for which less important models give way at once: what arrives beyond what
// the model's replicas serve, and at least that of one where it has none.
func (m *model) urgent() (rate capacity.Rate) {
	if m.rated {
		rate = m.demand.now - m.served(func(v *variant) int { return v.target })
	}
	if m.alive() == 0 {
		rate = max(rate, oneMore)
	}
	return rate
}

// inTurns leaves of the models that nobody is less important than, which only equals make room
// for, equalsPerRound: others each minute.
func (r *round) inTurns(lack []*model, least int) []*model {
	first := slices.IndexFunc(lack, func(m *model) bool { return m.promise.Priority == least })
	if first < 0 || len(lack)-first <= equalsPerRound {
		return lack
	}
	last := lack[first:]
	turn := int(uint64(r.snapshot.Time.Unix())/uint64(time.Minute.Seconds())%uint64(len(last))) * equalsPerRound % len(last)
	return slices.Concat(lack[:first], slices.Concat(last[turn:], last[:turn])[:equalsPerRound])
}

// has is the share of what the model needs, by its weight, that its replicas serve if they
// served that much more: what equally important models share scarce room by.
func (m *model) has(more capacity.Rate) float64 {
	if m.alive() == 0 {
		return 0
	}
	needs := capacity.Rate(m.promise.weight()) * m.carried()
	if needs <= 0 {
		return math.Inf(1)
	}
	return float64((m.served(func(v *variant) int { return v.target }) + more) / needs)
}

// stranded reports whether a replica of the variant waits in vain for a node, and none of its
// model's is alive that is to have one.
func (r *round) stranded(m *model, v *variant) bool {
	return v.fleet.count[stateUnschedulable] > 0 && v.plan.Unplaced > 0 && m.alive() == 0 && r.awake(m)
}

// lacking are the variants of which the model would have one more replica, or one that waits
// would come up, if there were room, those that serve for the least first.
func (r *round) lacking(m *model, l lack) []*variant {
	var all []*variant
	wants := m.need.want == wantMore && l.short > 0 && m.rated || l.any
	m.each(func(v *variant) {
		lacks := wants && !v.rate.unfit() && v.fleet.paused == 0 && r.mayAdd(v) > 0 || v.target < v.policy.Min
		if (lacks || r.stranded(m, v)) && r.full(v) {
			all = append(all, v)
		}
	})
	slices.SortStableFunc(all, func(a, b *variant) int { return cmp.Compare(a.unitPrice(), b.unitPrice()) })
	return all
}

// giver is a replica that may go.
type giver struct {
	m    *model
	v    *variant
	name string
	// number is its place in the row of those that go from the end; -1 where any of them may go
	// first.
	number int
}

// goes reports whether it is the next to go when so many of its variant are left.
func (g *giver) goes(left int) bool { return g.number < 0 || g.number == left-1 }

// numberOf is the number that a name ends with: "a-12". It reports whether there is one.
func numberOf(name string) (number int, ok bool) {
	number, err := strconv.Atoi(name[strings.LastIndexByte(name, '-')+1:])
	return number, err == nil
}

// givers are the replicas of each node that may go, those of the least important models
// first, and of these the dearest. Which one goes has to be known: where neither we choose nor
// they go by number, all of a variant have to be on one node.
func (r *round) givers(models []*model) map[int][]giver {
	byNode, nodes := map[int][]giver{}, r.nodes()
	for _, m := range models {
		m.each(func(v *variant) {
			down := v.policy.Down
			if m.evidence != evidenceFull || v.rolling() || down.Select == SelectDisabled || v.tolerates(down, v.target-1) || r.unknown(v) != nil {
				return
			}
			all := r.removable(v, v.target, nil, nodes)
			if !v.in.Picks && !v.in.Numbered && slices.ContainsFunc(all, func(p placement.Replica) bool { return p.Node != all[0].Node }) {
				return
			}
			for _, p := range all {
				number, known := -1, true
				if v.in.Numbered {
					number, known = numberOf(p.Name)
					number -= v.in.First
					known = known && number >= 0
				}
				if known && p.Node >= 0 {
					byNode[p.Node] = append(byNode[p.Node], giver{m, v, p.Name, number})
				}
			}
		})
	}
	for _, list := range byNode {
		slices.SortStableFunc(list, func(a, b giver) int {
			return cmp.Or(cmp.Compare(b.v.priority, a.v.priority), cmp.Compare(b.v.unitPrice(), a.v.unitPrice()), cmp.Compare(b.number, a.number))
		})
	}
	return byNode
}

// makeRoom has the fewest replicas of less important models go from one node without which
// a replica of v fits there; none where who goes already leaves enough. It reports whether
// there is such a node.
func makeRoom(m *model, v *variant, room *placement.Cluster, givers map[int][]giver, found answer, now time.Time, atOnce bool) bool {
	var best []giver
	at := -1
	for node := range room.Nodes {
		if len(givers[node]) == 0 {
			continue
		}
		if gives, fits := fewest(m, v, node, givers[node], found.giving, room, atOnce); fits && (at < 0 || len(gives) < len(best)) {
			best, at = gives, node
		}
	}
	if at < 0 {
		return false
	}
	made := Nomination{Node: room.Nodes[at].Name, At: now}
	for _, g := range best {
		w := g.v
		if atOnce {
			w.yields++
		}
		room.Remove(w.in.Request, at)
		found.giving[w] = append(found.giving[w], g.name)
		delete(found.ideal, w)
		to := fmt.Sprintf("gives up a replica for %s (priority %d)", m.in.ID, m.promise.Priority)
		if g.m.promise.Priority == m.promise.Priority {
			to = fmt.Sprintf("gives up a replica for %s, which has a smaller share of its need", m.in.ID)
		}
		w.step(StageAllocation, w.present()-1, ReasonPreempted, "%s", to)
		made.By, made.To = w.key, w.target
		w.fact(ReasonPreempted, "%s", to)
		v.fact(ReasonNoSlots, "waits for room that %s gives", w.in.Name)
	}
	room.Put(v.in.Request, at)
	v.nominated = slices.DeleteFunc(v.nominated, func(n nominated) bool { return !n.goes })
	v.nominated = append(v.nominated, nominated{made, at, false, atOnce})
	return true
}

// present is how many of the wanted replicas are there. What a giver was to get besides waits:
// Kubernetes makes nothing of one replica more and one less.
func (v *variant) present() int { return min(v.target, v.in.Current) }

// comes is how many more are wanted than are there.
func (v *variant) comes() int { return v.target - v.present() }

// fewest are the first of the givers on a node without whom a replica of v fits, if it does
// without all of them. Who may give no more is passed over, and who is as important and would
// have less of what it needs then than m, or is to give at once.
func fewest(m *model, v *variant, node int, givers []giver, giving map[*variant][]string, room *placement.Cluster, atOnce bool) (gone []giver, fits bool) {
	fits = admits(room, v.in.Request, node)
	for _, g := range givers {
		if fits {
			break
		}
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
			!atOnce && g.v.priority == m.promise.Priority && g.m != m && m.has(v.rate.serves()) <= g.m.has(-lost-g.v.rate.serves()-g.m.served((*variant).comes))
		if !less || !g.goes(g.v.present()-given) || g.v.present()-given <= g.v.policy.Min || g.m.count((*variant).present)-givenOf <= 1 || slices.Contains(giving[g.v], g.name) {
			continue
		}
		room.Remove(g.v.in.Request, node)
		gone = append(gone, g)
		fits = admits(room, v.in.Request, node)
	}
	for _, g := range gone {
		room.Put(g.v.in.Request, node)
	}
	return gone, fits
}

// admits reports whether one more such replica fits on the node and quotas allow it.
func admits(room *placement.Cluster, q *placement.Request, node int) bool {
	allowed, _ := room.Allowed(q)
	return allowed > 0 && room.Fits(q, node)
}

package decision

import (
	"cmp"
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
	c := newClearing(r.withoutNominated(), givers, found, r.snapshot.Time)
	least, helped := ordered[len(ordered)-1].promise.Priority, 0
	turn := r.inTurns(lack)
	for _, m := range lack {
		last := m.promise.Priority == least
		switch {
		case last && helped == scarceModels:
			return
		case last && !turn[m]:
			// Nobody is less important.
		case r.makeWay(m, c, turn[m]) && last:
			helped++
		}
	}
}

// makeWay has room made for what the model lacks, unless it is being made, and reports whether it
// is. Equals are only asked where they may be.
func (r *round) makeWay(m *model, c *clearing, equals bool) bool {
	lacking := slices.DeleteFunc(r.lacking(m, c.found.lacks[m]), func(v *variant) bool { return v.in.Request.Shape.Pods > 1 })
	urgent, going := m.urgent(), 0
	for _, v := range m.variants {
		for _, made := range v.nominated {
			if made.goes {
				urgent, going = urgent-v.rate.serves(), going+1
			}
		}
	}
	for _, v := range lacking {
		for r.kind == RoundFull && urgent > 0 && len(v.nominated) < max(1, r.mayAdd(v)) && c.make(m, v, false, true) {
			urgent, going = urgent-max(v.rate.serves(), oneMore), going+1
		}
	}
	return going > 0 || slices.ContainsFunc(lacking, func(v *variant) bool { return c.make(m, v, equals, false) })
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

// inTurns are the models that equally important ones make room for in this round: equalsPerRound
// of each priority, others each minute.
func (r *round) inTurns(lack []*model) map[*model]bool {
	minute := uint64(r.snapshot.Time.Unix()) / uint64(time.Minute.Seconds())
	turn := map[*model]bool{}
	for first := 0; first < len(lack); {
		equals := lack[first:]
		if next := slices.IndexFunc(equals, func(m *model) bool { return m.promise.Priority != lack[first].promise.Priority }); next > 0 {
			equals = equals[:next]
		}
		begin := int(minute%uint64(len(equals))) * equalsPerRound
		for i := range min(equalsPerRound, len(equals)) {
			turn[equals[(begin+i)%len(equals)]] = true
		}
		first += len(equals)
	}
	return turn
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
	// gave is set once it goes.
	gave bool
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
func (r *round) givers(models []*model) [][]giver {
	byNode, nodes := make([][]giver, len(r.trial.Cluster().Nodes)), r.nodes()
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
					byNode[p.Node] = append(byNode[p.Node], giver{m: m, v: v, name: p.Name, number: number})
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

// present is how many of the wanted replicas are there. What a giver was to get besides waits:
// Kubernetes makes nothing of one replica more and one less.
func (v *variant) present() int { return min(v.target, v.in.Current) }

// comes is how many more are wanted than are there.
func (v *variant) comes() int { return v.target - v.present() }

package preempt

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/allocate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/contract"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/signal"
)

// EqualsPerRound is for how many models a round looks for room that only equally important ones
// can make: it bounds its time.
const EqualsPerRound = 8

// All has others give way, in a cluster that does not grow, to models that lack room:
// less important ones, and equally important ones that have more of what they need. Less
// important ones give what serves the arrivals at once, as far as their scaleDown policies allow.
// For what is beyond these, and among equals, each gives for one replica of each at a time, so that
// the scale-down window of who gives lies between two; never below a minimum, nor the model's last
// replica. A replica of several pods gets no room in this way.
func All(r *limit.Round, ordered []*limit.Model, found allocate.Answer) {
	if !r.Policy.Limited || r.Trial == nil {
		return
	}
	var lack []*limit.Model
	for _, m := range ordered {
		if len(allocate.LackingRoom(r, m, found.Lacks[m])) > 0 {
			lack = append(lack, m)
		}
	}
	if len(lack) == 0 {
		return
	}
	slices.SortStableFunc(lack, func(a, b *limit.Model) int {
		return cmp.Or(cmp.Compare(a.Promise.Priority, b.Promise.Priority), cmp.Compare(HasShare(a, 0), HasShare(b, 0)))
	})
	givers := GiversOf(r, ordered)
	c := NewClearing(r.WithoutNominated(), givers, found, r.Snapshot.Time)
	least, helped := ordered[len(ordered)-1].Promise.Priority, 0
	turn := InTurns(r, lack)
	for _, m := range lack {
		last := m.Promise.Priority == least
		switch {
		case last && helped == allocate.ScarceModels:
			return
		case last && !turn[m]:
			// Nobody is less important.
		case MakeWay(r, m, c, turn[m]) && last:
			helped++
		}
	}
}

// MakeWay has room made for what the model lacks, unless it is being made, and reports whether it
// is. Equals are only asked where they may be.
func MakeWay(r *limit.Round, m *limit.Model, c *Clearing, equals bool) bool {
	lacking := slices.DeleteFunc(allocate.LackingRoom(r, m, c.Found.Lacks[m]), func(v *limit.Variant) bool { return v.In.Request.Shape.Pods > 1 })
	urgent, going := urgentRate(m), 0
	for _, v := range m.Variants {
		for _, made := range v.Nominated {
			if made.Goes {
				urgent, going = urgent-v.Rate.Serves(), going+1
			}
		}
	}
	for _, v := range lacking {
		for r.Kind == contract.RoundFull && urgent > 0 && len(v.Nominated) < max(1, r.MayAdd(v)) && c.Make(m, v, false, true) {
			urgent, going = urgent-max(v.Rate.Serves(), rate.OneMore), going+1
		}
	}
	return going > 0 || slices.ContainsFunc(lacking, func(v *limit.Variant) bool { return c.Make(m, v, equals, false) })
}

// urgentRate is the rate for which less important models give way at once: what arrives beyond what
// the model's replicas serve, and at least that of one where it has none.
func urgentRate(m *limit.Model) (urgent capacity.Rate) {
	if m.Rated {
		urgent = m.Demand.Now - rate.Served(m.Variants, func(v *limit.Variant) int { return v.Target })
	}
	if m.Alive() == 0 {
		urgent = max(urgent, rate.OneMore)
	}
	return urgent
}

// InTurns are the models that equally important ones make room for in this round: equalsPerRound
// of each priority, others each minute.
func InTurns(r *limit.Round, lack []*limit.Model) map[*limit.Model]bool {
	minute := uint64(r.Snapshot.Time.Unix()) / uint64(time.Minute.Seconds())
	turn := map[*limit.Model]bool{}
	for first := 0; first < len(lack); {
		equals := lack[first:]
		if next := slices.IndexFunc(equals, func(m *limit.Model) bool { return m.Promise.Priority != lack[first].Promise.Priority }); next > 0 {
			equals = equals[:next]
		}
		begin := int(minute%uint64(len(equals))) * EqualsPerRound
		for i := range min(EqualsPerRound, len(equals)) {
			turn[equals[(begin+i)%len(equals)]] = true
		}
		first += len(equals)
	}
	return turn
}

// HasShare is the share of what the model needs, by its weight, that its replicas serve if they
// served that much more: what equally important models share scarce room by.
func HasShare(m *limit.Model, more capacity.Rate) float64 {
	if m.Alive() == 0 {
		return 0
	}
	needs := capacity.Rate(m.Promise.Weighs()) * m.Carried()
	if needs <= 0 {
		return math.Inf(1)
	}
	return float64((rate.Served(m.Variants, func(v *limit.Variant) int { return v.Target }) + more) / needs)
}

// Giver is a replica that may go.
type Giver struct {
	M    *limit.Model
	V    *limit.Variant
	Name string
	// Number is its place in the row of those that go from the end; -1 where any of them may go
	// first.
	Number int
	// gave is set once it goes.
	gave bool
}

// Goes reports whether it is the next to go when so many of its variant are left.
func (g *Giver) Goes(left int) bool { return g.Number < 0 || g.Number == left-1 }

// NumberOf is the number that a name ends with: "a-12". It reports whether there is one.
func NumberOf(name string) (number int, ok bool) {
	begin := len(name)
	for begin > 0 && name[begin-1] != '-' {
		begin--
	}
	number, err := strconv.Atoi(name[begin:])
	return number, err == nil
}

// GiversOf are the replicas of each node that may go, those of the least important models
// first, and of these the dearest. Which one goes has to be known: where neither we choose nor
// they go by number, all of a variant have to be on one node.
func GiversOf(r *limit.Round, models []*limit.Model) [][]Giver {
	byNode, nodes := make([][]Giver, len(r.Trial.Cluster().Nodes)), r.Nodes()
	for _, m := range models {
		signal.Each(m.Variants, func(v *limit.Variant) {
			down := v.Policy.Down
			if m.Evidence != signal.EvidenceFull || v.Rolling() || down.Select == contract.SelectDisabled || v.Tolerates(down, v.Target-1) || v.Unknown() != nil {
				return
			}
			all := Removable(r, v, v.Target, nil, nodes)
			if !v.In.ChoosesVictims && !v.In.Numbered && slices.ContainsFunc(all, func(p placement.Replica) bool { return p.Node != all[0].Node }) {
				return
			}
			for _, p := range all {
				number, known := -1, true
				if v.In.Numbered {
					number, known = NumberOf(p.Name)
					number -= v.In.First
					known = known && number >= 0
				}
				if known && p.Node >= 0 {
					byNode[p.Node] = append(byNode[p.Node], Giver{M: m, V: v, Name: p.Name, Number: number})
				}
			}
		})
	}
	for _, list := range byNode {
		slices.SortStableFunc(list, func(a, b Giver) int {
			return cmp.Or(cmp.Compare(b.V.Priority, a.V.Priority), cmp.Compare(b.V.UnitPrice(), a.V.UnitPrice()), cmp.Compare(b.Number, a.Number))
		})
	}
	return byNode
}

// PresentOf is how many of the wanted replicas are there. What a giver was to get besides waits:
// Kubernetes makes nothing of one replica more and one less.
func PresentOf(v *limit.Variant) int { return min(v.Target, v.In.Current) }

// ComingOf is how many more are wanted than are there.
func ComingOf(v *limit.Variant) int { return v.Target - PresentOf(v) }

package allocation

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Model is one model in a cluster that all models share.
type Model struct {
	// Priority is the importance; a lower number is more important.
	Priority int
	// Weight is what the model's share counts among those of the same priority: of
	// scarce devices one of weight 2 is served twice the share. What is not positive
	// is 1.
	Weight float64
	// Need is the rate that its replicas are to serve.
	Need capacity.Rate
	// Options are its variants.
	Options []Option
}

// Share returns the replicas of all models together under the limits that they share:
// of row i, the sum of Amount*(x-Now)^+ over all options is at most rows[i]. A limit
// that is no number, or negative, allows nothing beyond what exists; an endless one
// limits nothing. Doc.go says what is best.
//
// When the cheapest vectors of all models fit, they are the answer.
func Share(models []Model, rows []float64) []Vector {
	s := newSharing(models, rows)
	s.grantMinima()
	if !s.tryCheapest() {
		for _, c := range clusters(s.groups, s.limits) {
			c.solve()
		}
	}
	result := make([]Vector, len(models))
	for _, g := range s.groups {
		result[g.model] = vector(models[g.model].Options, positive(float64(models[g.model].Need)), g.replicas())
	}
	return result
}

// sharing is the state of one call of Share.
type sharing struct {
	// groups are the models, the more important first; within a priority in an order
	// that follows from what they ask and not from where they stand.
	groups []*group
	// limits are what is left of the rows beside the minima.
	limits []float64
}

func newSharing(models []Model, rows []float64) *sharing {
	s := &sharing{limits: make([]float64, len(rows))}
	for i, limit := range rows {
		s.limits[i] = max(0, limit)
		if math.IsNaN(limit) {
			s.limits[i] = 0
		}
	}
	for i, m := range models {
		s.groups = append(s.groups, newGroup(i, m, s.limits))
	}
	slices.SortStableFunc(s.groups, compareGroups)
	// They are looked at in this order again and again, so they lie in it.
	lie := make([]group, len(s.groups))
	for i, g := range s.groups {
		lie[i] = *g
		s.groups[i] = &lie[i]
	}
	heaviest := 0.0
	for at, g := range s.groups {
		if at == 0 || g.priority != s.groups[at-1].priority {
			heaviest = 0
			for _, other := range s.groups[at:] {
				if other.priority == g.priority {
					heaviest = max(heaviest, other.weight)
				}
			}
		}
		g.heaviest = heaviest
	}
	return s
}

func compareGroups(a, b *group) int {
	order := cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.need, b.need), cmp.Compare(b.weight, a.weight), cmp.Compare(len(a.variants), len(b.variants)))
	for i := 0; order == 0 && i < len(a.variants); i++ {
		order = compareVariants(a.variants[i], b.variants[i])
	}
	return order
}

// grantMinima honours the lower bounds of all models before anybody grows above them.
// Where they do not all fit, the more important models come first and those of the
// same priority take turns.
func (s *sharing) grantMinima() {
	for at := 0; at < len(s.groups); {
		next, waiting := at, []*variantAt(nil)
		for ; next < len(s.groups) && s.groups[next].priority == s.groups[at].priority; next++ {
			for i := range s.groups[next].variants {
				v := &s.groups[next].variants[i]
				if v.granted = min(v.least, v.now); v.granted != v.least {
					waiting = append(waiting, v)
				}
			}
		}
		s.takeTurns(waiting)
		at = next
	}
	for _, g := range s.groups {
		g.begin(s.limits)
	}
}

// takeTurns grants what is missing, all of it where that fits; else everybody takes a
// small part of what still fits for it, and so on until nothing does.
func (s *sharing) takeTurns(waiting []*variantAt) {
	all := slices.Clone(s.limits)
	for _, v := range waiting {
		v.take(all, v.least-v.granted)
	}
	fits := !slices.ContainsFunc(all, func(left float64) bool { return over(-left, 0) })
	for len(waiting) > 0 {
		still := waiting[:0]
		for _, v := range waiting {
			n := min(v.least-v.granted, v.room(s.limits))
			if !fits {
				n = min(n, max(1, n/(2*len(waiting))))
			}
			if n <= 0 {
				continue
			}
			v.take(s.limits, n)
			if v.granted += n; v.granted != v.least {
				still = append(still, v)
			}
		}
		waiting = still
	}
}

// tryCheapest gives every model its cheapest vector and reports whether they fit.
func (s *sharing) tryCheapest() bool {
	used := make([]float64, len(s.limits))
	fits := true
	for _, g := range s.groups {
		g.ideal, g.idealFits = g.cheapest()
		g.chosen = g.ideal
		fits = fits && g.idealFits
		add(used, g.ideal.uses, 1)
	}
	for i, u := range used {
		fits = fits && !over(u, s.limits[i])
	}
	return fits
}

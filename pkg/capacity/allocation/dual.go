package allocation

import (
	"math"
	"slices"
)

// dualPrices are prices of the limits at which the groups, each for itself and with
// fractions of replicas, would ask for about what there is. They maximise the
// Lagrangian bound.
func dualPrices(groups []*group, limits []float64, weight float64) []float64 {
	value := 0.0
	relaxed := make([]*relaxation, len(groups))
	for i, g := range groups {
		relaxed[i] = newRelaxation(g, weight)
		value += g.chosen.value
	}
	bound := func(prices, excess []float64) float64 {
		sum := 0.0
		for i, limit := range limits {
			excess[i] = -limit
			sum -= prices[i] * limit
		}
		for _, r := range relaxed {
			sum += r.solve(prices, excess)
		}
		return sum
	}
	steps := min(max(600_000/(len(groups)*(1+len(limits))), 40), 250)
	return ascend(make([]float64, len(limits)), limits, value, steps, bound)
}

// ascend maximises a concave bound over prices >= 0 by subgradients with Polyak's step
// towards a target that comes nearer when it is not reached. The bound adds its
// subgradient, what is asked beyond the limits, to excess.
func ascend(prices, limits []float64, value float64, steps int, bound func(prices, excess []float64) float64) []float64 {
	n := len(prices)
	finite := slices.Clone(limits)
	for i, limit := range finite {
		if math.IsInf(limit, 1) {
			finite[i] = 0
		}
	}
	excess, best := make([]float64, n), slices.Clone(prices)
	at := slices.Clone(prices)
	most := math.Inf(-1)
	ahead, idle := 0.0, 0
	for step := range steps {
		clear(excess)
		got := bound(at, excess)
		if step == 0 {
			ahead = math.Max(value-got, 0) / 2
		}
		switch {
		case got > most+1e-3*ahead:
			idle = 0
		default:
			idle++
		}
		if got > most {
			most = got
			copy(best, at)
		}
		if idle >= 5 {
			ahead, idle = ahead/2, 0
			copy(at, best)
			clear(excess)
			got = bound(at, excess)
		}
		if ahead <= 1e-9*math.Abs(value) || !forward(at, excess, math.Min(value, most+ahead)-got) {
			break
		}
	}
	return best
}

// forward moves the prices along the subgradient by Polyak's step; it is false when
// there is nowhere to go.
func forward(at, excess []float64, gain float64) bool {
	norm := 0.0
	for i, e := range excess {
		if e < 0 && at[i] == 0 {
			continue
		}
		norm += e * e
	}
	if norm == 0 || gain <= 0 {
		return false
	}
	for i, e := range excess {
		at[i] = math.Max(0, at[i]+gain/norm*e)
	}
	return true
}

// relaxation is a group that may buy fractions of replicas.
type relaxation struct {
	group  *group
	weight float64
	unit   []float64
	order  []int
}

func newRelaxation(g *group, weight float64) *relaxation {
	r := &relaxation{group: g, weight: weight, unit: make([]float64, len(g.parts)), order: make([]int, len(g.parts))}
	for i := range r.order {
		r.order[i] = i
	}
	return r
}

// sort orders the parts by their priced cost per rate. They are nearly in order from
// the last time.
func (r *relaxation) sort(prices []float64) {
	for i := range r.unit {
		r.unit[i] = r.group.priced(i, prices, r.weight) / r.group.parts[i].serves
	}
	for i := 1; i < len(r.order); i++ {
		for j := i; j > 0 && r.unit[r.order[j]] < r.unit[r.order[j-1]]; j-- {
			r.order[j], r.order[j-1] = r.order[j-1], r.order[j]
		}
	}
}

// priced is what one replica of a part costs with the limits that it uses.
func (g *group) priced(i int, prices []float64, weight float64) float64 {
	p := &g.parts[i]
	cost := weight * (p.cost + float64(p.change)*g.perChange())
	for _, u := range p.uses {
		cost += prices[u.Row] * u.Amount
	}
	return cost
}

// solve returns the least value at these prices and adds what it uses.
func (r *relaxation) solve(prices, uses []float64) float64 {
	r.sort(prices)
	g := r.group
	rate, value := 0.0, 0.0
	for _, i := range r.order {
		p := &g.parts[i]
		n := math.Min((g.wanted(r.unit[i])-rate)/p.serves, float64(p.limit))
		if n <= 0 {
			break
		}
		rate += n * p.serves
		value += n * p.serves * r.unit[i]
		for _, u := range p.uses {
			uses[u.Row] += n * u.Amount
		}
	}
	if g.target < 0 {
		value += g.unserved(rate)
	}
	return value
}

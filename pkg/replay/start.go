package replay

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// mostReplicas bounds the replicas of one variant, whatever the load.
const mostReplicas = 1 << 20

// wanted is how many replicas serve a rate.
func wanted(need, one float64) int {
	n := math.Ceil(need * (1 - fine) / one)
	return int(min(max(n, 0), mostReplicas))
}

// mostOf is how many replicas a variant may have and a cluster holds of it alone.
func mostOf(cluster *placement.Cluster, v *Variant) int {
	most := mostReplicas
	if v.Policy.Max >= 0 {
		most = min(most, v.Policy.Max)
	}
	if cluster == nil {
		return most
	}
	if slots, err := cluster.Slots(v.Request); err == nil {
		most = min(most, slots)
	}
	return most
}

// cheapestAt are the replicas that serve the mean rate of a minute and cost least, at least
// one of each model: as many as fit, one model after the other.
func (s *Scenario) cheapestAt(load Load, serves [][][]capacity.Rate, t int) [][]int {
	cluster, all := s.Cluster.Clone(), make([][]int, len(s.Models))
	for m := range s.Models {
		variants := s.Models[m].Variants
		options, one := make([]allocation.Option, len(variants)), -1
		for v := range variants {
			most := mostOf(cluster, &variants[v])
			options[v] = allocation.Option{Cost: variants[v].Cost, Serves: serves[m][t][v], Least: min(max(0, variants[v].Policy.Min), most), Most: most}
			if most > 0 && (one < 0 || variants[v].Cost < variants[one].Cost) {
				one = v
			}
		}
		all[m] = allocation.Cheapest(options, load[m][t].Rate).Replicas
		if !slices.ContainsFunc(all[m], func(n int) bool { return n > 0 }) && one >= 0 {
			all[m][one] = 1
		}
		for v, n := range all[m] {
			all[m][v] = placed(cluster, variants[v].Request, n)
		}
	}
	return all
}

// dearest are the replicas for the minute, of so many first ones, whose load has the highest
// price.
func (t *Trial) dearest(minutes int) [][]int {
	price := func(at int) (sum float64) {
		for m := range t.load {
			sum += t.bound.CostAt(at, m)
		}
		return sum
	}
	dearest := 0
	for at := range min(minutes, len(t.load[0])) {
		if price(at) > price(dearest) {
			dearest = at
		}
	}
	return t.scenario.cheapestAt(t.load, t.serves, dearest)
}

// placed is how many of some replicas find a place, which they take. All do that cannot be
// counted.
func placed(cluster *placement.Cluster, request *placement.Request, n int) int {
	if request.Countable() != nil {
		return n
	}
	for i := range n {
		if _, ok := cluster.Place(request); !ok {
			return i
		}
	}
	return n
}

// Holds reports whether so many replicas of all variants find a place, one after the other,
// those of the most devices first.
func (s *Scenario) Holds(replicas [][]int) bool {
	type some struct {
		request *placement.Request
		count   int
	}
	var all []some
	for m := range s.Models {
		for v := range s.Models[m].Variants {
			all = append(all, some{s.Models[m].Variants[v].Request, replicas[m][v]})
		}
	}
	slices.SortStableFunc(all, func(a, b some) int { return cmp.Compare(b.request.Shape.Devices, a.request.Shape.Devices) })
	cluster := s.Cluster.Clone()
	for _, of := range all {
		if placed(cluster, of.request, of.count) < of.count {
			return false
		}
	}
	return true
}

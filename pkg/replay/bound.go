package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Bound is the least that a load can cost: in each minute, the least price of its mean rate
// when there may be parts of replicas. For each model it is the linear program
//
//	minimise sum price*x  with  sum serves*x >= rate,  0 <= x <= most
//
// where serves is the largest rate at which the mean latencies of one replica keep the SLO,
// by the capacity model, and most is what the variant's maxReplicas allows and the nodes hold
// of it alone. Where all of these do not serve the rate, all are paid.
//
// Nobody pays less who keeps the SLO for every request, whatever he knows of the future. Many
// things make it cost more, and none of them counts here: that latencies scatter; that
// replicas are whole, take time to start, and take room from each other; the variants'
// minReplicas; nodes that fail. Who misses the SLO for some requests may pay less.
type Bound struct {
	Cost float64
	// Overloaded counts the minutes of all models whose rate no replicas within the bounds
	// serve.
	Overloaded int

	// pays is the least price per hour: pays[minute][model].
	pays [][]float64
	load Load
	// serves is what one replica serves within the SLO for the promised share of the requests:
	// serves[model][minute][variant].
	serves [][][]capacity.Rate
}

// Bound finds the lower bound for a load, whose first part does not count where the
// scenario says so.
func (s *Scenario) Bound(load Load) (Bound, error) {
	if len(load) != len(s.Models) || len(load) == 0 {
		return Bound{}, fmt.Errorf("the load is of %d models; expected that of all %d of the scenario", len(load), len(s.Models))
	}
	for m := range load {
		if len(load[m]) == 0 || len(load[m]) != len(load[0]) {
			return Bound{}, fmt.Errorf("the load of model %s has %d minutes; expected as many as that of the others and at least one", s.Models[m].ID, len(load[m]))
		}
	}
	return s.bound(load, s.Rates(load))
}

// bound is the same with what one replica serves in each minute (Rates).
func (s *Scenario) bound(load Load, serves [][][]capacity.Rate) (Bound, error) {
	b, means := Bound{load: load, serves: serves, pays: make([][]float64, len(load[0]))}, s.meanRates(load)
	for m := range s.Models {
		most, err := s.allowed(m)
		if err != nil {
			return Bound{}, err
		}
		for t, at := range load[m] {
			price, enough := leastPrice(s.Models[m].Variants, most, means[m][t], float64(at.Rate))
			b.pays[t] = append(b.pays[t], price)
			if t < int(s.Learning/minute) {
				continue
			}
			b.Cost += price * at.Length.Hours()
			if !enough {
				b.Overloaded++
			}
		}
	}
	return b, nil
}

// leastPrice is the least price per hour of parts of replicas that serve a rate: those of
// the variant that costs least for what it serves, then those of the next. False where all
// of them do not serve it.
func leastPrice(variants []Variant, most []int, serves []capacity.Rate, rate float64) (price float64, all bool) {
	order := make([]int, 0, len(variants))
	for v := range variants {
		if serves[v] > 0 {
			order = append(order, v)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(float64(variants[a].Cost)*float64(serves[b]), float64(variants[b].Cost)*float64(serves[a]))
	})
	left := rate
	for _, v := range order {
		x := min(left/float64(serves[v]), float64(most[v]))
		price += x * float64(variants[v].Cost)
		left -= x * float64(serves[v])
	}
	return price, left <= rate*fine
}

// allowed is how many replicas of each variant of a model there may be.
func (s *Scenario) allowed(m int) (most []int, err error) {
	for v := range s.Models[m].Variants {
		variant := &s.Models[m].Variants[v]
		if price := float64(variant.Cost); math.IsNaN(price) || math.IsInf(price, 0) || price < 0 {
			return nil, fmt.Errorf("model %s: variant %s: the price is %v per hour; expected a number of at least 0", s.Models[m].ID, variant.Name, price)
		}
		most = append(most, mostOf(s.Cluster, variant))
	}
	if slices.Max(most) == 0 {
		return nil, fmt.Errorf("model %s: no variant may have a replica; expected one whose greatest number is not 0 and that fits on a node", s.Models[m].ID)
	}
	return most, nil
}

// CostAt is the least price per hour of a model in a minute.
func (b Bound) CostAt(minute, model int) float64 { return b.pays[minute][model] }

// Short reports whether so many serving replicas of a model's variants could not, by the
// capacity model, keep the SLO at the mean rate of a minute.
func (b Bound) Short(minute, model int, serving []int) bool {
	serves := 0.0
	for v, n := range serving {
		serves += float64(n) * float64(b.serves[model][minute][v])
	}
	return !enough(serves, float64(b.load[model][minute].Rate))
}

// fine is the relative difference below which two rates are equal.
const fine = 1e-9

// enough reports whether replicas that serve a rate do for what is needed.
func enough(serves, need float64) bool { return serves >= need*(1-fine) }

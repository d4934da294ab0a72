package rate

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// freeShare is the share of the least cost of a model's variants that one which costs
// nothing is reckoned with.
const freeShare = 1e-3

// Prices are what the model's variants are compared by: their costs; but one that costs
// nothing holds devices all the same, and counts a little of the least cost, so that
// replicas of it go, too.
func (m *Model) Prices() {
	least := capacity.Cost(math.Inf(1))
	for _, v := range m.Variants {
		if v.In.Cost > 0 {
			least = min(least, v.In.Cost)
		}
	}
	if math.IsInf(float64(least), 1) {
		least = 1 / freeShare
	}
	for _, v := range m.Variants {
		v.Price = v.In.Cost
		if v.In.Cost <= 0 {
			v.Price = freeShare * least
		}
		if v.ScarceFor != nil {
			v.Price *= scarcity
		}
	}
}

// UnitPrice is the price per rate; it is only called where the rate is known.
func (v *Variant) UnitPrice() float64 { return float64(v.Price) / float64(v.Rate.Serves()) }

// scarcity is how many times its price a replica is compared by that holds room which
// another model lacks: what keeps the promise to others may be that much dearer. At 1 a model gives up what is dearest for itself, and others go on to miss
// theirs.
const scarcity = 2

// OneMore is a need in requests per second that any single replica covers.
const OneMore capacity.Rate = 1e-3

// Served is the rate that so many replicas of each serve.
func Served[V interface{ Serves() capacity.Rate }](all []V, replicas func(V) int) capacity.Rate {
	sum := capacity.Rate(0)
	for _, v := range all {
		sum += v.Serves() * capacity.Rate(replicas(v))
	}
	return sum
}

// Serves is what one replica of the variant is reckoned with.
func (v *Variant) Serves() capacity.Rate { return v.Rate.Serves() }

package decision

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// freeShare is the share of the least cost of a model's variants that one which costs
// nothing is reckoned with.
const freeShare = 1e-3

// prices are what the model's variants are compared by: their costs; but one that costs
// nothing holds devices all the same, and counts a little of the least cost, so that
// replicas of it go, too.
func (m *model) prices() {
	least := capacity.Cost(math.Inf(1))
	for _, v := range m.variants {
		if v.in.Cost > 0 {
			least = min(least, v.in.Cost)
		}
	}
	if math.IsInf(float64(least), 1) {
		least = 1 / freeShare
	}
	for _, v := range m.variants {
		v.price = v.in.Cost
		if v.in.Cost <= 0 {
			v.price = freeShare * least
		}
		if v.scarceFor != nil {
			v.price *= scarcity
		}
	}
}

// unitPrice is the price per rate; it is only called where the rate is known.
func (v *variant) unitPrice() float64 { return float64(v.price) / float64(v.rate.serves()) }

// worthwhile is the quantile of the forecast demand up to which a replica is worth its price
// that costs so many times as much as the others for what it serves. The risk says what a
// missing replica costs against an idle one: an idle one of these costs as many times as much.
func worthwhile(risk, times float64) float64 { return risk / (risk + times*(1-risk)) }

// tooDear is why none of a variant was bought: it costs so many times as much as the others,
// and is worth that for so much.
type tooDear struct {
	times  float64
	enough capacity.Rate
}

// leaveDear takes out of what would be bought for a need what is not worth its price: one that
// costs more than the others for what it serves is bought for what is likelier to come. Where
// a trigger fired and nothing starts, one stays.
func (r *round) leaveDear(p *purchase, candidates []*variant, mix []int, need capacity.Rate) {
	m := p.model
	if !m.sized || !m.demand.known {
		return
	}
	price, serves, served, left := 0.0, 0.0, capacity.Rate(0), 0
	count := func(v *variant, n int) {
		if !v.rate.unfit() {
			price, serves = price+float64(v.price)*float64(n), serves+float64(v.rate.serves())*float64(n)
		}
	}
	for _, v := range m.variants {
		count(v, v.fleet.supply+p.bought[v])
		left += p.bought[v]
	}
	order := make([]int, len(candidates))
	for i, v := range candidates {
		order[i] = i
		count(v, mix[i])
		served, left = served+v.rate.serves()*capacity.Rate(mix[i]), left+mix[i]
	}
	least := 0
	if m.need.triggered && !m.starts() {
		least = 1
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(candidates[j].unitPrice(), candidates[i].unitPrice()) })
	for _, i := range order {
		v := candidates[i]
		if mix[i] == 0 || v.rate.unfit() {
			continue
		}
		times := v.unitPrice() * serves / price
		if times <= 1 {
			return
		}
		enough := r.sizedFor(m, m.demand.expected(worthwhile(m.demand.risk, times), m.lead))
		for each := v.rate.serves(); mix[i] > 0 && left > least && served-each >= need-(m.sizeFor-enough); mix[i]-- {
			served, left = served-each, left-1
			p.dear[v] = tooDear{times, enough + m.need.queued}
		}
	}
}

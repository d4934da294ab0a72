package allocate

import (
	"cmp"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/limit"
)

// Worthwhile is the quantile of the forecast demand up to which a replica is worth its price
// that costs so many times as much as the others for what it serves. The risk says what a
// missing replica costs against an idle one: an idle one of these costs as many times as much.
func Worthwhile(risk, times float64) float64 { return risk / (risk + times*(1-risk)) }

// TooDear is why none of a variant was bought: it costs so many times as much as the others,
// and is worth that for so much.
type TooDear struct {
	Times  float64
	Enough capacity.Rate
}

// LeaveDear takes out of what would be bought for a need what is not worth its price: one that
// costs more than the others for what it serves is bought for what is likelier to come. Where
// a trigger fired and nothing starts, one stays.
func LeaveDear(r *limit.Round, p *Purchase, candidates []*limit.Variant, mix []int, need capacity.Rate) {
	m := p.Model
	if !m.Sized || !m.Demand.Known {
		return
	}
	price, serves, served, left := 0.0, 0.0, capacity.Rate(0), 0
	count := func(v *limit.Variant, n int) {
		if !v.Rate.Unfit() {
			price, serves = price+float64(v.Price)*float64(n), serves+float64(v.Rate.Serves())*float64(n)
		}
	}
	for _, v := range m.Variants {
		count(v, v.Fleet.Supply+p.Bought[v])
		left += p.Bought[v]
	}
	order := make([]int, len(candidates))
	for i, v := range candidates {
		order[i] = i
		count(v, mix[i])
		served, left = served+v.Rate.Serves()*capacity.Rate(mix[i]), left+mix[i]
	}
	least := 0
	if m.Need.Triggered && !m.Starts() {
		least = 1
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(candidates[j].UnitPrice(), candidates[i].UnitPrice()) })
	for _, i := range order {
		v := candidates[i]
		if mix[i] == 0 || v.Rate.Unfit() {
			continue
		}
		times := v.UnitPrice() * serves / price
		if times <= 1 {
			return
		}
		enough := m.SizedFor(m.Demand.Expected(Worthwhile(m.Demand.Risk, times), m.Lead))
		for each := v.Rate.Serves(); mix[i] > 0 && left > least && served-each >= need-(m.SizeFor-enough); mix[i]-- {
			served, left = served-each, left-1
			p.Dear[v] = TooDear{times, enough + m.Need.Queued}
		}
	}
}

package allocation

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// bands is the number of equal parts of a model's demand that fairness tells apart.
const bands = 10

// flattest bounds the exponent of the price of a band, for very different weights.
const flattest = 20

// buyer is one model under shared limits, with what it has.
type buyer struct {
	// model is its index in the question.
	model            int
	priority         int
	weight, heaviest float64
	need             float64
	variants         []*holding
	// order are the variants of which more may be had than the least, those with the lowest
	// cost per rate first.
	order []*holding
	// rest is the rate to serve above the least of all variants, and slack what may be
	// missing of it.
	rest, slack float64
	// worth is what one request per second costs on the variant with the lowest cost per
	// rate: the currency of unserved demand.
	worth float64
	// price[k] is what a rate in the k-th band of the rest counts while it is not served,
	// and tail[k] what the bands from k on count together.
	price, tail [bands + 1]float64
	// level is the place of its priority among those of its market.
	level int
	// above is the rate served above the least, and cost that of all that it has.
	above, cost float64
	// ideal is what it would buy if it were alone, by variant.
	ideal []int
	// step is the last one that changed it.
	step int
}

// holding is a variant of a buyer, and how many replicas of it the buyer has.
type holding struct {
	variant
	buyer *buyer
	// option is its index in the question.
	option int
	uses   []Use
	// granted is the part of the lower bound that fits.
	granted int
	// low and high are the least and the most that there may be.
	low, high int
	// stays is how many take no room, or are not to be taken away.
	stays int
	count int
	// fuss is what a change costs: so little that it decides between equal costs only.
	fuss float64
}

func newBuyer(at int, m Model, limits []float64) *buyer {
	b := &buyer{model: at, priority: m.Priority, weight: cmp.Or(positive(m.Weight), 1), need: positive(float64(m.Need))}
	for i, o := range m.Options {
		h := &holding{variant: o.clean(), buyer: b, option: i}
		for _, u := range o.Uses {
			switch {
			case u.Row < 0 || u.Row >= len(limits) || negligible(u.Amount) || math.IsInf(limits[u.Row], 1):
			case unknown(u.Amount):
				h.most = min(h.most, max(h.least, h.now))
			default:
				h.use(u)
			}
		}
		if unknown(float64(m.Need)) {
			// Of an unknown need nothing is known but what exists.
			h.least = min(max(h.now, h.least), h.most)
			h.most = h.least
		}
		b.variants = append(b.variants, h)
	}
	slices.SortStableFunc(b.variants, compareHoldings)
	return b
}

// use adds to what a replica takes of a row.
func (h *holding) use(more Use) {
	for i := range h.uses {
		if h.uses[i].Row == more.Row {
			h.uses[i].Amount += more.Amount
			return
		}
	}
	h.uses = append(h.uses, more)
}

// compareBuyers puts the more important first, and those of one priority in an order that
// follows from what they ask.
func compareBuyers(a, b *buyer) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.need, b.need), cmp.Compare(b.weight, a.weight),
		slices.CompareFunc(a.variants, b.variants, compareHoldings))
}

func compareHoldings(a, b *holding) int {
	return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.serves, b.serves), cmp.Compare(a.start, b.start),
		cmp.Compare(a.now, b.now), cmp.Compare(a.least, b.least), cmp.Compare(a.most, b.most),
		slices.CompareFunc(a.uses, b.uses, func(a, b Use) int {
			return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(a.Amount, b.Amount))
		}))
}

// begin says what there may be, once the minima are granted.
func (b *buyer) begin() {
	b.rest, b.slack, b.worth = b.need, slackOf(b.need), math.Inf(1)
	for _, h := range b.variants {
		h.low, h.high = h.granted, h.granted
		if h.cost == 0 {
			// What exists and costs nothing stays.
			h.low = max(h.low, min(h.now, h.most))
		}
		if h.granted == h.least {
			h.high = h.most
			if unit := h.cost / h.serves; unit > 0 {
				b.worth = min(b.worth, unit)
			}
		}
		h.count, h.high, h.stays = h.low, max(h.low, h.high), max(h.low, h.now)
		b.rest -= h.serves * float64(h.low)
	}
	if unknown(b.worth) {
		b.worth = 1
	}
	b.rest = due(b.rest, b.slack)
	for _, h := range b.variants {
		if h.serves > 0 && b.rest > 0 && h.high > h.low {
			h.high = min(h.high, h.low+whole(math.Ceil(b.rest/h.serves)))
			b.order = append(b.order, h)
		}
	}
	slices.SortStableFunc(b.order, func(a, b *holding) int {
		return cmp.Compare((a.cost+a.start)/a.serves, (b.cost+b.start)/b.serves)
	})
}

// setPrices makes a band count half of the one before it, so that whoever is served the
// smaller share comes first unless that takes twice the devices. With half the weight it
// falls twice as fast. All demand of the priority counts unit in the last band.
func (b *buyer) setPrices(unit float64) {
	for k := bands - 1; k >= 0; k-- {
		fall := min(float64(k)*b.heaviest/b.weight, flattest)
		b.price[k] = b.worth / unit * math.Exp2(bands-1-fall)
		b.tail[k] = b.tail[k+1] + b.price[k]*b.rest/bands
	}
}

// unserved is the price of what is not served.
func (b *buyer) unserved() float64 {
	if b.rest-b.above <= b.slack {
		return 0
	}
	width := b.rest / bands
	k := min(int(max(0, b.above)/width), bands-1)
	return b.tail[k+1] + b.price[k]*(width*float64(k+1)-b.above)
}

// cheapest is what Cheapest gives the buyer alone.
func (b *buyer) cheapest() []int {
	options := make([]Option, len(b.variants))
	for i, h := range b.variants {
		options[i] = Option{Cost: capacity.Cost(h.cost), Serves: capacity.Rate(h.serves), Start: capacity.Cost(h.start), Now: h.now, Least: h.low, Most: h.high}
	}
	replicas, _, _ := cheapest(options, b.need, stateBudget)
	return replicas
}

// replicas is the total of each option of the model, in the order that was asked.
func (b *buyer) replicas() []int {
	total := make([]int, len(b.variants))
	for _, h := range b.variants {
		total[h.option] = h.count
	}
	return total
}

// taking is how many of so many replicas take room: those beyond what exists.
func (h *holding) taking(count int) int { return max(0, count-h.now) }

// price is what so many replicas cost, start-ups included.
func (h *holding) price(count int) float64 {
	return h.cost*float64(count) + h.start*float64(h.taking(count)) + h.fuss*math.Abs(float64(count-h.now))
}

// enough is how many replicas serve a rate.
func (h *holding) enough(rate float64) int {
	return whole(math.Ceil((rate - h.buyer.slack) / h.serves))
}

// fits is how many replicas may be started within what is left of the rows.
func (h *holding) fits(left []float64) int {
	n := float64(mostReplicas)
	for _, u := range h.uses {
		n = min(n, max(0, left[u.Row])/u.Amount)
	}
	return int(n)
}

// whole is a number of replicas.
func whole(n float64) int { return int(min(max(0, n), mostReplicas)) }

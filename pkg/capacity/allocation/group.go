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

// variantAt is an option that can be reckoned with, and where it stands.
type variantAt struct {
	variant
	option int
	uses   []Use
	// granted is the part of the lower bound that fits; it is least where all of it
	// does.
	granted int
}

// room is how many more replicas the limits allow.
func (v *variantAt) room(limits []float64) int {
	n := float64(mostReplicas)
	for _, u := range v.uses {
		n = min(n, math.Floor(max(0, limits[u.Row])/u.Amount*(1+fine)))
	}
	return int(n)
}

// take takes the room of n replicas.
func (v *variantAt) take(limits []float64, n int) {
	for _, u := range v.uses {
		limits[u.Row] -= u.Amount * float64(n)
	}
}

// asOption is the variant as an Option whose lower bound is base.
func (v *variantAt) asOption(base int) Option {
	o := Option{Cost: capacity.Cost(v.cost), Serves: capacity.Rate(v.serves), Start: capacity.Cost(v.start), Now: v.now, Least: base, Most: v.most}
	if v.granted < v.least {
		o.Most = base
	}
	return o
}

func compareVariants(a, b variantAt) int {
	order := cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.serves, b.serves), cmp.Compare(a.start, b.start),
		cmp.Compare(a.now, b.now), cmp.Compare(a.least, b.least), cmp.Compare(a.most, b.most), cmp.Compare(len(a.uses), len(b.uses)))
	for i := 0; order == 0 && i < len(a.uses); i++ {
		order = cmp.Or(cmp.Compare(a.uses[i].Row, b.uses[i].Row), cmp.Compare(a.uses[i].Amount, b.uses[i].Amount))
	}
	return order
}

// part is a number of replicas of one variant above its lower bound: those that exist,
// or those that must be started, which alone use limits.
type part struct {
	variant      int
	cost, serves float64
	change       int
	limit        int
	// uses are parts of the limits, by the rows of the cluster.
	uses []Use
}

// group is one model under shared limits.
type group struct {
	model            int
	priority         int
	weight, heaviest float64
	need             float64
	variants         []variantAt
	// base are the replicas of each variant below all parts.
	base  []int
	parts []part
	// rest is the rate to serve above the base, top what the bounds allow of it, and
	// slack what may be missing.
	rest, top, slack float64
	// worth is what one request per second costs on the variant with the lowest cost
	// per rate: the currency of unserved demand.
	worth float64
	// price[k] is what the k-th band of the demand counts, tail[k] what the bands from
	// k on cost while nothing of them is served, and floor what is unserved at top.
	price, tail [bands + 1]float64
	floor       float64
	// factor is what unserved demand counts in the present question, and least the
	// rate above the base that must be served.
	factor, least float64
	// asked is true while the group's unserved demand is the question; held is, later,
	// what its priority may leave unserved, and hold the row for that or none.
	asked    bool
	held     float64
	hold     int
	costUnit float64
	chosen   column
	// known are choices of earlier questions.
	known []*column
	// finder looks for offers in the branch of a question, and apart beside it.
	finder, apart *finder
	// ideal is the cheapest vector as if the model were alone.
	ideal     column
	idealFits bool
}

// column is a choice for one group.
type column struct {
	counts []int
	served float64
	// cost is that of the parts.
	cost    float64
	changes int
	uses    []Use
}

func newGroup(at int, m Model, limits []float64) *group {
	g := &group{model: at, priority: m.Priority, weight: m.Weight, need: positive(float64(m.Need))}
	if g.weight = positive(g.weight); g.weight == 0 {
		g.weight = 1
	}
	for i, o := range m.Options {
		v := variantAt{variant: o.clean(), option: i}
		for _, u := range o.Uses {
			switch {
			case u.Row < 0 || u.Row >= len(limits) || negligible(u.Amount) || math.IsInf(limits[u.Row], 1):
			case unknown(u.Amount):
				v.most = min(v.most, max(v.least, v.now))
			default:
				v.uses = append(v.uses, u)
			}
		}
		if unknown(float64(m.Need)) {
			// Of an unknown need nothing is known but what exists.
			v.least = min(max(v.now, v.least), v.most)
			v.most = v.least
		}
		v.granted = v.least
		g.variants = append(g.variants, v)
	}
	slices.SortStableFunc(g.variants, compareVariants)
	return g
}

// begin splits what may be bought above the granted minima into parts.
func (g *group) begin(limits []float64) {
	g.base, g.rest, g.slack = make([]int, len(g.variants)), g.need, slackOf(g.need)
	least := math.Inf(1)
	keeps := make([]int, len(g.variants))
	for i := range g.variants {
		v := &g.variants[i]
		g.base[i] = v.granted
		keeps[i] = min(max(0, v.now-v.granted), v.most-v.granted)
		if v.cost == 0 {
			g.base[i], keeps[i] = g.base[i]+keeps[i], 0
		}
		g.rest -= v.serves * float64(g.base[i])
		// Of what serves nothing it is endless, or no number.
		if unit := v.cost / v.serves; v.granted == v.least && unit > 0 {
			least = min(least, unit)
		}
	}
	if g.worth = least; unknown(least) {
		g.worth = 1
	}
	g.rest = due(g.rest, g.slack)
	for i := range g.variants {
		if v := &g.variants[i]; v.serves > 0 && v.granted == v.least {
			g.split(i, keeps[i], min(v.most-g.base[i]-keeps[i], v.room(limits)))
		}
	}
	g.top = min(g.top, g.rest)
}

// split adds the parts of a variant: those that stay and those that are started, of
// each no more than could be of use.
func (g *group) split(i, keep, start int) {
	v := &g.variants[i]
	enough := int(min(math.Ceil(g.rest/v.serves), mostReplicas))
	for _, p := range []part{
		{variant: i, cost: v.cost, serves: v.serves, change: oneFewer, limit: min(keep, enough)},
		{variant: i, cost: v.cost + v.start, serves: v.serves, change: oneMore, limit: min(start, enough), uses: v.uses},
	} {
		if p.limit > 0 {
			g.parts = append(g.parts, p)
			g.top += p.serves * float64(p.limit)
		}
	}
}

// setPrices makes a band count half of the one before it, so that whoever is served
// the smaller share comes first unless that takes twice the devices. With half the
// weight it falls twice as fast. All demand of the priority counts unit in the last
// band.
func (g *group) setPrices(unit float64) {
	width := g.rest / bands
	for k := bands - 1; k >= 0; k-- {
		fall := min(float64(k)*g.heaviest/g.weight, flattest)
		g.price[k] = g.worth / unit * math.Exp2(bands-1-fall)
		g.tail[k] = g.tail[k+1] + g.price[k]*width
	}
	g.floor = 0
	g.floor = g.unservedAt(g.top)
}

// unserved is the price of what is not served, but could be, when the parts serve rate.
func (g *group) unserved(rate float64) float64 {
	return max(0, g.unservedAt(rate)-g.floor)
}

func (g *group) unservedAt(rate float64) float64 {
	if g.reaches(rate, g.rest) {
		return 0
	}
	width := g.rest / bands
	k := int(rate / width) // below bands, by the slack
	return g.tail[k+1] + g.price[k]*max(0, width*float64(k+1)-rate)
}

// rateAt is the least rate at which no more than that price, above 0, is unserved.
func (g *group) rateAt(price float64) float64 {
	price += g.floor
	k := bands
	for k > 0 && g.tail[k-1] <= price {
		k--
	}
	if k == 0 {
		return 0
	}
	rate := g.rest*float64(k)/bands - (price-g.tail[k])/g.price[k-1]
	return min(max(0, rate), g.top)
}

// countUnserved sets what unserved demand counts where its priority may leave some: the
// price of the row for that.
func (g *group) countUnserved(prices []float64) {
	if g.hold != none {
		g.factor = max(0, prices[g.hold]) / g.held
	}
}

// suffices reports whether the rate is what must be served.
func (g *group) suffices(rate float64) bool { return g.reaches(rate, g.least) }

func (g *group) reaches(rate, aim float64) bool { return rate >= aim-g.slack }

// penalty is what the present question makes of what is not served.
func (g *group) penalty(rate float64) float64 {
	if !g.suffices(rate) {
		return math.Inf(1)
	}
	if g.factor == 0 {
		return 0
	}
	return g.factor * g.unserved(rate)
}

// wanted is how much is worth serving at a price per rate.
func (g *group) wanted(unit float64) float64 {
	k := 0
	for _, price := range g.price[:bands] {
		if price*g.factor <= unit {
			break
		}
		k++
	}
	return max(g.least, min(g.top, g.rest*float64(k)/bands))
}

// column reckons a choice.
func (g *group) column(counts []int) column {
	c, rows := column{counts: counts}, 0
	for i, n := range counts {
		if n != 0 {
			rows += len(g.parts[i].uses)
		}
	}
	c.uses = make([]Use, 0, rows)
	for i, n := range counts {
		if n == 0 {
			continue
		}
		p := &g.parts[i]
		c.served += p.serves * float64(n)
		c.cost += p.cost * float64(n)
		c.changes += p.change * n
		for _, u := range p.uses {
			c.uses = use(c.uses, u.Row, u.Amount*float64(n))
		}
	}
	return c
}

// use adds to what is used of a row.
func use(uses []Use, row int, amount float64) []Use {
	for i := range uses {
		if uses[i].Row == row {
			uses[i].Amount += amount
			return uses
		}
	}
	return append(uses, Use{Row: row, Amount: amount})
}

// perChange is a cost so small that it only decides between equal ones.
func (g *group) perChange() float64 { return fine * g.costUnit }

// remembered is how many of its latest offers a group keeps for the next question.
const remembered = 24

func (g *group) remember(pool []offer) {
	g.known = g.known[:0]
	for _, o := range pool[max(0, len(pool)-remembered):] {
		g.known = append(g.known, o.from)
	}
}

// cheapest is the choice of Cheapest for the group alone, and whether each limit alone
// allows it.
func (g *group) cheapest() (choice column, fits bool) {
	counts := make([]int, len(g.parts))
	if len(g.parts) == 0 {
		return g.column(counts), g.rest == 0
	}
	options := make([]Option, len(g.variants))
	for i := range g.variants {
		options[i] = g.variants[i].asOption(g.base[i])
	}
	replicas, _, _ := cheapest(options, g.need, stateBudget)
	fits = true
	for i := range replicas {
		replicas[i] -= g.base[i]
	}
	for i, p := range g.parts {
		counts[i] = min(replicas[p.variant], p.limit)
		replicas[p.variant] -= counts[i]
	}
	for _, n := range replicas {
		fits = fits && n == 0
	}
	return g.column(counts), fits
}

// replicas is the total of each option of the model, in the order that was asked.
func (g *group) replicas() []int {
	total := make([]int, len(g.variants))
	for i := range g.variants {
		total[g.variants[i].option] = g.base[i]
	}
	for i, n := range g.chosen.counts {
		total[g.variants[g.parts[i].variant].option] += n
	}
	return total
}

func add(to []float64, uses []Use, times float64) {
	for _, u := range uses {
		to[u.Row] += times * u.Amount
	}
}

func over(used, limit float64) bool { return used > limit+roundoff(limit) }

// roundoff is what may be used beyond a limit: sums of what is used are rounded.
func roundoff(limit float64) float64 { return fine * max(limit, 1) }

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
		if u.Amount > 0 {
			n = math.Min(n, math.Floor(math.Max(0, limits[u.Row])/u.Amount*(1+fine)))
		}
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
	uses         []Use
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
	// rest is the rate to serve above the base, slack what may be missing of it.
	rest, slack float64
	// worth is what one request per second costs on the variant with the lowest cost
	// per rate: the currency of unserved demand.
	worth float64
	// price[k] is what the k-th band of the demand counts, and tail[k] what the bands
	// from k on cost while nothing of them is served.
	price, tail [bands + 1]float64
	// target is the rate above the base that must be served; negative while unserved
	// demand has a price instead.
	target float64
	chosen column
	// ideal is the cheapest vector as if the model were alone.
	ideal     column
	idealFits bool
	rows      int
}

// column is a choice for one group.
type column struct {
	counts []int
	served float64
	// cost is that of the parts; value is what the present question makes of it, and
	// priced that with the limits that it uses.
	cost, value, priced float64
	changes             float64
	uses                []float64
}

func newGroup(at int, m Model, limits []float64) *group {
	g := &group{model: at, priority: m.Priority, weight: m.Weight, need: positive(float64(m.Need)), rows: len(limits)}
	if g.weight = positive(g.weight); g.weight == 0 {
		g.weight = 1
	}
	for i, o := range m.Options {
		v := variantAt{variant: o.clean(), option: i}
		for _, u := range o.Uses {
			switch {
			case u.Row < 0 || u.Row >= len(limits) || u.Amount < smallest || math.IsInf(limits[u.Row], 1):
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
	g.base, g.rest, g.slack = make([]int, len(g.variants)), g.need, fine*g.need
	least := math.Inf(1)
	for i := range g.variants {
		v := &g.variants[i]
		g.base[i] = v.granted
		keep := min(max(0, v.now-v.granted), v.most-v.granted)
		if v.cost == 0 {
			g.base[i], keep = g.base[i]+keep, 0
		}
		g.rest -= v.serves * float64(g.base[i])
		if v.serves <= 0 || v.granted < v.least {
			continue
		}
		if unit := v.cost / v.serves; unit > 0 {
			least = math.Min(least, unit)
		}
		if keep > 0 {
			g.parts = append(g.parts, part{variant: i, cost: v.cost, serves: v.serves, change: -1, limit: keep})
		}
		if n := min(v.most-g.base[i]-keep, v.room(limits)); n > 0 {
			g.parts = append(g.parts, part{variant: i, cost: v.cost + v.start, serves: v.serves, change: 1, limit: n, uses: v.uses})
		}
	}
	if g.rest <= g.slack {
		g.rest, g.parts = 0, nil
	}
	if g.worth = least; unknown(least) {
		g.worth = 1
	}
	g.prices()
	g.target = g.rest
	g.chosen = g.column(make([]int, len(g.parts)), 0)
}

// prices makes a band count half of the one before it, so that whoever is served the
// smaller share comes first unless that takes twice the devices. With half the weight
// it falls twice as fast.
func (g *group) prices() {
	width := g.rest / bands
	for k := bands - 1; k >= 0; k-- {
		fall := math.Min(float64(k)*g.heaviest/g.weight, flattest)
		g.price[k] = g.worth * math.Exp2(bands-1-fall)
		g.tail[k] = g.tail[k+1] + g.price[k]*width
	}
}

// unserved is the price of what is not served when the parts serve rate.
func (g *group) unserved(rate float64) float64 {
	if rate >= g.rest-g.slack {
		return 0
	}
	width := g.rest / bands
	k := min(int(rate/width), bands-1)
	return g.tail[k+1] + g.price[k]*math.Max(0, width*float64(k+1)-rate)
}

// penalty is unserved, or endless below the target.
func (g *group) penalty(rate float64) float64 {
	if g.target < 0 {
		return g.unserved(rate)
	}
	if rate >= g.target-g.slack {
		return 0
	}
	return math.Inf(1)
}

// wanted is how much is worth serving at a price per rate.
func (g *group) wanted(unit float64) float64 {
	if g.target >= 0 {
		return g.target
	}
	k := 0
	for k < bands && g.price[k] > unit {
		k++
	}
	return g.rest * float64(k) / bands
}

// column reckons a choice; costs count by weight beside the penalty.
func (g *group) column(counts []int, weight float64) column {
	c := column{counts: counts, uses: make([]float64, g.rows)}
	for i, n := range counts {
		p := &g.parts[i]
		c.served += p.serves * float64(n)
		c.cost += p.cost * float64(n)
		c.changes += float64(p.change * n)
		for _, u := range p.uses {
			c.uses[u.Row] += u.Amount * float64(n)
		}
	}
	c.value = g.valued(&c, weight)
	return c
}

func (g *group) valued(c *column, weight float64) float64 {
	return g.penalty(c.served) + weight*(c.cost+c.changes*g.perChange())
}

// perChange is a cost so small that it only decides between equal ones.
func (g *group) perChange() float64 { return fine * g.worth * g.rest }

// cheapest is the choice of Cheapest for the group alone, and whether each limit alone
// allows it.
func (g *group) cheapest() (choice column, fits bool) {
	counts := make([]int, len(g.parts))
	if len(g.parts) == 0 {
		return g.column(counts, 1), g.rest <= g.slack
	}
	options := make([]Option, len(g.variants))
	for i := range g.variants {
		options[i] = g.variants[i].asOption(g.base[i])
	}
	replicas, _ := cheapest(options, g.need)
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
	return g.column(counts, 1), fits
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

func add(to, uses []float64, times float64) {
	for i, u := range uses {
		to[i] += times * u
	}
}

func within(used, limits []float64) bool {
	for i, u := range used {
		if over(u, limits[i]) {
			return false
		}
	}
	return true
}

func over(used, limit float64) bool { return used > limit+fine*math.Max(limit, 1) }

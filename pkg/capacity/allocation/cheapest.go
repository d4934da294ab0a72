package allocation

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Cheapest returns the replicas of each option with which one model serves need at
// the least cost, start-ups included: the least sum of Cost*x + Start*(x-Now)^+ with
// sum Serves*x >= need and Least <= x <= Most. Of equal costs (within 1e-9) it takes
// the one with the fewest changes (sum |x-Now|), then the one with the most spare
// capacity, then one that does not depend on the order of the options.
//
// When the bounds do not allow need, everything is bought that serves anything, and
// Unserved is positive. A need that is no finite number is unknown: what exists
// stays, within its bounds.
func Cheapest(options []Option, need capacity.Rate) Vector {
	replicas, _, _ := cheapest(options, float64(need), stateBudget)
	return vector(options, max(0, positive(float64(need))), replicas)
}

// cheapest looks at no more than so many choices. It also says at how many it looked, and
// whether the search came to its end.
func cheapest(options []Option, need float64, most int) (replicas []int, made int, complete bool) {
	if unknown(need) {
		return standing(options), 0, true
	}
	c := newCover(options, need)
	if c.rest == 0 {
		return c.replicas, 0, true
	}
	if !c.orderUpToBreak() {
		// Everything together is not enough, or just enough.
		for _, it := range c.items {
			c.replicas[it.option] += it.limit
		}
		return c.replicas, 0, true
	}
	made, complete = c.search(most)
	return c.replicas, made, complete
}

// standing is what exists, within its bounds.
func standing(options []Option) []int {
	replicas := make([]int, len(options))
	for i, o := range options {
		v := o.clean()
		replicas[i] = min(max(v.now, v.least), v.most)
	}
	return replicas
}

// item is a number of replicas of one option that cost the same: those that exist, or
// those that must be started. Both serve the same, and the first cost no more, so a
// cheapest vector never starts one while it lets another of the same option go.
type item struct {
	option       int
	cost, serves float64
	// unit is cost per rate.
	unit float64
	// change is what one more means for the number of changes: oneMore, or oneFewer
	// where it exists and stays.
	change int
	limit  int
	// beyond is the reduced cost: what one of them adds, or saves, against serving
	// the same at the unit cost of the break item.
	beyond float64
}

// What a decision means for the number of changes.
const oneMore, oneFewer = 1, -1

// cover is the covering knapsack of one model above its lower bounds.
type cover struct {
	// replicas are the lower bounds, and what is added to them.
	replicas []int
	items    []item
	// rest is the rate that is still to be served, slack what may be missing of it.
	rest, slack float64
	// base is the price of the lower bounds: equal costs are so against the whole.
	base float64
	// at is the break item: those before it are bought in full, it covers the rest.
	at int
}

func newCover(options []Option, need float64) *cover {
	need = positive(need)
	c := &cover{replicas: make([]int, len(options)), items: make([]item, 0, 2*len(options)), rest: need, slack: slackOf(need)}
	for i, o := range options {
		v := o.clean()
		keep := min(max(0, v.now-v.least), v.most-v.least)
		c.replicas[i] = v.least
		if v.cost == 0 {
			// What exists and costs nothing stays.
			c.replicas[i], keep = v.least+keep, 0
		}
		c.rest -= v.serves * float64(c.replicas[i])
		c.base += v.cost * float64(c.replicas[i])
		c.add(i, v.cost, v.serves, oneFewer, keep)
		c.add(i, v.cost+v.start, v.serves, oneMore, v.most-c.replicas[i]-keep)
	}
	c.rest = due(c.rest, c.slack)
	return c
}

func (c *cover) add(option int, cost, serves float64, change, limit int) {
	// Of what serves nothing, or next to nothing, the cost per rate is no number.
	if unit := cost / serves; limit > 0 && !unknown(unit) {
		c.items = append(c.items, item{option: option, cost: cost, serves: serves, unit: unit, change: change, limit: limit})
	}
}

// enough is the number of replicas that serve rate.
func (c *cover) enough(it item, rate float64) int {
	n := math.Ceil((rate - c.slack) / it.serves)
	return int(min(max(n, 0), mostReplicas))
}

// orderUpToBreak sorts the items by cost per rate and finds the break item. It is
// false when all of them together do not serve more than the rest.
func (c *cover) orderUpToBreak() bool {
	slices.SortFunc(c.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(a.unit, b.unit), cmp.Compare(b.serves, a.serves), cmp.Compare(a.change, b.change),
			cmp.Compare(b.limit, a.limit), cmp.Compare(a.option, b.option))
	})
	c.dropDominated()
	left := c.rest
	for i, it := range c.items {
		left -= it.serves * float64(it.limit)
		if due(left, c.slack) == 0 {
			c.at = i
			return true
		}
	}
	return false
}

// dropDominated leaves out the items in whose place another, of which there are
// enough for everything, is never worse.
func (c *cover) dropDominated() {
	kept := c.items[:0]
	for j, b := range c.items {
		dominated := slices.ContainsFunc(kept, func(a item) bool { return c.dominates(a, b) })
		for _, a := range c.items[j+1:] {
			dominated = dominated || c.dominates(a, b) && !c.dominates(b, a)
		}
		if !dominated {
			kept = append(kept, b)
		}
	}
	c.items = kept
}

func (c *cover) dominates(a, b item) bool {
	return a.cost <= b.cost && a.serves >= b.serves && a.change <= b.change && a.limit >= c.enough(a, c.rest)
}

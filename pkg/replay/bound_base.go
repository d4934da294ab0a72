package replay

import (
	"cmp"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// base are good vectors for each minute on its own.
func (c *course) base() [][]int {
	base := make([][]int, len(c.moments))
	for t := range c.moments {
		vector, _ := c.alone(&c.moments[t])
		if !c.room.holds(vector) {
			vector = c.shared(&c.moments[t])
		}
		base[t] = vector
	}
	return base
}

// choices are the options of a model in a minute.
func (c *course) choices(m *moment, model int) []allocation.Option {
	var choices []allocation.Option
	for i := c.first(model); i < c.ends[model]; i++ {
		o := c.options[i]
		choices = append(choices, allocation.Option{
			Cost: capacity.Cost(o.price), Serves: capacity.Rate(m.serves[i]), Least: o.least, Most: o.most,
		})
	}
	return choices
}

// alone is the least costly vector of a minute if variants took no room from each
// other, and what it costs per hour, which no other costs less than.
func (c *course) alone(m *moment) (vector []int, price float64) {
	for model := range c.ends {
		best := allocation.Cheapest(c.choices(m, model), capacity.Rate(m.need[model]))
		if k, some := c.lowest(model, func(int) bool { return true }); some && c.idle(best.Replicas) {
			best.Replicas[k]++
		}
		vector = append(vector, best.Replicas...)
	}
	for i, n := range vector {
		price += float64(n) * c.options[i].price
	}
	return vector, price
}

func (c *course) idle(replicas []int) bool {
	return !slices.ContainsFunc(replicas, func(n int) bool { return n > 0 })
}

// lowest is the place among a model's options of the one of the least price of which
// there may be a replica.
func (c *course) lowest(model int, may func(option int) bool) (place int, some bool) {
	best := -1
	for i := c.first(model); i < c.ends[model]; i++ {
		if c.options[i].most > 0 && may(i) && (best < 0 || c.options[i].price < c.options[best].price) {
			best = i
		}
	}
	return best - c.first(model), best >= 0
}

// shared is a vector of a minute whose replicas fit together.
func (c *course) shared(m *moment) []int {
	rows, uses := c.room.rows()
	var models []allocation.Model
	for model := range c.ends {
		choices := c.choices(m, model)
		for k := range choices {
			choices[k].Uses = uses[c.first(model)+k]
		}
		models = append(models, allocation.Model{Need: capacity.Rate(m.need[model]), Options: choices})
	}
	var vector []int
	for _, v := range allocation.Share(models, rows) {
		vector = append(vector, v.Replicas...)
	}
	// What the rows do not know is left to the placement.
	for !c.room.holds(vector) {
		vector[slices.Index(vector, slices.Max(vector))]--
	}
	for model := range c.ends {
		if own := vector[c.first(model):c.ends[model]]; c.idle(own) {
			fits := func(i int) bool {
				vector[i]++
				defer func() { vector[i]-- }()
				return c.room.holds(vector)
			}
			if k, some := c.lowest(model, fits); some {
				own[k]++
			}
		}
	}
	return vector
}

// rows are limits that the requests share, and what one replica of each takes of them:
// how many of each fit alone, and how many holes there are of each number of devices
// that is asked for, by accelerator.
func (r *room) rows() (limits []float64, uses [][]allocation.Use) {
	uses = make([][]allocation.Use, len(r.requests))
	if r.cluster == nil {
		return nil, uses
	}
	row := func(request *placement.Request) int {
		slots, err := r.cluster.Slots(request)
		limits = append(limits, float64(slots))
		if err != nil {
			limits[len(limits)-1] = math.Inf(1)
		}
		return len(limits) - 1
	}
	known := map[placement.Hole]bool{}
	for i, request := range r.requests {
		if request.Countable() != nil {
			continue
		}
		uses[i] = append(uses[i], allocation.Use{Row: row(request), Amount: 1})
		h, devices := placement.HoleOf(request.Shape)
		if !devices || known[h] {
			continue
		}
		known[h] = true
		at := row(h.Request())
		for k, other := range r.requests {
			if other.Countable() != nil {
				continue
			}
			if takes := h.In(other.Shape); takes > 0 {
				uses[k] = append(uses[k], allocation.Use{Row: at, Amount: float64(takes)})
			}
		}
	}
	for i := range uses {
		slices.SortFunc(uses[i], func(a, b allocation.Use) int { return cmp.Compare(a.Row, b.Row) })
	}
	return limits, uses
}

// relaxed is what no schedule costs less than. What the replicas of a minute cost per
// hour is at least what the least costly ones do; and what is started costs at least
// what the price per hour rises by, for the time of a start-up. The least over all
// courses of that one number is found level by level: between two minutes that need a
// level it is kept, or let go and started again, whichever costs less; before the first
// one it is there from the start, or is started.
func (c *course) relaxed(base [][]int) float64 {
	prices := make([]float64, len(c.moments))
	for t := range c.moments {
		m := c.moments[t]
		m.need = slices.Clone(m.need)
		for model := range m.need {
			// Where not everything is served, what is not costs nothing.
			serves := 0.0
			for i := c.first(model); i < c.ends[model]; i++ {
				serves += m.serves[i] * float64(base[t][i])
			}
			m.need[model] = min(m.need[model], serves)
		}
		_, prices[t] = c.alone(&m)
	}
	levels := slices.Clone(prices)
	slices.Sort(levels)
	sum, below := 0.0, 0.0
	for _, level := range slices.Compact(levels) {
		sum += (level - below) * c.hoursAt(prices, level)
		below = level
	}
	return sum
}

// hoursAt is for how many hours a level is paid, start-ups included.
func (c *course) hoursAt(prices []float64, level float64) float64 {
	paid, gap := 0.0, 0.0
	for t, price := range prices {
		if price < level {
			gap += c.moments[t].hours
			continue
		}
		paid += min(gap, c.startup) + c.moments[t].hours
		gap = 0
	}
	return paid
}

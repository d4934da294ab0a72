package replay

import (
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
)

// course is the load of some models over time, with the variants that may serve it. A
// vector is the replicas of all of its variants, model by model.
type course struct {
	options []option
	// ends is, for each model, the index after its last option.
	ends    []int
	moments []moment
	// startup is in hours.
	startup float64
	room    *room
}

// option is one variant.
type option struct {
	price float64
	// least and most bound its replicas: more than most never helps.
	least, most int
}

// moment is one minute.
type moment struct {
	hours float64
	// need is the rate of each model, serves what one replica of each option serves.
	need   []float64
	serves []float64
}

// plan is a schedule of a course.
type plan struct {
	replicas [][]int
	// least is what no schedule costs less than; for an optimal one it is its cost.
	least   float64
	optimal bool
}

// mostReplicas bounds the replicas of one variant, whatever the load.
const mostReplicas = 1 << 20

// course makes the course of all models.
func (s *Scenario) course(load Load, serves [][][]capacity.Rate, startup time.Duration) (*course, error) {
	c := &course{startup: startup.Hours(), moments: make([]moment, len(load[0]))}
	var requests []*placement.Request
	for t := range c.moments {
		c.moments[t].hours = load[0][t].Length.Hours()
	}
	for m := range s.Models {
		for t := range c.moments {
			c.moments[t].need = append(c.moments[t].need, float64(load[m][t].Rate))
		}
		some := false
		for v := range s.Models[m].Variants {
			variant := &s.Models[m].Variants[v]
			o := option{price: float64(variant.Cost), least: max(0, variant.Policy.Min), most: s.mostOf(variant)}
			if math.IsNaN(o.price) || math.IsInf(o.price, 0) || o.price < 0 {
				return nil, fmt.Errorf("model %s: variant %s: the price is %v per hour; expected a number of at least 0", s.Models[m].ID, variant.Name, o.price)
			}
			useful := 1
			for t := range c.moments {
				one := float64(serves[m][t][v])
				c.moments[t].serves = append(c.moments[t].serves, one)
				if need := c.moments[t].need[m]; one > 0 {
					useful = max(useful, wanted(need, one))
				}
			}
			o.least = min(o.least, o.most)
			o.most = max(o.least, min(o.most, useful))
			some = some || o.most > 0
			c.options = append(c.options, o)
			requests = append(requests, variant.Request)
		}
		if !some {
			return nil, fmt.Errorf("model %s: no variant may have a replica; expected one whose greatest number is not 0 and that fits on a node", s.Models[m].ID)
		}
		c.ends = append(c.ends, len(c.options))
	}
	c.room = newRoom(s.Cluster, requests)
	c.heedMinima()
	return c, nil
}

// mostOf is how many replicas a variant may have and the cluster holds of it alone.
func (s *Scenario) mostOf(v *Variant) int {
	most := mostReplicas
	if v.Policy.Max >= 0 {
		most = min(most, v.Policy.Max)
	}
	if s.Cluster == nil {
		return most
	}
	if slots, err := s.Cluster.Slots(v.Request); err == nil {
		most = min(most, slots)
	}
	return most
}

// wanted is how many replicas serve a rate.
func wanted(need, one float64) int {
	n := math.Ceil(need * (1 - fine) / one)
	return int(min(max(n, 0), mostReplicas))
}

// heedMinima gives up the minima where they do not fit together.
func (c *course) heedMinima() {
	minima := make([]int, len(c.options))
	for i, o := range c.options {
		minima[i] = o.least
	}
	if !c.room.holds(minima) {
		for i := range c.options {
			c.options[i].least = 0
		}
	}
}

// solve plans all models. Where those that each would have alone fit together there is
// nothing better; else the vectors of all models together are looked at.
func (c *course) solve() plan {
	whole := c.apart()
	if len(c.ends) == 1 || !slices.ContainsFunc(whole.replicas, func(x []int) bool { return !c.room.holds(x) }) {
		return whole
	}
	if all := c.everywhere(); vectors(all) <= searchable/10 {
		p := newSearch(c, all).run()
		p.optimal = true
		return p
	}
	return c.contested(whole, nearby/40)
}

// apart plans each model as if it had the cluster for itself.
func (c *course) apart() plan {
	plans := make([]plan, len(c.ends))
	whole := plan{optimal: true, replicas: make([][]int, len(c.moments))}
	for m := range c.ends {
		part := c.only(m)
		plans[m] = part.plan()
		whole.least += plans[m].least
		whole.optimal = whole.optimal && plans[m].optimal
	}
	for t := range c.moments {
		for m := range plans {
			whole.replicas[t] = append(whole.replicas[t], plans[m].replicas[t]...)
		}
	}
	return whole
}

// contested plans models of which each for itself got what only one of them can have: it
// looks at up to a number of vectors near the minutes in which they do not fit together.
// What they cost alone is a bound still, unless somebody is not served now.
func (c *course) contested(whole plan, most float64) plan {
	served := true
	base, open := make([][]int, len(c.moments)), make([]bool, len(c.moments))
	for t, vector := range whole.replicas {
		base[t] = vector
		if !c.room.holds(vector) {
			base[t] = c.shared(&c.moments[t])
			served = served && c.unserved(&c.moments[t], base[t]) == 0
			for k := max(0, t-reach); k <= min(len(open)-1, t+reach); k++ {
				open[k] = true
			}
		}
	}
	p := c.nearest(base, open, most)
	if served {
		p.least = whole.least
	} else {
		p.least = min(p.least, c.relaxed(base))
	}
	return p
}

// only is the course of one model that has the cluster for itself.
func (c *course) only(model int) *course {
	from, to := c.first(model), c.ends[model]
	part := &course{options: c.options[from:to], ends: []int{to - from}, startup: c.startup, room: c.room.only(from, to)}
	for _, m := range c.moments {
		part.moments = append(part.moments, moment{hours: m.hours, need: m.need[model : model+1], serves: m.serves[from:to]})
	}
	return part
}

// first is the index of a model's first option.
func (c *course) first(model int) int {
	if model == 0 {
		return 0
	}
	return c.ends[model-1]
}

// byModel turns vectors into replicas by model and variant.
func (c *course) byModel(vectors [][]int) [][][]int {
	all := make([][][]int, len(vectors))
	for t, x := range vectors {
		for m, end := range c.ends {
			all[t] = append(all[t], slices.Clone(x[c.first(m):end]))
		}
	}
	return all
}

// searchable is how many vectors, over all minutes, are looked at, and nearby how many
// near good ones: about a tenth of a microsecond each.
const (
	searchable = 30_000_000
	nearby     = 10_000_000
)

// plan looks at all vectors where they are few enough, else at those near good ones.
func (c *course) plan() plan {
	if keep := c.needed(); len(keep) < len(c.options) {
		return c.planOf(keep)
	}
	if all := c.everywhere(); vectors(all) <= searchable {
		p := newSearch(c, all).run()
		p.optimal = true
		return p
	}
	return c.planNear(nearby)
}

// needed are the options without those that another one can replace. It is only asked
// of a single model that has room for everything.
func (c *course) needed() []int {
	var keep []int
	for i := range c.options {
		keep = append(keep, i)
	}
	if len(c.ends) > 1 || !c.room.holds(c.everything().high) {
		return keep
	}
	for i := range c.options {
		if slices.ContainsFunc(keep, func(j int) bool { return j != i && c.replaces(j, i) }) {
			keep = slices.DeleteFunc(keep, func(j int) bool { return j == i })
		}
	}
	return keep
}

// replaces reports whether some replicas of one option cost no more than one of another
// and serve as much in every minute. In every schedule they can then stand in for it: up
// to the number that is enough alone, they also start when it does and for no more.
func (c *course) replaces(one, other int) bool {
	a, b := c.options[one], c.options[other]
	if b.least > 0 || a.price <= 0 || a.price > b.price {
		return false
	}
	times := math.Floor(b.price / a.price)
	for t := range c.moments {
		serves := c.moments[t].serves
		if times*serves[one] < serves[other] || !enough(serves[one]*float64(a.most), c.moments[t].need[0]) {
			return false
		}
	}
	return times*a.price <= b.price
}

// planOf plans with some of the options alone.
func (c *course) planOf(keep []int) plan {
	some := &course{ends: []int{len(keep)}, startup: c.startup}
	var requests []*placement.Request
	for _, i := range keep {
		some.options = append(some.options, c.options[i])
		if c.room.cluster != nil {
			requests = append(requests, c.room.requests[i])
		}
	}
	some.room = newRoom(c.room.cluster, requests)
	for _, m := range c.moments {
		own := moment{hours: m.hours, need: m.need}
		for _, i := range keep {
			own.serves = append(own.serves, m.serves[i])
		}
		some.moments = append(some.moments, own)
	}
	p := some.plan()
	for t, x := range p.replicas {
		p.replicas[t] = make([]int, len(c.options))
		for k, i := range keep {
			p.replicas[t][i] = x[k]
		}
	}
	return p
}

// planNear looks at up to a number of vectors near those that are good for each minute
// on its own.
func (c *course) planNear(most float64) plan {
	base, open := c.base(), make([]bool, len(c.moments))
	for t := range open {
		open[t] = true
	}
	p := c.nearest(base, open, most)
	p.least = min(p.least, c.relaxed(base))
	return p
}

// reach is how many minutes around one count as near.
const reach = 10

// nearest looks at vectors near the base in the open minutes, the further the better.
func (c *course) nearest(base [][]int, open []bool, most float64) plan {
	near := c.near(base, open, 0, 0)
	for _, how := range []struct{ minutes, more int }{{reach, 3}, {6, 2}, {4, 1}, {2, 1}, {2, 0}, {1, 0}} {
		if wide := c.near(base, open, how.minutes, how.more); vectors(wide) <= most {
			near = wide
			break
		}
	}
	return newSearch(c, near).run()
}

// everywhere is everything for each minute.
func (c *course) everywhere() []span {
	all, spans := c.everything(), make([]span, len(c.moments))
	for t := range spans {
		spans[t] = all
	}
	return spans
}

// everything is the span of all vectors that can be of any use.
func (c *course) everything() span {
	all := span{low: make([]int, len(c.options)), high: make([]int, len(c.options))}
	for i, o := range c.options {
		all.low[i], all.high[i] = o.least, o.most
	}
	return all
}

// near are the spans that hold the base vector and, for each open minute, those of so
// many minutes before and after it, and so many replicas more and fewer.
func (c *course) near(base [][]int, open []bool, minutes, more int) []span {
	spans := make([]span, len(base))
	for t := range base {
		s := span{low: slices.Clone(base[t]), high: slices.Clone(base[t])}
		if spans[t] = s; !open[t] {
			continue
		}
		for k := max(0, t-minutes); k <= min(len(base)-1, t+minutes); k++ {
			for i, n := range base[k] {
				s.low[i], s.high[i] = min(s.low[i], n), max(s.high[i], n)
			}
		}
		for i, o := range c.options {
			s.low[i], s.high[i] = max(min(o.least, base[t][i]), s.low[i]-more), max(base[t][i], min(o.most, s.high[i]+more))
		}
		spans[t] = s
	}
	return spans
}

// cost is what a schedule costs.
func (c *course) cost(replicas [][]int) float64 {
	sum := 0.0
	for t, x := range replicas {
		for i, n := range x {
			hours := float64(n) * c.moments[t].hours
			if t > 0 {
				hours += float64(max(0, n-replicas[t-1][i])) * c.startup
			}
			sum += hours * c.options[i].price
		}
	}
	return sum
}

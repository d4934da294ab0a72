package replay

import (
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/allocation"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
)

// boundShares are the shares of a minute's requests that the front of the bound tells
// apart. Who keeps more than one of them counts as keeping the next one.
var boundShares = []float64{0, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999}

// BoundFront is the bound as a front: what attaining so much of all requests costs at
// least, where what may be missed is missed where that saves most. It bounds the cost of
// every schedule
//
//   - of which a minute attains what the capacity model says at the minute's mean rate (the
//     greatest of boundShares for which the replicas serve that rate, and the one above it);
//   - that has at least one replica of each model, keeps the bounds of the variants, and
//     pays for a replica from the beginning of its start-up;
//
// in the sense of Lagrange: for each price of a missed request, the schedule that is found
// has the least sum of its cost and of that price for each request that it misses, so that
// none that misses no more costs less. Between its points, straight lines are a bound, too.
//
// It is more generous than Bound: models take no room from each other, and of several
// variants only the price per hour of all replicas together is known from minute to minute,
// so that one may turn into another for nothing. Bound proves what keeping the promise in
// every minute costs; this proves what attaining as much as somebody costs who breaks it in
// some. Neither proves what the simulated servers keep: there a fleet is judged request by
// request, with the bursts within the minute. What that adds shows the policy "bound", which
// plays the schedule of Bound.
func (t *Trial) BoundFront(startup time.Duration) front.Front {
	load := t.load.from(t.scenario.Learning)
	courses, requests := t.shareCourses(load)
	if requests == 0 {
		return nil
	}
	found := func(price float64) front.Point {
		var sum front.Point
		missed := 0.0
		for m := range courses {
			paid, lost := courses[m].least(price, startup.Hours())
			sum.Cost += paid
			missed += lost
		}
		sum.Attainment = 1 - missed/requests
		return sum
	}
	// The ends: a miss that is worth next to nothing, and one that is worth a thousand
	// requests.
	each := t.bounds[startup].Cost / requests
	ends := []front.Point{found(each / 1000), found(each * 1000)}
	return front.Of(slices.Concat(ends, amid(ends[0], ends[1], requests, found)))
}

// closeEnough is the relative difference in cost between neighbours that is not looked into:
// the front is a bound to a small part of it.
const closeEnough = 0.002

// amid are the points of a convex front between two of its points: the one that is
// farthest below the line between them, and what is on either side of it.
func amid(a, b front.Point, requests float64, found func(price float64) front.Point) []front.Point {
	if b.Attainment <= a.Attainment || b.Cost <= a.Cost*(1+closeEnough) {
		return nil
	}
	price := (b.Cost - a.Cost) / (b.Attainment - a.Attainment) / requests
	c := found(price)
	sum := func(p front.Point) float64 { return p.Cost + price*requests*(1-p.Attainment) }
	if sum(c) >= sum(a)*(1-fine) {
		return nil
	}
	return slices.Concat([]front.Point{c}, amid(a, c, requests, found), amid(c, b, requests, found))
}

// shareCourse is one model over time: what it costs per hour to attain each share.
type shareCourse struct {
	minutes []shareMinute
	// step is the distance of the levels of cost, and levels how many there are.
	step   float64
	levels int
}

// shareMinute is one minute: the level from which on each share is attained; never is
// beyond all levels.
type shareMinute struct {
	hours, requests float64
	from            []int
}

// levelsPerReplica is how finely costs are told apart, in parts of the cheapest replica.
const levelsPerReplica = 4

// shareCourses are those of all models, and how many requests there are.
func (t *Trial) shareCourses(load Load) (courses []shareCourse, requests float64) {
	serves := make([][][][]capacity.Rate, len(boundShares))
	for k, share := range boundShares {
		if share > 0 {
			serves[k] = t.scenario.sharing(share).rates(load)
		}
	}
	for m := range t.scenario.Models {
		options := t.scenario.shareOptions(m)
		c := shareCourse{step: math.Inf(1)}
		for _, o := range options {
			if o.Cost > 0 && o.Most != 0 {
				c.step = min(c.step, float64(o.Cost)/levelsPerReplica)
			}
		}
		for at, of := range load[m] {
			one := shareMinute{hours: of.Length.Hours(), requests: float64(of.Rate) * max(of.Length, leastSpan).Seconds()}
			for k, share := range boundShares {
				need := of.Rate
				if share == 0 {
					need = 0
				} else {
					for v := range options {
						options[v].Serves = serves[k][m][at][v]
					}
				}
				one.from = append(one.from, c.level(options, need))
			}
			requests += one.requests
			c.levels = max(c.levels, 1+reached(one.from))
			c.minutes = append(c.minutes, one)
		}
		courses = append(courses, c)
	}
	return courses, requests
}

// sharing is the scenario with another promised share.
func (s *Scenario) sharing(share float64) *Scenario {
	other := *s
	other.Policy.Share = share
	return &other
}

// shareOptions are the variants of a model, of which there may be as many as fit alone.
func (s *Scenario) shareOptions(m int) []allocation.Option {
	options := make([]allocation.Option, len(s.Models[m].Variants))
	for v := range options {
		variant := &s.Models[m].Variants[v]
		most := s.mostOf(variant)
		options[v] = allocation.Option{Cost: variant.Cost, Least: min(max(0, variant.Policy.Min), most), Most: most}
	}
	return options
}

// never is the level of what no replicas attain.
const never = math.MaxInt32

// level is that of the least cost at which the options serve a rate, rounded down, with at
// least one replica.
func (c *shareCourse) level(options []allocation.Option, need capacity.Rate) int {
	vector := allocation.Cheapest(options, need)
	if vector.Unserved > 0 {
		return never
	}
	cost, one := 0.0, math.Inf(1)
	for v, n := range vector.Replicas {
		cost += float64(n) * float64(options[v].Cost)
		if options[v].Most != 0 {
			one = min(one, float64(options[v].Cost))
		}
	}
	if cost == 0 && !math.IsInf(one, 1) {
		cost = one
	}
	return int(math.Floor(cost/c.step*(1+fine) + fine))
}

// reached is the highest level that is one.
func reached(from []int) int {
	most := 0
	for _, level := range from {
		if level != never {
			most = max(most, level)
		}
	}
	return most
}

// least is the schedule of levels with the least sum of what it costs and of the price of
// the requests that it misses: what it costs, and how many it misses. It is found minute
// by minute: up to a level, from the level of the minute before that is the best to come
// from. Going down is free, and going up costs a start-up.
func (c *shareCourse) least(price, startup float64) (cost, missed float64) {
	sums, came := make([]float64, c.levels), make([][]int32, len(c.minutes))
	for t := range c.minutes {
		if t > 0 {
			came[t] = c.arrive(sums, startup)
		}
		for level := range sums {
			paid, lost := c.at(t, level)
			sums[level] += paid + price*lost
		}
	}
	level := slices.Index(sums, slices.Min(sums))
	for t := len(c.minutes) - 1; t >= 0; t-- {
		paid, lost := c.at(t, level)
		cost, missed = cost+paid, missed+lost
		if t > 0 {
			before := int(came[t][level])
			cost += max(0, float64(level-before)) * c.step * startup
			level = before
		}
	}
	return cost, missed
}

// at is what a minute costs at a level, and how many requests it misses.
func (c *shareCourse) at(t, level int) (cost, missed float64) {
	m := &c.minutes[t]
	cost = float64(level) * c.step * m.hours
	share := -1
	for k, from := range m.from {
		if level >= from {
			share = k
		}
	}
	switch {
	case share < 0:
		// Less than one replica: nobody may have that.
		return math.Inf(1), m.requests
	case share == len(boundShares)-1:
		return cost, 0
	}
	return cost, m.requests * (1 - boundShares[share+1])
}

// arrive turns the least sums up to a minute into those up to the beginning of the next
// one, in place, and says from which level each comes.
func (c *shareCourse) arrive(sums []float64, startup float64) []int32 {
	came := make([]int32, len(sums))
	best := len(sums) - 1
	for level := len(sums) - 1; level >= 0; level-- {
		if sums[level] < sums[best] {
			best = level
		}
		came[level] = int32(best) // #nosec G115: a level
	}
	next := make([]float64, len(sums))
	for level := range sums {
		next[level] = sums[came[level]]
		if level > 0 {
			if up := next[level-1] + c.step*startup; up < next[level] {
				next[level], came[level] = up, came[level-1]
			}
		}
	}
	copy(sums, next)
	return came
}

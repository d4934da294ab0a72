package front

import (
	"math"
	"slices"
)

// Entry is one policy with one setting: what it kept and cost in the runs of each seed, in
// the order of the seeds.
type Entry struct {
	// Family names the policy and Setting how it was set.
	Family, Setting string
	Runs            []Point
}

// mean is that of the runs, of all of them or without one.
func (e *Entry) mean(without int) Point {
	var sum Point
	n := 0.0
	for i, r := range e.Runs {
		if i == without {
			continue
		}
		sum.Attainment += r.Attainment
		sum.Cost += r.Cost
		n++
	}
	return Point{sum.Attainment / n, sum.Cost / n}
}

// Mean is what the entry kept and cost in the mean over the seeds.
func (e *Entry) Mean() Point { return e.mean(-1) }

// Noise are the standard errors of the mean; NaN with fewer than two seeds.
func (e *Entry) Noise() Point {
	_, attainment := jackknife(len(e.Runs), func(without int) float64 { return e.mean(without).Attainment })
	_, cost := jackknife(len(e.Runs), func(without int) float64 { return e.mean(without).Cost })
	return Point{attainment, cost}
}

// Enough is the attainment beyond which more of it is worth nothing: who keeps all counts
// as one who keeps so much.
const Enough = 0.9995

// Verdict compares one entry with the front of others.
type Verdict struct {
	// Own is what the entry kept and cost in the mean over the seeds.
	Own Point
	// FrontCost is what the front costs at that attainment, or at Enough, and Ratio what the entry costs
	// divided by it. Noise is the ratio's standard error over the seeds; NaN where there
	// are fewer than two.
	FrontCost, Ratio, Noise float64
	// Place says what is known of the ratio. Within the front it is what it says. Above,
	// no other attains as much: FrontCost is that of the best of them, and the ratio is at
	// most so large. Below, all others attain more: FrontCost is that of the cheapest of
	// them, and the ratio is at least so large. Nowhere, there are no others.
	Place Place
	// FrontAttainment is what the front attains at the entry's cost, where CostPlace says
	// Within; with Above it is the most that the front attains, and with Below the front
	// has nothing so cheap.
	FrontAttainment float64
	CostPlace       Place
	// FrontNoise are the standard errors of FrontAttainment and FrontCost.
	FrontNoise Point
	// Seeds is how many runs the numbers are of.
	Seeds int
}

// AtMost answers the claim that the entry costs at most so many times what the front does
// at the same attainment.
func (v *Verdict) AtMost(limit float64) Answer {
	return AtMost(v.Ratio, v.Noise, v.Seeds, v.Place, limit)
}

// Judge compares an entry with the front of the others. The front is that of their means
// over the seeds, so that their settings are chosen by hindsight; the noise is that of
// everything together, the choice included, found by leaving out one seed at a time.
// Others that have not run with as many seeds do not count.
func Judge(own Entry, others []Entry) Verdict {
	others = complete(others, len(own.Runs))
	v := Verdict{Own: own.Mean(), Seeds: len(own.Runs)}
	whole := frontOf(others, -1)
	if v.FrontCost, v.Place = whole.CostAt(min(Enough, v.Own.Attainment)); v.Place == Nowhere {
		v.FrontCost, v.Ratio, v.Noise = math.NaN(), math.NaN(), math.NaN()
		v.CostPlace, v.FrontAttainment = Nowhere, math.NaN()
		v.FrontNoise = Point{math.NaN(), math.NaN()}
		return v
	}
	_, v.CostPlace = whole.AttainmentAt(v.Own.Cost)
	costAt := func(without int) float64 {
		cost, _ := frontOf(others, without).CostAt(min(Enough, own.mean(without).Attainment))
		return cost
	}
	_, v.FrontNoise.Cost = jackknife(len(own.Runs), costAt)
	v.FrontAttainment, v.FrontNoise.Attainment = jackknife(len(own.Runs), func(without int) float64 {
		attainment, _ := frontOf(others, without).AttainmentAt(own.mean(without).Cost)
		return attainment
	})
	v.Ratio, v.Noise = jackknife(len(own.Runs), func(without int) float64 { return own.mean(without).Cost / costAt(without) })
	return v
}

// complete are the entries that ran with all seeds.
func complete(entries []Entry, seeds int) []Entry {
	return slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return len(e.Runs) != seeds })
}

// frontOf is the front of the entries' means, of all seeds or without one.
func frontOf(entries []Entry, without int) Front {
	points := make([]Point, len(entries))
	for i := range entries {
		points[i] = entries[i].mean(without)
	}
	return Of(points)
}

package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
)

// performPeak plays static fleets until it has the smallest one that keeps the SLO for the
// promised share of this trace's requests. Nobody could have known it before: it is a
// reference and no policy. In this order:
//
//  1. Fleets of the variant of each model that is cheapest for what it serves. All models
//     have the same number at first; then each in turn gives back what the fleet does
//     without. The smallest one that keeps the SLO is the answer.
//  2. Where none of these does: fleets of the next variants alone, the cheapest first, and
//     mixes (mixes); of all that keep the SLO the least costly one.
//  3. Where none does at all: of those that were played the least costly one that attains
//     as much as any but for slack. A parameter says so.
func (p *play) performPeak() performed {
	s := fleetSearch{play: *p, tell: p.tell}
	s.record, s.limit = false, Limit{}
	ranks := p.scenario.Ranked(p.load)
	variants := slices.MaxFunc(ranks, func(a, b []int) int { return cmp.Compare(len(a), len(b)) })
	for rank := range variants {
		choice := make([]int, len(ranks))
		for m := range choice {
			choice[m] = ranks[m][min(rank, len(ranks[m])-1)]
		}
		if s.climb(s.alike(choice)) && rank == 0 {
			return s.answer(p)
		}
	}
	s.climb(s.mixes(ranks))
	return s.answer(p)
}

// slack is by how much less than the most a fleet may attain where none keeps the SLO: the
// last tenth of a per cent may take twice the fleet.
const slack = 0.001

// fleetSearch plays fleets, each once.
type fleetSearch struct {
	play
	tell   func(float64) bool
	played []fleetPlay
}

type fleetPlay struct {
	fleet
	performed
}

// ladder is a row of fleets, each larger than the one before.
type ladder struct {
	first, last int
	fleet       func(n int) fleet
}

// climb looks for the smallest fleet of a ladder that keeps the SLO; false without any.
func (s *fleetSearch) climb(l ladder) bool {
	low, high, step := l.first-1, l.first, 1
	for !s.keeps(l.fleet(high)) {
		if high == l.last {
			return false
		}
		low, high, step = high, min(high+step, l.last), 2*step
	}
	s.giveBack(l.fleet(s.least(low, high, l.fleet)))
	return true
}

// giveBack takes from each variant in turn, the last one first, what the fleet does
// without. One of a model stays.
func (s *fleetSearch) giveBack(f fleet) {
	if len(f.replicas) == 1 && f.choice != nil {
		return
	}
	for m := range f.replicas {
		for v, n := range slices.Backward(f.replicas[m]) {
			low := s.scenario.Models[m].Variants[v].Policy.Min - 1
			if !slices.ContainsFunc(f.but(m, v, 0).replicas[m], func(n int) bool { return n > 0 }) {
				low = max(low, 0)
			}
			f = f.but(m, v, s.least(low, n, func(n int) fleet { return f.but(m, v, n) }))
		}
	}
}

// try plays a fleet that is there from the start. After an error nothing is played.
func (s *fleetSearch) try(f fleet) performed {
	for i := range s.played {
		if s.played[i].err != nil || s.played[i].same(f) {
			return s.played[i].performed
		}
	}
	s.play.tell = halfOfTheRest(s.tell, len(s.played))
	s.played = append(s.played, fleetPlay{f, s.with(f, f.replicas)})
	return s.played[len(s.played)-1].performed
}

// keeps reports whether a fleet keeps the SLO, or there is no use in going on.
func (s *fleetSearch) keeps(f fleet) bool {
	n := s.try(f)
	return n.err != nil || n.result.Attainment >= s.scenario.Policy.Share
}

// least is the smallest number above low whose fleet keeps the SLO, or high.
func (s *fleetSearch) least(low, high int, fleet func(n int) fleet) int {
	for high-low > 1 {
		if mid := (low + high) / 2; s.keeps(fleet(mid)) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// answer is the best of what was played, played again where its course is wanted.
func (s *fleetSearch) answer(p *play) performed {
	if last := s.played[len(s.played)-1]; last.err != nil {
		return last.performed
	}
	best, keeps := s.best()
	out := best.performed
	if s.record = p.record; s.record {
		s.play.tell = halfOfTheRest(s.tell, len(s.played))
		out = s.with(best.fleet, best.replicas)
	}
	out.result.Parameters = append(best.Parameters(),
		Parameter{"promisedShare", fmt.Sprint(s.scenario.Policy.Share)}, Parameter{keepsThePromise, strconv.FormatBool(keeps)})
	return out
}

// best is the least costly fleet that keeps the SLO; where none does, the least costly one
// that attains the most but for slack.
func (s *fleetSearch) best() (best fleetPlay, keeps bool) {
	most := 0.0
	for i := range s.played {
		most = max(most, s.played[i].result.Attainment)
	}
	enough, keeps := most-slack, most >= s.scenario.Policy.Share
	if keeps {
		enough = s.scenario.Policy.Share
	}
	candidates := slices.DeleteFunc(slices.Clone(s.played), func(f fleetPlay) bool { return f.result.Attainment < enough })
	return slices.MinFunc(candidates, func(a, b fleetPlay) int {
		return cmp.Or(cmp.Compare(a.result.Cost, b.result.Cost), cmp.Compare(a.result.ReplicaHours, b.result.ReplicaHours))
	}), keeps
}

// alike are fleets of one variant of each model, with the same number of each as far as
// its bounds allow: up to what is enough for any minute, or all that fit together.
func (s *fleetSearch) alike(choice []int) ladder {
	fleets := func(n int) fleet {
		replicas := make([]int, len(choice))
		for m, v := range choice {
			replicas[m] = s.scenario.Models[m].Variants[v].Bounded(n)
		}
		return newFleet(s.scenario, choice, replicas)
	}
	most := 1
	for m, v := range choice {
		slots, err := s.scenario.Cluster.Slots(s.scenario.Models[m].Variants[v].Request)
		if err == nil {
			most = max(most, slots)
		}
	}
	if len(choice) > 1 {
		most = 1 + sort.Search(most-1, func(i int) bool { return !s.scenario.Holds(fleets(i + 2).replicas) })
	}
	return ladder{1, most, fleets}
}

// mixes begin with what the dearest minute needs. Each further one has one more
// replica of each model, of the first variant by rank that fits beside the others, until
// none does.
func (s *fleetSearch) mixes(ranks [][]int) ladder {
	rungs := []fleet{{scenario: s.scenario, replicas: s.dearest(len(s.load[0]))}}
	most := s.alike(s.choice).last
	for len(rungs) <= most {
		next, some := rungs[len(rungs)-1], false
		for m := range ranks {
			grown, ok := s.grown(next, m, ranks[m])
			next, some = grown, some || ok
		}
		if !some {
			break
		}
		rungs = append(rungs, next)
	}
	return ladder{0, len(rungs) - 1, func(n int) fleet { return rungs[n] }}
}

// grown is a fleet with one more replica of a model; false where none fits.
func (s *fleetSearch) grown(f fleet, model int, ranks []int) (fleet, bool) {
	for _, v := range ranks {
		n := f.replicas[model][v] + 1
		if most := s.scenario.Models[model].Variants[v].Policy.Max; most >= 0 && n > most {
			continue
		}
		if more := f.but(model, v, n); s.scenario.Holds(more.replicas) {
			return more, true
		}
	}
	return f, false
}

// halfOfTheRest tells how far a search is that nobody knows the length of: each play
// counts for half of what the plays before it left.
func halfOfTheRest(tell func(float64) bool, before int) func(float64) bool {
	if tell == nil {
		return nil
	}
	return func(part float64) bool {
		left := math.Pow(0.5, float64(before))
		return tell(1 - left + left/2*part)
	}
}

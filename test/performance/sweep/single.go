package sweep

import (
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// Single is what a family gives to somebody who tunes it once and runs all cases with that
// one setting, and what ours is against it. Attainments are means over the cases, and
// costs geometric means in units of ours.
type Single struct {
	Family string
	// Policy is the setting that a person would choose: of those that attain at least as
	// much as ours over all cases the cheapest one, else the one that attains the most.
	Policy string
	// Point is what it kept and cost, and Worst what it kept on the worst case. Noise and
	// WorstNoise are their standard errors over the seeds.
	Point, Noise      front.Point
	Worst, WorstNoise float64
	// Verdict is ours against the front of the family's single settings.
	Verdict front.Verdict
}

// singleTimes is how many times as much as ours a single setting may cost on one case.
const singleTimes = 6

// Singles finds the best single setting of each family over some of the cases, by their
// places, against one of ours. It comes after Run.
func (s *Sweep) Singles(families []tuning.Family, cases []int, ours int) ([]Single, error) {
	all := s.together(cases, ours)
	focus := []float64{all.entry.Runs[0].Attainment, all.mean.Attainment}
	// The first case says where to begin; what a setting keeps and costs says all of them.
	where := tuning.Placings(all.cases[0].Trials[0])[0]
	searches := make([]*search, len(families))
	for i := range families {
		searches[i] = newSearch(&families[i], where, focus, true)
	}
	if err := s.everySingle(searches, &all); err != nil {
		return nil, err
	}
	// No floor is right for several loads.
	for _, one := range worthwhile(searches, searches, focus, hopelessTimes) {
		one.questions.Lines(one.family.Plain(), one.focus)
	}
	if err := s.everySingle(searches, &all); err != nil {
		return nil, err
	}
	singles, problems := make([]Single, len(searches)), make([]error, len(searches))
	s.each(len(searches), func(i int) { singles[i], problems[i] = s.single(searches[i], &all, focus) })
	return singles, first(problems)
}

// everySingle goes on with several searches among settings that are tried on all cases.
func (s *Sweep) everySingle(searches []*search, all *together) error {
	problems := make([]error, len(searches))
	s.each(len(searches), func(i int) {
		of := searches[i]
		problems[i] = s.walk(of.questions, func(at tuning.Place) (replay.Result, error) {
			e, err := s.tried(of.family.Policy(at, of.where), all)
			if err != nil {
				return replay.Result{}, err
			}
			return replay.Result{Attainment: e.Runs[0].Attainment, Cost: e.Runs[0].Cost}, nil
		}, func(at tuning.Place, result replay.Result, o tuning.Outcome) {
			if o.Alive() {
				of.found = append(of.found, Entry{Family: of.family.Name, Policy: of.family.Policy(at, of.where), Results: []replay.Result{result}})
			}
		})
	})
	return first(problems)
}

// single is what a search found, with all seeds.
func (s *Sweep) single(of *search, all *together, focus []float64) (Single, error) {
	repeated, err := s.repeat(judged(of.found), all, focus)
	if err != nil {
		return Single{}, err
	}
	out := Single{Family: of.family.Name, Verdict: front.Judge(all.entry, repeated)}
	if len(repeated) == 0 {
		return out, nil
	}
	best := slices.MaxFunc(repeated, func(a, b front.Entry) int { return preferred(a.Mean(), b.Mean(), all.mean.Attainment) })
	out.Policy, out.Point, out.Noise = best.Setting, best.Mean(), best.Noise()
	out.Worst, out.WorstNoise, err = s.worst(best.Setting, all.cases)
	return out, err
}

// repeat runs those settings with all seeds that are on either side of what is asked
// about, until no others come to be there.
func (s *Sweep) repeat(found []front.Entry, all *together, focus []float64) (repeated []front.Entry, err error) {
	points, done := make([]front.Point, len(found)), make([]bool, len(found))
	for i := range found {
		points[i] = found[i].Mean()
	}
	for {
		var more []int
		for _, i := range around(points, focus) {
			if !done[i] {
				more = append(more, i)
			}
		}
		if len(more) == 0 {
			return repeated, nil
		}
		for _, i := range more {
			e, err := s.everywhere(found[i].Setting, all)
			if err != nil {
				return nil, err
			}
			e.Family = found[i].Family
			repeated, points[i], done[i] = append(repeated, e), e.Mean(), true
		}
	}
}

// preferred compares two settings as a person would who has to keep so much.
func preferred(a, b front.Point, enough float64) int {
	keepsA, keepsB := a.Attainment >= enough, b.Attainment >= enough
	switch {
	case keepsA && keepsB && a.Cost < b.Cost, keepsA && !keepsB, !keepsA && !keepsB && a.Attainment > b.Attainment:
		return 1
	case a == b:
		return 0
	}
	return -1
}

// together is one of ours over some cases.
type together struct {
	cases []*Case
	entry front.Entry
	mean  front.Point
	// units are what ours costs on each case.
	units []float64
}

func (s *Sweep) together(cases []int, ours int) together {
	var t together
	var each []front.Entry
	for _, i := range cases {
		e := s.reports[i].Ours[ours].Judged()
		each = append(each, e)
		t.cases, t.units = append(t.cases, &s.options.Cases[i]), append(t.units, e.Mean().Cost)
	}
	t.entry = front.Together(each, t.units)
	t.mean = t.entry.Mean()
	return t
}

// tried is a policy on all cases with the first seed, one after another: what it cannot
// attain any more, or costs too much on one of them, ends it.
func (s *Sweep) tried(policy string, all *together) (front.Entry, error) {
	n := float64(len(all.cases))
	// missing is what it may still miss of all cases together.
	missing := n * (1 - all.mean.Attainment + interestBelow)
	each := make([]front.Entry, len(all.cases))
	for i, c := range all.cases {
		result, err := s.play(c, 0, policy, replay.Limit{Attainment: max(0, 1-missing), Cost: singleTimes * all.units[i]})
		if err != nil {
			return front.Entry{}, err
		}
		missing -= 1 - result.Attainment
		each[i] = front.Entry{Setting: policy, Runs: []front.Point{{Attainment: result.Attainment, Cost: result.Cost}}}
	}
	return front.Together(each, all.units), nil
}

// everywhere is a policy on the cases, with all seeds.
func (s *Sweep) everywhere(policy string, all *together) (front.Entry, error) {
	cases, seeds := all.cases, len(all.entry.Runs)
	each, problems := make([]front.Entry, len(cases)), make([]error, len(cases)*seeds)
	for i := range each {
		each[i] = front.Entry{Setting: policy, Runs: make([]front.Point, seeds)}
	}
	s.each(len(problems), func(k int) {
		i, seed := k/seeds, k%seeds
		result, err := s.play(cases[i], seed, policy, replay.Limit{})
		each[i].Runs[seed], problems[k] = front.Point{Attainment: result.Attainment, Cost: result.Cost}, err
	})
	if err := first(problems); err != nil {
		return front.Entry{}, err
	}
	return front.Together(each, all.units), nil
}

// worst is the least that a policy attains on any case, in the mean over the seeds, and its
// standard error.
func (s *Sweep) worst(policy string, cases []*Case) (worst, noise float64, err error) {
	worst = math.Inf(1)
	for _, c := range cases {
		e := []Entry{{Policy: policy}}
		if err := s.complete(c, e, []int{0}); err != nil {
			return 0, 0, err
		}
		if one := e[0].Judged(); one.Mean().Attainment < worst {
			worst, noise = one.Mean().Attainment, one.Noise().Attainment
		}
	}
	return worst, noise, nil
}

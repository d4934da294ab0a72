package sweep

import (
	"cmp"
	"errors"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/tuning"
)

// Options are what is swept.
type Options struct {
	Cases []Case
	// Workers is how many runs go on at the same time. It changes no result.
	Workers int
	// Progress, unless nil, is told of every run that has ended.
	Progress func(done int)
	// Stop, unless nil, is asked from time to time; with true the sweep ends with
	// replay.ErrStopped.
	Stop func() bool
}

// What is of interest: rivals that attain no less than ours by so much, and at least half of
// the requests, and cost no more than ours so many times. Without ours that attain half of
// the requests: so many times the bound.
const (
	interestBelow = 0.1
	interestTimes = 1.6
	leastInterest = 0.5
	mostOverBound = 4
	// nearFront is how much dearer than the front of the first seed another seed may make
	// cheaper, and hopelessTimes how many times as dear as the usual placing another one
	// may be before it is not tried with further families.
	nearFront     = 1.02
	hopelessTimes = 1.05
)

// Sweep is a sweep under way. Its methods may be called once each, in their order.
type Sweep struct {
	*pool
	options Options
	reports []Report
}

// New is a sweep of which nothing has run.
func New(o Options) *Sweep {
	return &Sweep{pool: newPool(o.Workers, o.Progress, o.Stop), options: o, reports: make([]Report, len(o.Cases))}
}

// Run sweeps all cases, and says of each what came of it.
func (s *Sweep) Run() ([]Report, error) {
	problems := make([]error, len(s.reports))
	s.each(len(s.reports), func(i int) { problems[i] = s.sweep(&s.options.Cases[i], &s.reports[i]) })
	return s.reports, first(problems)
}

// first is what went wrong first; that others were stopped then, or given up, is no news.
func first(problems []error) error {
	var found error
	for _, err := range problems {
		if err != nil && (found == nil || errors.Is(found, replay.ErrStopped) || hopeless(found)) {
			found = err
		}
	}
	return found
}

// sweep is one case: ours first, which say what is of interest; then the families with
// the first seed; then what came near the front with the other seeds.
func (s *Sweep) sweep(c *Case, r *Report) error {
	for _, name := range c.Ours {
		r.Ours = append(r.Ours, Entry{Family: name, Policy: name})
	}
	all := make([]int, len(r.Ours))
	for i := range all {
		all[i] = i
	}
	if err := s.complete(c, r.Ours, all); err != nil {
		return err
	}
	limit, focus := interest(c, r.Ours)
	for _, of := range []struct {
		families []tuning.Family
		found    *[]Entry
	}{{c.Rivals, &r.Rivals}, {c.Aside, &r.Aside}} {
		found, givenUp, err := s.searchAll(c, of.families, limit, focus)
		if err != nil {
			return err
		}
		*of.found = found
		r.GivenUp += givenUp
	}
	// Other seeds may show that one that was thought to be near is not, and then it is
	// another one's turn.
	for {
		more := slices.DeleteFunc(candidates(r.Rivals, c.Rivals, focus), func(i int) bool { return len(r.Rivals[i].Results) == len(c.Trials) })
		if len(more) == 0 {
			break
		}
		if err := s.complete(c, r.Rivals, more); err != nil {
			return err
		}
	}
	for i := range r.Ours {
		r.Verdicts = append(r.Verdicts, r.Verdict(i, ""))
	}
	return nil
}

// interest is which runs are worth their time, and the attainments about which is asked.
func interest(c *Case, ours []Entry) (limit replay.Limit, focus []float64) {
	limit = replay.Limit{Attainment: 1}
	for i := range ours {
		mean := ours[i].Mean()
		if mean.Attainment < leastInterest {
			continue
		}
		// The first seed alone decides what is looked at, and then all seeds judge.
		focus = append(focus, ours[i].Results[0].Attainment, mean.Attainment)
		limit.Attainment = min(limit.Attainment, max(leastInterest, mean.Attainment-interestBelow))
		limit.Cost = max(limit.Cost, interestTimes*mean.Cost)
	}
	if len(focus) == 0 {
		return replay.Limit{Attainment: leastInterest, Cost: mostOverBound * c.Trials[0].Bound(c.Startup).Cost}, nil
	}
	return limit, focus
}

// search is one family in one way of placing it.
type search struct {
	family  *tuning.Family
	where   tuning.Placing
	near    bool
	found   []Entry
	givenUp int
}

// searchAll searches several families, with the default placing from end to end. In other
// ways of placing it the first family that can be placed is searched near what is asked
// about, and the others where that comes near the front.
func (s *Sweep) searchAll(c *Case, families []tuning.Family, limit replay.Limit, focus []float64) (all []Entry, givenUp int, err error) {
	var searches []search
	placings := c.Trials[0].Placings()
	scout := slices.IndexFunc(families, func(f tuning.Family) bool { return f.Placed })
	for i := range families {
		searches = append(searches, search{family: &families[i], where: placings[0]})
	}
	for _, where := range placings[1:] {
		if scout >= 0 {
			searches = append(searches, search{family: &families[scout], where: where, near: true})
		}
	}
	if err := s.searchEach(c, searches, limit, focus); err != nil {
		return nil, 0, err
	}
	var more []search
	for k, one := range searches[len(families):] {
		if !comparable(searches[scout].found, one.found, focus) {
			continue
		}
		for i := range families {
			if i != scout && families[i].Placed {
				more = append(more, search{family: &families[i], where: placings[1+k], near: true})
			}
		}
	}
	if err := s.searchEach(c, more, limit, focus); err != nil {
		return nil, 0, err
	}
	for _, one := range slices.Concat(searches, more) {
		all = append(all, one.found...)
		givenUp += one.givenUp
	}
	return all, givenUp, nil
}

// comparable reports whether some settings are nowhere near as dear as others at an
// attainment that is asked about that nobody would try more of their kind.
func comparable(usual, other []Entry, focus []float64) bool {
	for _, f := range focus {
		best, where := front.Of(means(usual)).CostAt(min(f, front.Enough))
		cost, place := front.Of(means(other)).CostAt(min(f, front.Enough))
		if place != front.Nowhere && (place != front.Above || where == front.Above) && (where == front.Nowhere || cost <= hopelessTimes*best) {
			return true
		}
	}
	return false
}

func means(entries []Entry) []front.Point {
	points := make([]front.Point, len(entries))
	for i := range entries {
		points[i] = entries[i].Mean()
	}
	return points
}

// searchEach does several searches side by side.
func (s *Sweep) searchEach(c *Case, searches []search, limit replay.Limit, focus []float64) error {
	problems := make([]error, len(searches))
	s.each(len(searches), func(i int) { problems[i] = s.search(c, &searches[i], limit, focus) })
	return first(problems)
}

// search tries the settings of a family with the first seed.
func (s *Sweep) search(c *Case, of *search, limit replay.Limit, focus []float64) error {
	f := of.family
	questions := tuning.NewSearch(len(f.Axis), len(f.Lines), f.Start(of.where.Tests), focus)
	if of.near {
		questions = tuning.Near(len(f.Axis), len(f.Lines), f.Start(of.where.Tests), focus)
	}
	err := s.walk(questions, func(at tuning.Place) (tuning.Outcome, error) {
		result, err := s.play(c, 0, f.Policy(at, of.where), limit)
		return tuning.Outcome{Point: front.Point{Attainment: result.Attainment, Cost: result.Cost}}, err
	}, func(at tuning.Place, o tuning.Outcome) {
		if o.Alive() {
			of.found = append(of.found, Entry{Family: f.Name, Policy: f.Policy(at, of.where)})
		} else {
			of.givenUp++
		}
	})
	if err != nil {
		return err
	}
	slices.SortFunc(of.found, func(a, b Entry) int { return cmp.Compare(a.Policy, b.Policy) })
	of.found = slices.CompactFunc(of.found, func(a, b Entry) bool { return a.Policy == b.Policy })
	for i := range of.found {
		result, err := s.play(c, 0, of.found[i].Policy, limit)
		if err != nil {
			return err
		}
		of.found[i].Results = []replay.Result{result}
	}
	return nil
}

// walk answers the questions of a search until there are none. A try that was given up
// says so by its error. Each outcome is noted once, in the order of the questions.
func (s *Sweep) walk(of *tuning.Search, try func(tuning.Place) (tuning.Outcome, error), note func(tuning.Place, tuning.Outcome)) error {
	for {
		wave := of.Next()
		if len(wave) == 0 {
			return nil
		}
		outcomes, problems := make([]tuning.Outcome, len(wave)), make([]error, len(wave))
		s.each(len(wave), func(i int) { outcomes[i], problems[i] = try(wave[i]) })
		for i, at := range wave {
			outcomes[i].TooPoor, outcomes[i].TooDear = errors.Is(problems[i], replay.ErrTooPoor), errors.Is(problems[i], replay.ErrTooDear)
			if problems[i] != nil && !hopeless(problems[i]) {
				return first(problems)
			}
			of.Tell(at, outcomes[i])
			note(at, outcomes[i])
		}
	}
}

// complete runs some of the entries with all seeds, without any limit.
func (s *Sweep) complete(c *Case, entries []Entry, which []int) error {
	seeds := len(c.Trials)
	problems := make([]error, len(which)*seeds)
	for _, k := range which {
		entries[k].Results = make([]replay.Result, seeds)
	}
	s.each(len(problems), func(i int) {
		e, seed := &entries[which[i/seeds]], i%seeds
		e.Results[seed], problems[i] = s.play(c, seed, e.Policy, replay.Limit{})
	})
	return first(problems)
}

// candidates are the places of the rivals that came so near the front of all that another
// seed may put them on it, and those of each family on either side of what is asked about.
func candidates(entries []Entry, families []tuning.Family, focus []float64) []int {
	points := means(entries)
	chosen := make([]bool, len(points))
	whole := front.Of(points)
	for i, p := range points {
		cost, _ := whole.CostAt(p.Attainment)
		chosen[i] = p.Cost <= nearFront*cost
	}
	for _, f := range families {
		var own []int
		var of []front.Point
		for i := range entries {
			if entries[i].Family == f.Name {
				own, of = append(own, i), append(of, points[i])
			}
		}
		for _, i := range around(of, focus) {
			chosen[own[i]] = true
		}
	}
	var out []int
	for i := range chosen {
		if chosen[i] {
			out = append(out, i)
		}
	}
	return out
}

// around are the places of the points on the front of some on either side of each
// attainment that is asked about: two of them, or the one at the end.
func around(points []front.Point, focus []float64) []int {
	on := front.Indices(points)
	var out []int
	for _, attainment := range focus {
		attainment = min(attainment, front.Enough)
		next := slices.IndexFunc(on, func(i int) bool { return points[i].Attainment >= attainment })
		if next < 0 {
			next = len(on)
		}
		out = append(out, on[max(0, next-1):min(len(on), next+1)]...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

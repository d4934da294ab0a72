package sweep

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// Options are what is swept.
type Options struct {
	Cases []Case
	// Workers is how many runs go on at the same time. It changes no result.
	Workers int
	// Progress, unless nil, is told of every run that has ended.
	Progress func(done int)
	// Done, unless nil, is told of every case that is done, one at a time, with its place.
	// Cases are begun in their order, so that the first ones are done early.
	Done func(i int, r *Report)
	// Known are runs that were made another time, and Keep, unless nil, is told of every run
	// that is made now, from several goroutines.
	Known []Kept
	Keep  func(Kept)
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
	// cheaper, and focusWidth how far from what is asked about that matters.
	nearFront, focusWidth = 1.01, 0.01
	// hopelessTimes is how many times as dear as the best of all a family may be, with its
	// defaults but for the target, for more of it to be tried, and hopelessBelow how far
	// below what is asked about it may be so near. Of another way of placing, every family was tried with its
	// defaults before more is: misplacedTimes is how many times as dear it may be then.
	// Floors are tried of whatever is not hopeless without: on traffic in bursts they change all.
	hopelessTimes, hopelessBelow = 1.3, 0.05
	misplacedTimes               = 1.1
)

// Sweep is a sweep under way. Its methods may be called once each, in their order.
type Sweep struct {
	*pool
	options Options
	reports []Report
}

// New is a sweep of which nothing has run.
func New(o Options) *Sweep {
	s := &Sweep{pool: newPool(o.Workers, o.Progress, o.Stop), options: o, reports: make([]Report, len(o.Cases))}
	s.keep = o.Keep
	return s
}

// Run sweeps all cases, and says of each what came of it.
func (s *Sweep) Run() ([]Report, error) {
	if err := s.memo.recall(s.options.Known, s.options.Cases); err != nil {
		return nil, err
	}
	problems := make([]error, len(s.reports))
	var told sync.Mutex
	// One case more than workers: a case that waits for its last run keeps none of them idle.
	s.few(len(s.reports), max(1, s.options.Workers)+1, func(i int) {
		if problems[i] = s.sweep(&s.options.Cases[i], &s.reports[i]); problems[i] == nil && s.options.Done != nil {
			told.Lock()
			defer told.Unlock()
			s.options.Done(i, &s.reports[i])
		}
	})
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
		more := slices.DeleteFunc(candidates(r.Rivals, focus), func(i int) bool { return len(r.Rivals[i].Results) == len(c.Trials) })
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
		return replay.Limit{Attainment: leastInterest, Cost: mostOverBound * c.Trials[0].Bound().Cost}, nil
	}
	return limit, focus
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

// candidates are the places of the entries that are on the front of all, and of those so
// near it, where somebody asks, that another seed may put them there.
func candidates(entries []Entry, focus []float64) []int {
	points := means(entries)
	whole := front.Of(points)
	chosen := map[int]bool{}
	for _, i := range front.Indices(points) {
		chosen[i] = true
	}
	for i, p := range points {
		cost, _ := whole.CostAt(p.Attainment)
		asked := slices.ContainsFunc(focus, func(f float64) bool { return math.Abs(p.Attainment-f) <= focusWidth })
		if asked && p.Cost <= nearFront*cost {
			chosen[i] = true
		}
	}
	return slices.Sorted(maps.Keys(chosen))
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

package sweep

import (
	"errors"
	"maps"
	"math"
	"slices"
	"sync"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/tuning"
)

// Options are what is swept.
type Options struct {
	Cases []Case
	// Bound asks for the bound's own front, which takes seconds to find.
	Bound bool
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
	if s.options.Bound {
		s.run(func() { r.Bound = c.Trials[0].BoundFront(c.Startup) })
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
	family    *tuning.Family
	where     tuning.Placing
	questions *tuning.Search
	found     []Entry
	givenUp   int
}

func newSearch(f *tuning.Family, where tuning.Placing, focus []float64, near bool) *search {
	begin := tuning.NewSearch
	if near {
		begin = tuning.Near
	}
	return &search{family: f, where: where, questions: begin(len(f.Axis), len(f.Lines), f.Start(where.Tests), focus)}
}

// searchAll searches several families: first each with its defaults but for the target,
// from end to end unless the case says otherwise. Other ways of placing are tried by the first
// of those that come near the best of all where somebody asks, and by the others where that
// comes near; then further settings of whatever is near; and at last floors.
func (s *Sweep) searchAll(c *Case, families []tuning.Family, limit replay.Limit, focus []float64) (all []Entry, givenUp int, err error) {
	placings := c.Trials[0].Placings()
	usual := make([]*search, len(families))
	for i := range families {
		usual[i] = newSearch(&families[i], placings[0], focus, c.Near)
	}
	if err := s.searchEach(c, usual, limit); err != nil {
		return nil, 0, err
	}
	placed, err := s.searchPlaced(c, usual, placings[1:], limit, focus)
	if err != nil {
		return nil, 0, err
	}
	searched := slices.Concat(usual, placed)
	near := slices.Concat(worthwhile(usual, usual, focus, hopelessTimes), worthwhile(placed, searched, focus, misplacedTimes))
	for _, one := range near {
		one.questions.Lines(one.family.Plain(), one.focus)
	}
	if err := s.searchEach(c, searched, limit); err != nil {
		return nil, 0, err
	}
	for _, one := range worthwhile(searched, searched, focus, hopelessTimes) {
		one.questions.Floors(one.family.Plain(), one.focus)
	}
	if err := s.searchEach(c, searched, limit); err != nil {
		return nil, 0, err
	}
	for _, one := range searched {
		all = append(all, one.found...)
		givenUp += one.givenUp
	}
	return all, givenUp, nil
}

// searchPlaced searches the other ways of placing, of the families that were searched in the
// usual one.
func (s *Sweep) searchPlaced(c *Case, usual []*search, others []tuning.Placing, limit replay.Limit, focus []float64) (placed []*search, err error) {
	movable := placeable(searchesOf(worthwhile(usual, usual, focus, hopelessTimes)))
	// Where the usual placing has no room for the load it says nothing of the families.
	if len(movable) == 0 {
		movable = placeable(usual)
	}
	if len(movable) == 0 {
		return nil, nil
	}
	for _, where := range others {
		placed = append(placed, newSearch(movable[0].family, where, focus, true))
	}
	if err := s.searchEach(c, placed, limit); err != nil {
		return nil, err
	}
	var more []*search
	for _, at := range worthwhile(placed, slices.Concat(usual, placed), focus, misplacedTimes) {
		for _, one := range movable[1:] {
			more = append(more, newSearch(one.family, at.where, focus, true))
		}
	}
	return slices.Concat(placed, more), s.searchEach(c, more, limit)
}

// placeable are the searches whose family may be placed in several ways.
func placeable(searches []*search) []*search {
	return slices.DeleteFunc(slices.Clone(searches), func(one *search) bool { return !one.family.Placed })
}

// worth is a search with the attainments at which more of it may come near the best of all.
type worth struct {
	*search
	focus []float64
}

// worthwhile are the searches that found something from which other settings may come near
// the best of all where somebody asks, not so many times as dear; and those that are tried
// aside. Where nobody asks all are.
func worthwhile(searches, all []*search, focus []float64, times float64) []worth {
	var found []front.Point
	for _, one := range all {
		found = append(found, means(one.found)...)
	}
	best := front.Of(found)
	var out []worth
	for _, one := range searches {
		own, near := front.Of(means(one.found)), []float64{}
		for _, f := range focus {
			if one.family.Aside || comesNear(own, best, min(f, front.Enough), times) {
				near = append(near, f)
			}
		}
		if len(focus) == 0 {
			near = append(near, front.Enough)
		}
		if len(near) > 0 {
			out = append(out, worth{one, near})
		}
	}
	return out
}

// comesNear reports whether a front costs at most so many times what the best one does, at an
// attainment or a little below: what attains a little less may attain enough with other
// settings.
func comesNear(own, best front.Front, f, times float64) bool {
	near := func(attainment float64) bool {
		cost, place := own.CostAt(attainment)
		least, _ := best.CostAt(attainment)
		return (place == front.Within || place == front.Below) && cost <= times*least
	}
	return near(f) || slices.ContainsFunc(own, func(p front.Point) bool {
		return p.Attainment >= f-hopelessBelow && p.Attainment < f && near(p.Attainment)
	})
}

func searchesOf(all []worth) []*search {
	searches := make([]*search, len(all))
	for i := range all {
		searches[i] = all[i].search
	}
	return searches
}

func means(entries []Entry) []front.Point {
	points := make([]front.Point, len(entries))
	for i := range entries {
		points[i] = entries[i].Mean()
	}
	return points
}

// searchEach goes on with several searches side by side.
func (s *Sweep) searchEach(c *Case, searches []*search, limit replay.Limit) error {
	problems := make([]error, len(searches))
	s.each(len(searches), func(i int) { problems[i] = s.search(c, searches[i], limit) })
	return first(problems)
}

// search tries the settings of a family with the first seed.
func (s *Sweep) search(c *Case, of *search, limit replay.Limit) error {
	known := map[string]bool{}
	for i := range of.found {
		known[of.found[i].Policy] = true
	}
	return s.walk(of.questions, func(at tuning.Place) (replay.Result, error) {
		return s.play(c, 0, of.family.Policy(at, of.where), limit)
	}, func(at tuning.Place, result replay.Result, o tuning.Outcome) {
		policy := of.family.Policy(at, of.where)
		switch {
		case !o.Alive():
			of.givenUp++
		case !known[policy]:
			known[policy] = true
			of.found = append(of.found, Entry{Family: of.family.Name, Policy: policy, Results: []replay.Result{result}})
		}
	})
}

// walk answers the questions of a search until there are none. A try that was given up
// says so by its error. Each outcome is noted once, in the order of the questions.
func (s *Sweep) walk(of *tuning.Search, try func(tuning.Place) (replay.Result, error), note func(tuning.Place, replay.Result, tuning.Outcome)) error {
	for {
		wave := of.Next()
		if len(wave) == 0 {
			return nil
		}
		results, problems := make([]replay.Result, len(wave)), make([]error, len(wave))
		s.each(len(wave), func(i int) { results[i], problems[i] = try(wave[i]) })
		for i, at := range wave {
			if problems[i] != nil && !hopeless(problems[i]) {
				return first(problems)
			}
			o := tuning.Outcome{
				Point:   front.Point{Attainment: results[i].Attainment, Cost: results[i].Cost},
				TooPoor: errors.Is(problems[i], replay.ErrTooPoor), TooDear: errors.Is(problems[i], replay.ErrTooDear),
			}
			of.Tell(at, o)
			note(at, results[i], o)
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

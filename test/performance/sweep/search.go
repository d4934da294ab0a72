package sweep

import (
	"errors"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/test/performance/front"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

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
	placings := tuning.Placings(c.Trials[0])
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

package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/front"
	"llmd.ai/workload-variant-autoscaler/pkg/replay/tuning"
)

// Case is one load in one setting with one start-up time.
type Case struct {
	Name    string
	Startup time.Duration
	// Trials are the same case with one seed each.
	Trials []*replay.Trial
	// Models is how many models the scenario has.
	Models int
}

// Options are what is swept.
type Options struct {
	Cases []Case
	// Ours are the policies that are judged, as they are.
	Ours []string
	// Rivals are tuned, and judged against.
	Rivals []tuning.Family
	// Workers is how many runs go on at the same time.
	Workers int
	// Progress, unless nil, is told of every run that has ended.
	Progress func(done int)
	// Stop, unless nil, is asked from time to time; with true the sweep ends with
	// replay.ErrStopped.
	Stop func() bool
}

// Entry is one policy with one setting on one case: a result for each seed that it ran
// with.
type Entry struct {
	// Family is the policy without its settings, and Policy with them.
	Family, Policy string
	Results        []replay.Result
}

// Judged is the entry for package front.
func (e *Entry) Judged() front.Entry {
	j := front.Entry{Family: e.Family, Setting: e.Policy}
	for i := range e.Results {
		j.Runs = append(j.Runs, front.Point{Attainment: e.Results[i].Attainment, Cost: e.Results[i].Cost})
	}
	return j
}

// Mean is what it kept and cost in the mean over its seeds.
func (e *Entry) Mean() front.Point {
	j := e.Judged()
	return j.Mean()
}

// Report is what came of one case.
type Report struct {
	// Ours are the policies that were judged, in their order, and Verdicts what they are
	// against the front of all rivals.
	Ours     []Entry
	Verdicts []front.Verdict
	// Rivals are all settings that were not given up, by family and policy. Those that came
	// near the front ran with all seeds, the others with the first one.
	Rivals []Entry
	// GivenUp is how many settings were.
	GivenUp int
}

// Front are the rivals of one family, or of all with an empty name, that are on its front,
// in the order of the front.
func (r *Report) Front(family string) []Entry {
	var own []Entry
	var points []front.Point
	for i := range r.Rivals {
		if family == "" || r.Rivals[i].Family == family {
			own = append(own, r.Rivals[i])
			points = append(points, r.Rivals[i].Mean())
		}
	}
	var on []Entry
	for _, i := range front.Indices(points) {
		on = append(on, own[i])
	}
	return on
}

// What is of interest: rivals that attain no less than ours by so much, and cost no more
// than ours so many times. Without ours, half of the requests, and a multiple of the bound.
const (
	interestBelow = 0.03
	interestTimes = 1.6
	leastInterest = 0.5
	mostOverBound = 4.0
	nearFront     = 1.03
)

// Run sweeps all cases.
func Run(o Options) ([]Report, error) {
	p := newPool(o.Workers, o.Progress, o.Stop)
	reports, problems := make([]Report, len(o.Cases)), make([]error, len(o.Cases))
	p.each(len(o.Cases), func(i int) { reports[i], problems[i] = p.sweep(&o, &o.Cases[i]) })
	return reports, first(problems)
}

// first is what went wrong first; that others were stopped then is no news.
func first(problems []error) error {
	var found error
	for _, err := range problems {
		if err != nil && (found == nil || errors.Is(found, replay.ErrStopped)) {
			found = err
		}
	}
	return found
}

// sweep is one case: ours first, which say what is of interest; then the families with
// the first seed; then what came near the front with the other seeds.
func (p *pool) sweep(o *Options, c *Case) (Report, error) {
	var r Report
	for _, name := range o.Ours {
		r.Ours = append(r.Ours, Entry{Family: name, Policy: name, Results: make([]replay.Result, len(c.Trials))})
	}
	problems := make([]error, len(r.Ours)*len(c.Trials))
	p.each(len(problems), func(i int) {
		e, seed := &r.Ours[i/len(c.Trials)], i%len(c.Trials)
		e.Results[seed], problems[i] = p.play(c, seed, e.Policy, replay.Limit{})
	})
	if err := first(problems); err != nil {
		return r, err
	}
	limit, focus := interest(c, r.Ours)
	found, givenUp, problems := make([][]Entry, len(o.Rivals)), make([]int, len(o.Rivals)), make([]error, len(o.Rivals))
	p.each(len(o.Rivals), func(i int) {
		found[i], givenUp[i], problems[i] = p.search(c, &o.Rivals[i], limit, focus)
	})
	if err := first(problems); err != nil {
		return r, err
	}
	for i := range found {
		r.Rivals = append(r.Rivals, found[i]...)
		r.GivenUp += givenUp[i]
	}
	if err := p.repeat(c, r.Rivals, candidates(&r, o.Rivals, focus)); err != nil {
		return r, err
	}
	for i := range r.Ours {
		r.Verdicts = append(r.Verdicts, front.Judge(r.Ours[i].Judged(), judged(r.Rivals)))
	}
	return r, nil
}

func judged(entries []Entry) []front.Entry {
	var all []front.Entry
	for i := range entries {
		all = append(all, entries[i].Judged())
	}
	return all
}

// interest is which runs are worth their time, and the attainments about which is asked.
func interest(c *Case, ours []Entry) (limit replay.Limit, focus []float64) {
	if len(ours) == 0 {
		return replay.Limit{Attainment: leastInterest, Cost: mostOverBound * c.Trials[0].Bound(c.Startup).Cost}, nil
	}
	limit.Attainment = math.Inf(1)
	for i := range ours {
		mean := ours[i].Mean()
		focus = append(focus, mean.Attainment)
		limit.Attainment = min(limit.Attainment, mean.Attainment-interestBelow)
		limit.Cost = max(limit.Cost, interestTimes*mean.Cost)
	}
	return limit, focus
}

// search tries the settings of a family with the first seed.
func (p *pool) search(c *Case, f *tuning.Family, limit replay.Limit, focus []float64) (found []Entry, givenUp int, err error) {
	tests := make([]tuning.LoadTest, c.Models)
	for m := range tests {
		tests[m] = c.Trials[0].LoadTest(m)
	}
	s := tuning.NewSearch(len(f.Axis), len(f.Lines), f.Start(tests), focus)
	for {
		wave := s.Next()
		if len(wave) == 0 {
			break
		}
		results, problems := make([]replay.Result, len(wave)), make([]error, len(wave))
		p.each(len(wave), func(i int) {
			results[i], problems[i] = p.play(c, 0, f.Policy(wave[i], tests), limit)
		})
		for i, place := range wave {
			o := tuning.Outcome{TooPoor: errors.Is(problems[i], replay.ErrTooPoor), TooDear: errors.Is(problems[i], replay.ErrTooDear)}
			switch {
			case o.TooPoor || o.TooDear:
				givenUp++
			case problems[i] != nil:
				return nil, 0, problems[i]
			default:
				o.Point = front.Point{Attainment: results[i].Attainment, Cost: results[i].Cost}
				found = append(found, Entry{Family: f.Name, Policy: f.Policy(place, tests), Results: results[i : i+1 : i+1]})
			}
			s.Tell(place, o)
		}
	}
	slices.SortFunc(found, func(a, b Entry) int { return cmp.Compare(a.Policy, b.Policy) })
	return slices.CompactFunc(found, func(a, b Entry) bool { return a.Policy == b.Policy }), givenUp, nil
}

// candidates are the places of the rivals that came so near the front of all that another
// seed may put them on it, and those of each family on either side of what is asked about.
func candidates(r *Report, families []tuning.Family, focus []float64) []int {
	points := make([]front.Point, len(r.Rivals))
	for i := range r.Rivals {
		points[i] = r.Rivals[i].Mean()
	}
	chosen := map[int]bool{}
	whole := front.Of(points)
	for i, p := range points {
		if cost, _ := whole.CostAt(p.Attainment); p.Cost <= nearFront*cost {
			chosen[i] = true
		}
	}
	for _, f := range families {
		var own []int
		var of []front.Point
		for i := range r.Rivals {
			if r.Rivals[i].Family == f.Name {
				own, of = append(own, i), append(of, points[i])
			}
		}
		on := front.Indices(of)
		for _, attainment := range focus {
			next := slices.IndexFunc(on, func(i int) bool { return of[i].Attainment >= attainment })
			for _, k := range []int{next - 1, next} {
				if next >= 0 && k >= 0 {
					chosen[own[on[k]]] = true
				}
			}
			if n := len(on); next < 0 && n > 0 {
				chosen[own[on[n-1]]] = true
			}
		}
	}
	var out []int
	for i := range r.Rivals {
		if chosen[i] {
			out = append(out, i)
		}
	}
	return out
}

// repeat runs some of the entries with the other seeds.
func (p *pool) repeat(c *Case, entries []Entry, which []int) error {
	more := len(c.Trials) - 1
	results, problems := make([]replay.Result, len(which)*more), make([]error, len(which)*more)
	p.each(len(results), func(i int) {
		results[i], problems[i] = p.play(c, 1+i%more, entries[which[i/more]].Policy, replay.Limit{})
	})
	if err := first(problems); err != nil {
		return err
	}
	for i, k := range which {
		entries[k].Results = append(entries[k].Results, results[i*more:(i+1)*more]...)
	}
	return nil
}

// play is one run of a policy with one seed.
func (p *pool) play(c *Case, seed int, policy string, limit replay.Limit) (replay.Result, error) {
	var result replay.Result
	var err error
	p.run(func() {
		result, _, err = c.Trials[seed].Play(replay.Play{
			Policy: policy, Startup: c.Startup, Limit: limit,
			Tell: func(float64) bool { return !p.stopped() },
		})
	})
	if err != nil && !errors.Is(err, replay.ErrTooPoor) && !errors.Is(err, replay.ErrTooDear) {
		err = fmt.Errorf("%s: %w", c.Name, err)
	}
	return result, err
}

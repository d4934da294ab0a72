package autoscaling

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/performance/lesson"
	"llmd.ai/workload-variant-autoscaler/test/performance/sweep"
	"llmd.ai/workload-variant-autoscaler/test/performance/tuning"
)

// bench is what came of a run of this command.
type bench struct {
	commit string
	seeds  int
	// cases are the trials, each with each of its start-up times, reports what came of
	// them, and fronts how they are shown.
	cases   []oneCase
	reports []sweep.Report
	fronts  []sweep.Fronts
	singles []sweep.Single
	// pictured are runs with their courses.
	pictured []pictured
	claims   []claim
	// compared are the cases that docs/benchmarks.md has.
	compared []comparison
	runs     int
}

// oneCase is a trial with one start-up time.
type oneCase struct {
	trial trial
	sweep.Case
}

// firstSeed is that of the first run; the others follow. Those of lessons are so much later.
const firstSeed, lessonSeeds = 1, 1000

// judge sweeps the trials and says what they show.
func judge(o *options, chosen []trial, progress io.Writer) (b *bench, err error) {
	b = &bench{commit: o.commit, seeds: o.seeds}
	judged := ours
	if o.quick {
		judged = ours[:1]
	}
	for _, t := range chosen {
		began := time.Now()
		prepared, err := prepare(o, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		for i, startup := range t.startups {
			rivals, aside := t.families(startup, o.asked())
			b.cases = append(b.cases, oneCase{t, sweep.Case{
				Name: t.String(), Startup: startup, Trials: prepared, Ours: judged, Rivals: rivals, Aside: aside,
				Near: i > 0 || t.part == beside,
			}})
		}
		tell(progress, "%-50s ready in %s\n", t, time.Since(began).Round(time.Second))
	}
	// The most is to be known early: further start-up times come later, and days last.
	order := func(c *oneCase) int {
		place := slices.Index(c.trial.startups, c.Startup)
		if c.trial.day {
			place += len(both)
		}
		return place
	}
	slices.SortStableFunc(b.cases, func(x, y oneCase) int { return cmp.Compare(order(&x), order(&y)) })
	cases := make([]sweep.Case, len(b.cases))
	for i := range b.cases {
		cases[i] = b.cases[i].Case
	}
	log, err := openRuns(o)
	if err != nil {
		return nil, err
	}
	began, last := time.Now(), time.Now()
	s := sweep.New(sweep.Options{
		Cases: cases, Workers: o.workers, Known: log.known, Keep: log.keep(),
		Progress: func(done int) {
			b.runs = done
			if time.Since(last) >= time.Minute {
				last = time.Now()
				spent, _ := processorTime()
				tell(progress, "%d runs in %s, %s of processor\n", done, last.Sub(began).Round(time.Second), spent.Round(time.Second))
			}
		},
		Done: func(i int, r *sweep.Report) {
			fronts := r.Fronts(&cases[i])
			tell(progress, "%s is done\n%s\n", b.place(i), strings.Join(sweep.FrontTable(&fronts), "\n"))
		},
	})
	defer func() { err = errors.Join(err, log.close()) }()
	if b.reports, err = s.Run(); err != nil {
		return nil, err
	}
	for i := range b.reports {
		b.fronts = append(b.fronts, b.reports[i].Fronts(&cases[i]))
	}
	if plain, families := b.plain(); !o.quick && len(plain) > 1 && len(families) > 0 {
		if b.singles, err = s.Singles(families, plain, 0); err != nil {
			return nil, err
		}
	}
	b.claims, b.compared = claims(b), b.compare()
	return b, b.picture()
}

// plain are the places of the cases with one model and one best variant, with the first
// start-up time of each, and the families that are tuned on all of them.
func (b *bench) plain() (places []int, families []tuning.Family) {
	for i := range b.cases {
		if t := &b.cases[i].trial; t.part == single && b.cases[i].Startup == t.startups[0] {
			places = append(places, i)
			if families == nil || len(b.cases[i].Rivals) < len(families) {
				families = b.cases[i].Rivals
			}
		}
	}
	return places, families
}

// prepare makes the trial, once with each seed.
func prepare(o *options, t trial) ([]*replay.Trial, error) {
	s, err := t.scenario()
	if err != nil {
		return nil, err
	}
	return sweep.Each(o.workers, o.seeds, func(i int) (*replay.Trial, error) {
		seed := uint64(firstSeed + i)
		var counted workload.Dispersion
		with := replay.TrialOptions{Scenario: s, Startups: t.startups, Seed: seed, Trace: &counted, Source: t.source(s, o.data, seed, &counted)}
		if earlier := t.lesson(o.data, seed); earlier != nil {
			learned, err := lesson.Learn(replay.TrialOptions{Scenario: s, Startups: t.startups, Seed: seed, Source: earlier})
			if err != nil {
				return nil, err
			}
			with.Before = learned.Of
		}
		return replay.NewTrial(with)
	})
}

// source are the requests of a trial: those of its trace, or of its scenario.
func (t trial) source(s *replay.Scenario, data string, seed uint64, counted *workload.Dispersion) replay.Source {
	if t.example != "" {
		return replay.Merge(s.Sources(seed))
	}
	return func() (workload.Stream, error) { return t.trace.open(data, seed, counted) }
}

// lesson are the requests of an earlier time; nil where there are none.
func (t trial) lesson(data string, seed uint64) replay.Source {
	if t.example != "" || t.knows != learned {
		return nil
	}
	return func() (workload.Stream, error) {
		stream, err := t.trace.open(data, seed+lessonSeeds, new(workload.Dispersion))
		if err != nil {
			return nil, err
		}
		return workload.Limit(stream, lessonLength), nil
	}
}

// scenario is what the trial runs on.
func (t trial) scenario() (*replay.Scenario, error) {
	data := scenario.BuiltIn()
	if t.example != "" {
		e, known := scenario.Named(t.example)
		if !known {
			return nil, fmt.Errorf("no scenario is named %s", t.example)
		}
		data = e.Data
	}
	s, err := scenario.Parse(data, scenario.Options{Prices: t.prices, Cluster: t.cluster})
	if err == nil && t.knows == nothing {
		forget(s)
	}
	return s, err
}

// forget takes the profiles from the autoscaler, so that it has to learn them.
func forget(s *replay.Scenario) {
	for m := range s.Models {
		for v := range s.Models[m].Variants {
			s.Models[m].Variants[v].Given = serving.Profile{}
		}
	}
}

// picture keeps the courses of some runs of each case with a start-up of a minute, and of the
// others what ours kept and cost with the first seed.
func (b *bench) picture() error {
	for i := range b.cases {
		if b.cases[i].Startup != minute[0] {
			for _, e := range b.reports[i].Ours {
				b.pictured = append(b.pictured, pictured{i, report.ReplayRun{Scene: b.cases[i].Name, Result: e.Results[0]}})
			}
			continue
		}
		runs, err := b.reports[i].Pictures(&b.cases[i].Case)
		if err != nil {
			return err
		}
		for _, run := range runs {
			b.pictured = append(b.pictured, pictured{i, run})
		}
	}
	return nil
}

// pictured is one run with its course, and the place of its case.
type pictured struct {
	place int
	report.ReplayRun
}

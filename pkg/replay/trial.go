package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Trial is a scenario with a load: the requests are read, measured and bounded once, and
// any number of policies can be played on them. Playing changes nothing in it, so that
// several may play at the same time.
type Trial struct {
	scenario *Scenario
	source   Source
	requests int
	seed     uint64
	load     Load
	// choice is the cheapest variant of each model, for policies that know one alone.
	choice []int
	// serves is what one replica serves, by model, minute and variant.
	serves [][][]capacity.Rate
	bound  Bound
	// startups are those that can be played.
	startups []time.Duration
	// scatter is that of the requests, and multiplied that of the trace before.
	scatter, multiplied []workload.Index
	before              func(hybrid bool, startup time.Duration) decision.Memory
}

// TrialOptions are what a trial is made of.
type TrialOptions struct {
	Scenario *Scenario
	// Source is read once.
	Source Source
	// Before, unless nil, is what a mode of ours remembers of an earlier time. It is then
	// given no profile.
	Before func(hybrid bool, startup time.Duration) decision.Memory
	// Trace, unless nil, has counted the requests before they were multiplied, once Source
	// has been read.
	Trace *workload.Dispersion
	// Startups are the mean start-up times that can be played.
	Startups []time.Duration
	Seed     uint64
}

// NewTrial reads the requests and finds the bound.
func NewTrial(o TrialOptions) (*Trial, error) {
	s := o.Scenario
	if err := s.check(); err != nil {
		return nil, err
	}
	var counted, before workload.Dispersion
	requests, source, err := hold(o.Source.counted(&counted))
	if err != nil {
		return nil, err
	}
	if s, err = s.caching(source); err != nil {
		return nil, err
	}
	if o.Trace != nil {
		before = *o.Trace
	}
	load, err := Measure(s, source, o.Seed)
	if err != nil {
		return nil, err
	}
	t := &Trial{
		scenario: s, source: source, requests: requests, seed: o.Seed,
		load: load, choice: s.cheapest(load), startups: o.Startups,
		scatter: counted.Indexes(), multiplied: before.Indexes(), before: o.Before,
	}
	if err := t.skipLearning(); err != nil {
		return nil, err
	}
	t.serves = s.Rates(load)
	for _, startup := range o.Startups {
		if startup < 0 {
			return nil, fmt.Errorf("the start-up time is %s; expected at least 0", startup)
		}
	}
	if t.bound, err = s.bound(load, t.serves); err != nil {
		return nil, err
	}
	return t, nil
}

// skipLearning counts the requests again where the first of them do not count.
func (t *Trial) skipLearning() error {
	if t.scenario.Learning == 0 {
		return nil
	}
	t.requests = 0
	stream, err := t.source()
	if err != nil {
		return err
	}
	for {
		r, err := stream.Next()
		switch {
		case errors.Is(err, io.EOF) && t.requests == 0:
			return fmt.Errorf("no request comes after the first %s, which are for learning; expected a longer trace", t.scenario.Learning)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case r.Arrival >= t.scenario.Learning:
			t.requests++
		}
	}
}

// Scenario is what is played on. Nobody changes it.
func (t *Trial) Scenario() *Scenario { return t.scenario }

// Load is what is asked of the models.
func (t *Trial) Load() Load { return t.load }

// Choice is the cheapest variant of each model for what it serves.
func (t *Trial) Choice() []int { return t.choice }

// Rates is what one replica serves, as Scenario.Rates has it.
func (t *Trial) Rates() [][][]capacity.Rate { return t.serves }

// Requests is how many there are.
func (t *Trial) Requests() int { return t.requests }

// Bound is the bound for the requests that count.
func (t *Trial) Bound() Bound { return t.bound }

// Play is one run of a policy.
type Play struct {
	// Policy is as ParseSpec takes it.
	Policy string
	// Startup is one of those that the trial was made with.
	Startup time.Duration
	// Record keeps the course of the run.
	Record bool
	// Limit ends a run early; the zero value ends none.
	Limit Limit
	// After, unless nil, is told what ours remembers at the end.
	After func(decision.Memory)
	// Tell, unless nil, is told from time to time which part is done; with false the run
	// ends with ErrStopped.
	Tell func(part float64) bool
}

// Limit says which runs are worth no more time: those that cannot attain so much any more,
// and those that have cost more already.
type Limit struct {
	Attainment float64
	// Cost is the most that is of any interest; 0 means no limit.
	Cost float64
}

// The ends of runs that are worth no more time.
var (
	ErrTooPoor = errors.New("the run cannot attain as much as is asked for")
	ErrTooDear = errors.New("the run costs more than is asked for")
)

// Play plays one run. The recording is empty unless it was asked for.
func (t *Trial) Play(p Play) (Result, Recording, error) {
	if !slices.Contains(t.startups, p.Startup) {
		return Result{}, Recording{}, fmt.Errorf("a start-up of %s was not prepared", p.Startup)
	}
	names, err := t.scenario.PolicyNames([]string{p.Policy})
	if err != nil {
		return Result{}, Recording{}, err
	}
	one := play{Trial: t, policy: names[0], startup: p.Startup, record: p.Record, limit: p.Limit, after: p.After, tell: p.Tell}
	done := one.perform()
	return done.result, done.recording, done.err
}

package replay

import (
	"errors"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Options are what is replayed.
type Options struct {
	Scenario *Scenario
	// Source is read once.
	Source Source
	// Trace, unless nil, has counted the requests before they were multiplied, once Source
	// has been read.
	Trace *workload.Dispersion
	// Policies are as ParseSpec reads them.
	Policies []string
	// Startups are mean start-up times; every policy runs once with each.
	Startups []time.Duration
	Seed     uint64
	// Workers is how many runs go on at the same time; 0 means 1. It changes no result.
	Workers int
	// Record keeps the course of each run.
	Record bool
	// Progress, unless nil, is told how far the work is, from time to time.
	Progress func(Progress)
	// Stop, unless nil, is asked from time to time; with true the replay ends with
	// ErrStopped.
	Stop func() bool
}

// Progress is how far a replay is.
type Progress struct {
	// Policy and Startup are those of the run that told it last.
	Policy  string
	Startup time.Duration
	// Done of Total runs have ended, and Part, from 0 to 1, of all work is done.
	Done, Total int
	Part        float64
}

// ErrStopped is the end of a replay that was told to stop.
var ErrStopped = errors.New("the replay was stopped")

// Run replays the requests once for each start-up time and policy. The results are in
// that order, start-up times first, and so are the recordings, if there are any.
func Run(o Options) ([]Result, []Recording, error) {
	plays, err := prepare(&o)
	if err != nil {
		return nil, nil, err
	}
	outcomes := perform(&o, plays)
	if err := firstError(outcomes); err != nil {
		return nil, nil, err
	}
	results := make([]Result, 0, len(plays))
	var recordings []Recording
	for i := range outcomes {
		results = append(results, outcomes[i].result)
		if o.Record {
			recordings = append(recordings, outcomes[i].recording)
		}
	}
	return results, recordings, nil
}

// firstError is what went wrong first; that others were stopped then is no news.
func firstError(outcomes []performed) error {
	var first error
	for i := range outcomes {
		if err := outcomes[i].err; err != nil && (first == nil || errors.Is(first, ErrStopped)) {
			first = err
		}
	}
	return first
}

// play is one run: one policy with one start-up time.
type play struct {
	*Trial
	policy  string
	startup time.Duration
	record  bool
	limit   Limit
	after   func(decision.Memory)
	// tell is told the part that is done; it reports false when the run is to stop.
	tell func(part float64) bool
}

// performed is what became of a play.
type performed struct {
	result    Result
	recording Recording
	err       error
}

// prepare checks everything before the first request is replayed.
func prepare(o *Options) ([]play, error) {
	if err := o.Scenario.check(); err != nil {
		return nil, err
	}
	if len(o.Policies) == 0 || len(o.Startups) == 0 {
		return nil, errors.New("nothing to replay: expected at least one policy and one start-up time")
	}
	policies, err := o.Scenario.PolicyNames(o.Policies)
	if err != nil {
		return nil, err
	}
	trial, err := NewTrial(TrialOptions{Scenario: o.Scenario, Source: o.Source, Trace: o.Trace, Startups: o.Startups, Seed: o.Seed})
	if err != nil {
		return nil, err
	}
	if err := trial.allows(policies); err != nil {
		return nil, err
	}
	var plays []play
	for _, startup := range o.Startups {
		for _, name := range policies {
			plays = append(plays, play{Trial: trial, policy: name, startup: startup, record: o.Record})
		}
	}
	return plays, nil
}

// news is what a worker tells: that a play is so far, that it has ended, or that there
// are no more.
type news struct {
	play  int
	part  float64
	ended *performed
	idle  bool
}

// perform runs the plays, some at a time, until one fails. All news go through one
// channel, so that Progress and Stop are called from one place.
func perform(o *Options, plays []play) []performed {
	queue := make(chan int, len(plays))
	for i := range plays {
		queue <- i
	}
	close(queue)
	told, stop := make(chan news), make(chan struct{})
	workers := max(1, o.Workers)
	for range workers {
		go work(plays, queue, told, stop)
	}
	out, parts := make([]performed, len(plays)), make([]float64, len(plays))
	for i := range out {
		out[i].err = ErrStopped
	}
	done, stopped := 0, false
	for workers > 0 {
		n := <-told
		if n.idle {
			workers--
			continue
		}
		parts[n.play] = n.part
		if n.ended != nil {
			out[n.play] = *n.ended
			done++
		}
		if o.Progress != nil {
			o.Progress(Progress{Policy: plays[n.play].policy, Startup: plays[n.play].startup, Done: done, Total: len(plays), Part: mean(parts)})
		}
		if !stopped && (n.ended != nil && n.ended.err != nil || o.Stop != nil && o.Stop()) {
			stopped = true
			close(stop)
		}
	}
	return out
}

// work performs plays from the queue until there are none or it is to stop.
func work(plays []play, queue <-chan int, told chan<- news, stop <-chan struct{}) {
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	for i := range queue {
		if stopped() {
			break
		}
		p := plays[i]
		p.tell = func(part float64) bool {
			told <- news{play: i, part: part}
			return !stopped()
		}
		ended := p.perform()
		told <- news{play: i, part: 1, ended: &ended}
	}
	told <- news{idle: true}
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}

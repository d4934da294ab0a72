package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

const (
	// second is the beat of a run: scrapes and rounds are at whole seconds.
	second = time.Second
	// patience is how long after the last arrival requests may still end. What is not
	// done by then has failed.
	patience = 10 * time.Minute
	// told is how much of a run lies between two looks at whether it is to stop.
	told = time.Minute
)

// perform plays one run.
func (p *play) perform() performed {
	if p.policy == policyPeak {
		return p.performPeak()
	}
	policy, err := p.newPolicy()
	if err != nil {
		return performed{err: err}
	}
	own, ok := policy.(*ours)
	if ok && p.before != nil {
		own.scenario, own.memory = own.scenario.untold(), p.before(own.policy.Hybrid, p.startup)
	}
	done := p.with(policy, p.startOf(policy, p.initial()))
	if ok && p.after != nil && done.err == nil {
		p.after(own.memory)
	}
	return done
}

// drives is a policy that drives one variant of each model.
type drives interface {
	drives() (choice []int, fixed [][]int, named bool)
}

// startOf is what a run of the policy begins with. Where people name the variant that it
// drives, or what stands beside it, they begin with that: with enough of the driven one for
// the first minute, of what nothing else says.
func (p *play) startOf(policy Policy, initial [][]int) [][]int {
	own, ok := policy.(drives)
	if !ok {
		return initial
	}
	choice, fixed, named := own.drives()
	if !named {
		return initial
	}
	for m := range initial {
		for v := range initial[m] {
			variant := &p.scenario.Models[m].Variants[v]
			switch {
			case variant.Initial >= 0:
			case fixed[m][v] >= 0:
				initial[m][v] = fixed[m][v]
			case v == choice[m]:
				initial[m][v] = variant.Bounded(p.enough(m, v, fixed[m]))
			default:
				initial[m][v] = variant.Policy.Min
			}
		}
	}
	return initial
}

// enough is how many replicas of a variant serve a model's first minute, at least one, when
// so many of the other variants are there; negative is none.
func (p *play) enough(m, v int, beside []int) int {
	first := p.load[m][0]
	need := float64(first.Rate)
	for other, n := range beside {
		if n > 0 {
			need -= float64(n) * float64(p.scenario.servesOf(m, other, roundQuestion(first)))
		}
	}
	one := float64(p.scenario.servesOf(m, v, roundQuestion(first)))
	if need <= 0 || one <= 0 {
		return 1
	}
	return max(1, wanted(need, one))
}

// initial is what the scenario says. Where it says nothing, that is what the load needs before
// a replica could start.
func (p *play) initial() [][]int {
	initial := p.dearest(1 + int(p.startup/minute))
	for m := range initial {
		for v := range initial[m] {
			if given := p.scenario.Models[m].Variants[v].Initial; given >= 0 {
				initial[m][v] = given
			}
		}
	}
	return initial
}

// with plays one run with a policy.
func (p *play) with(policy Policy, initial [][]int) performed {
	s, err := newStage(p, policy, initial)
	if err == nil {
		err = s.run()
	}
	if err != nil {
		return performed{err: fmt.Errorf("policy %s with a start-up of %s: %w", p.policy, p.startup, err)}
	}
	result, recording := s.measure.finish(s)
	return performed{result: result, recording: recording}
}

// stage is a run under way.
type stage struct {
	*play
	policy    Policy
	world     *simulation.World
	collector *collector
	measure   *measure
	deal      func(workload.Request) int
	length    time.Duration
	next      time.Duration
}

func newStage(p *play, policy Policy, initial [][]int) (*stage, error) {
	s := &stage{play: p, policy: policy, length: p.load.length()}
	s.measure = newMeasure(s)
	world, err := simulation.NewWorld(simulation.WorldOptions{
		Cluster: p.scenario.Cluster, Models: p.scenario.served(initial), Drain: p.scenario.Drain, Seed: p.seed,
		Startup: simulation.Startup{Mean: p.startup, Variation: p.scenario.Variation},
		Events:  p.scenario.Events,
		Done:    s.measure.outcome, Moved: s.measure.move, Latencies: latenciesOf(policy),
	})
	if err != nil {
		return nil, err
	}
	s.world, s.collector = world, newCollector(p.scenario, world, policy)
	s.next = policy.Next(-1)
	return s, nil
}

// length is that of the trace.
func (l Load) length() time.Duration {
	var length time.Duration
	for _, m := range l[0] {
		length += m.Length
	}
	return length
}

// run replays the requests second by second.
func (s *stage) run() error {
	stream, err := s.source()
	if err != nil {
		return err
	}
	s.deal = s.scenario.dealer(stream, s.seed)
	request, err := stream.Next()
	for now := time.Duration(0); now <= s.length; now += second {
		for err == nil && request.Arrival <= now {
			if err := s.world.Arrive(simulation.Arrival{Model: s.deal(request), Request: request}); err != nil {
				return err
			}
			request, err = stream.Next()
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		s.beat(now)
		if now%told == 0 && s.tell != nil && !s.tell(min(1, now.Seconds()/s.length.Seconds())) {
			return ErrStopped
		}
		if now%told == 0 {
			if err := s.hopeless(now); err != nil {
				return err
			}
		}
	}
	s.world.Finish(s.length + patience)
	return nil
}

// hopeless says whether the run cannot keep within its limits any more.
func (s *stage) hopeless(now time.Duration) error {
	if s.limit == (Limit{}) {
		return nil
	}
	missed := float64(s.measure.requests - s.measure.met)
	switch {
	case missed > (1-s.limit.Attainment)*float64(s.Trial.requests):
		return ErrTooPoor
	case s.limit.Cost > 0 && s.measure.spent(now) > s.limit.Cost:
		return ErrTooDear
	}
	return nil
}

// beat is what happens at a whole second.
func (s *stage) beat(now time.Duration) {
	s.world.Advance(now)
	s.collector.tick(now)
	if s.next >= 0 && now >= s.next && now < s.length {
		s.decide(now)
		s.next = s.policy.Next(now)
	}
	s.measure.beat(now)
}

// decide asks the policy and does what it wants.
func (s *stage) decide(now time.Duration) {
	answer := s.policy.Decide(s.collector.view(now))
	// Whoever lowers makes room first.
	for _, lowers := range []bool{true, false} {
		for m := range answer.Replicas {
			for v, replicas := range answer.Replicas[m] {
				index := simulation.VariantIndex{Model: m, Variant: v}
				before := s.world.Wanted(index)
				if replicas == before || (replicas < before) != lowers {
					continue
				}
				var victims []string
				if answer.Victims != nil {
					victims = slices.Clone(answer.Victims[m][v])
				}
				s.measure.decision(now, index, before, replicas, answer.Plan)
				s.world.Scale(index, replicas, victims)
			}
		}
	}
}

package simulation_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// On random loads, whatever the limits: every request finishes once, tokens add
// up, service begins in order of arrival, the limits hold, and no iteration is
// idle or later than it could be.
func TestConservation(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 1))
		profile := serving.Profile{
			Base: 5, PerRequest: 0.05, PerResidentToken: 0.0001, PerPrefillToken: 0.02,
			BatchLimit: random.IntN(40), KVTokens: capacity.Tokens(random.IntN(2) * (1500 + random.IntN(8000))),
		}
		budget := 64 + random.IntN(1000)
		check := &checker{t: t, profile: profile, budget: budget}
		e := newEngine(t, simulation.Options{Profile: profile, TokenBudget: budget, Watch: check.iteration})
		var now time.Duration
		var input, output, cancelled int
		for id := range uint64(300) {
			now += time.Duration(random.ExpFloat64() * float64(30*ms))
			r := simulation.Request{ID: id, Input: 1 + random.IntN(700), Output: 1 + random.IntN(300)}
			require.NoError(t, e.Submit(now, r))
			input, output = input+r.Input, output+r.Output
			if seed%3 == 0 && random.IntN(4) == 0 {
				if e.Cancel(now, random.Uint64N(id+1)) {
					cancelled++
				}
			}
			if random.IntN(3) == 0 {
				check.events(e.Advance(now))
			}
		}
		check.events(e.Advance(now))
		check.events(finishAll(e))

		state := e.State()
		assert.Equal(t, 300-cancelled, check.finished, "seed %d: every request finishes", seed)
		assert.Zero(t, state.Running+state.Waiting+state.KVUsed, "seed %d: nothing is left", seed)
		if cancelled == 0 {
			assert.EqualValues(t, output, state.Generated, "seed %d: generated tokens", seed)
			assert.EqualValues(t, input, state.Prompted, "seed %d: prompt tokens", seed)
			assert.EqualValues(t, check.prefilled, state.Prefilled, "seed %d: prefilled tokens", seed)
			assert.EqualValues(t, check.preemptions, state.Preemptions, "seed %d: preemptions", seed)
			if state.Preemptions == 0 {
				assert.EqualValues(t, input, state.Prefilled, "seed %d: nothing is computed twice without a preemption", seed)
			}
		}
	}
}

type checker struct {
	t       *testing.T
	profile serving.Profile
	budget  int

	end         time.Duration
	prefilled   int
	finished    int
	preemptions int
	next        uint64
	first       map[uint64]bool
	last        time.Duration
}

func (c *checker) iteration(i simulation.Iteration) {
	// There are very many iterations, so the assertion only speaks when it fails.
	hold := func(ok bool, rule string) {
		if !ok {
			require.Fail(c.t, rule, "%+v", i)
		}
	}
	hold(i.Start >= c.end, "iterations do not overlap")
	hold(i.Decoding+i.Prefill > 0, "no iteration is empty")
	hold(i.Decoding+i.Prefill <= max(c.budget, i.Decoding), "the token budget holds")
	hold(c.profile.BatchLimit == 0 || i.Running <= c.profile.BatchLimit, "the batch limit holds")
	hold(c.profile.KVTokens == 0 || i.Held <= int(c.profile.KVTokens), "the KV cache holds them")
	want := c.profile.Iteration(i.Decoding, capacity.Tokens(i.Resident), capacity.Tokens(i.Prefill))
	hold(math.Abs(float64(want)-(i.End-i.Start).Seconds()*1000) < 1e-5, "it takes as long as the profile says")
	c.prefilled += i.Prefill
	c.end = i.End
}

func (c *checker) events(events []simulation.Event) {
	if c.first == nil {
		c.first = map[uint64]bool{}
	}
	for _, e := range events {
		require.GreaterOrEqual(c.t, e.At, c.last, "events are in order of time")
		c.last = e.At
		times := e.Times
		switch e.Kind {
		case simulation.FirstToken:
			require.False(c.t, c.first[e.Request.ID], "one first token")
			require.GreaterOrEqual(c.t, e.Request.ID, c.next, "service is in order of arrival")
			c.next = e.Request.ID + 1
			c.first[e.Request.ID] = true
		case simulation.Resumed:
			require.Positive(c.t, e.Gap)
		case simulation.Finished:
			require.True(c.t, c.first[e.Request.ID])
			require.LessOrEqual(c.t, times.Arrived, times.Started)
			require.Less(c.t, times.Started, times.FirstToken)
			require.LessOrEqual(c.t, times.FirstToken, times.Finished)
			c.finished++
			c.preemptions += times.Preemptions
		}
	}
}

// A server with work to do is never idle: each iteration begins where the one
// before ended, or when a request came to an idle server.
func TestWorkConserving(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	var iterations []simulation.Iteration
	e := newEngine(t, simulation.Options{
		Profile: serving.Profile{Base: 8, PerRequest: 0.1, BatchLimit: 16, KVTokens: 4000},
		Watch:   func(i simulation.Iteration) { iterations = append(iterations, i) },
	})
	arrivals := map[time.Duration]bool{}
	var now time.Duration
	for id := range uint64(500) {
		now += time.Duration(random.ExpFloat64() * float64(100*ms))
		arrivals[now] = true
		require.NoError(t, e.Submit(now, simulation.Request{ID: id, Input: 1 + random.IntN(300), Output: 1 + random.IntN(60)}))
	}
	finishAll(e)
	idle := 0
	for i := 1; i < len(iterations); i++ {
		if iterations[i].Start != iterations[i-1].End {
			idle++
			require.True(t, arrivals[iterations[i].Start], "it begins with an arrival")
		}
	}
	assert.Positive(t, idle, "the load leaves pauses, or the test shows nothing")
}

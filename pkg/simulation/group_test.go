package simulation_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// behind is an engine or several.
type behind interface {
	Submit(now time.Duration, r simulation.Request) error
	Advance(now time.Duration) []simulation.Event
	Next() (end time.Duration, ok bool)
}

func newGroup(t testing.TB, o simulation.Options, engines int) *simulation.Group {
	t.Helper()
	g, err := simulation.NewGroup(o, engines)
	require.NoError(t, err)
	return g
}

// arrival is a request at its time.
type arrival struct {
	at time.Duration
	simulation.Request
}

// play submits the requests in their order and returns all that happens.
func play(t testing.TB, b behind, arrivals []arrival) (events []simulation.Event) {
	t.Helper()
	for _, a := range arrivals {
		events = append(events, b.Advance(a.at)...)
		require.NoError(t, b.Submit(a.at, a.Request))
	}
	for {
		end, ok := b.Next()
		if !ok {
			return events
		}
		events = append(events, b.Advance(end)...)
	}
}

func drawn(seed uint64, count int) (all []arrival) {
	random := rand.New(rand.NewPCG(seed, 7))
	var now time.Duration
	for id := range uint64(count) {
		now += time.Duration(random.ExpFloat64() * float64(20*ms))
		all = append(all, arrival{now, simulation.Request{ID: id, Input: 1 + random.IntN(700), Output: 1 + random.IntN(200)}})
	}
	return all
}

func TestAGroupOfOneIsTheEngine(t *testing.T) {
	for seed := range uint64(10) {
		o := simulation.Options{Profile: serving.Profile{Base: 5, PerRequest: 0.05, PerPrefillToken: 0.02, BatchLimit: 12, KVTokens: 5000}, TokenBudget: 512}
		arrivals := drawn(seed, 200)
		assert.Equal(t, play(t, newEngine(t, o), arrivals), play(t, newGroup(t, o, 1), arrivals), "seed %d", seed)
	}
}

// Two engines of 10 ms and 1 ms per 10 prompt tokens, one request at a time.
func TestRequestsAreDividedByLoad(t *testing.T) {
	o := simulation.Options{Profile: serving.Profile{Base: 10, PerPrefillToken: 0.1, BatchLimit: 1}}
	g := newGroup(t, o, 2)
	// The first two have an engine each. The third waits behind the first, so that the
	// fourth goes to the second.
	events := play(t, g, []arrival{
		{0, simulation.Request{ID: 1, Input: 100, Output: 2}},
		{0, simulation.Request{ID: 2, Input: 100, Output: 1}},
		{1 * ms, simulation.Request{ID: 3, Input: 300, Output: 1}},
		{2 * ms, simulation.Request{ID: 4, Input: 100, Output: 1}},
	})
	const first, finished = simulation.FirstToken, simulation.Finished
	assert.Equal(t, []happening{
		{first, 1, 20 * ms}, {first, 2, 20 * ms}, {finished, 2, 20 * ms},
		{finished, 1, 30 * ms}, {first, 4, 40 * ms}, {finished, 4, 40 * ms},
		{first, 3, 70 * ms}, {finished, 3, 70 * ms},
	}, happenings(events))
}

// shared is a profile of two engines that share experts: 10 ms, 1 ms per token computed
// and 100 ms for all experts, of which every token uses all.
func shared() serving.Profile {
	return serving.Profile{
		Form: serving.Overlapped, Overhead: 10, PerExchanged: 1, Base: 1e-9,
		Experts: serving.ExpertTimes{Reading: 100, Share: 1, Engines: 2},
	}
}

func TestEnginesThatShareExpertsGoTogether(t *testing.T) {
	var iterations []simulation.Iteration
	o := simulation.Options{Profile: shared(), Watch: func(i simulation.Iteration) { iterations = append(iterations, i) }}
	events := play(t, newGroup(t, o, 2), []arrival{
		{0, simulation.Request{ID: 1, Input: 40, Output: 2}},
		{0, simulation.Request{ID: 2, Input: 10, Output: 3}},
		{1 * ms, simulation.Request{ID: 3, Input: 5, Output: 1}},
	})
	const first, finished = simulation.FirstToken, simulation.Finished
	// 110 ms and the 40 tokens of the first engine; then the third request's 5 and the
	// decoded token beside it; then the second's last one alone.
	assert.Equal(t, []happening{
		{first, 1, 150 * ms}, {first, 2, 150 * ms},
		{finished, 1, 266 * ms}, {first, 3, 266 * ms}, {finished, 3, 266 * ms},
		{finished, 2, 377 * ms},
	}, happenings(events))
	for _, i := range iterations {
		assert.Contains(t, []time.Duration{150 * ms, 116 * ms, 111 * ms}, i.End-i.Start)
	}
	assert.Len(t, iterations, 5, "the idle engine has none")
}

// 10 ms, and 1 ms for each token that moves to an engine that did not compute it.
func TestTheEngineWithTheFewestTokensWaitsForTheMost(t *testing.T) {
	profile := shared()
	profile.PerExchanged, profile.Experts.Reading, profile.Experts.PerExchanged = 0, 1e-9, 1
	group := newGroup(t, simulation.Options{Profile: profile}, 2)
	events := play(t, group, []arrival{
		{0, simulation.Request{ID: 1, Input: 40, Output: 2}},
		{0, simulation.Request{ID: 2, Input: 10, Output: 2}},
	})
	const first, finished = simulation.FirstToken, simulation.Finished
	assert.Equal(t, []happening{
		// The 40 of the first engine move to the second, which is longer than the way of its 10.
		{first, 1, 50 * ms}, {first, 2, 50 * ms},
		{finished, 1, 61 * ms}, {finished, 2, 61 * ms},
	}, happenings(events))
}

func TestAGroupLosesNothing(t *testing.T) {
	for name, profile := range map[string]serving.Profile{
		"each for itself": {Base: 5, PerRequest: 0.05, PerPrefillToken: 0.02, BatchLimit: 8, KVTokens: 3000},
		"together": {
			Form: serving.Overlapped, Base: 5, PerPrefillToken: 0.02, BatchLimit: 8, KVTokens: 3000,
			Experts: serving.ExpertTimes{Reading: 3, Share: 0.1, Engines: 3, PerToken: 0.01, PerExchanged: 0.001},
		},
	} {
		for seed := range uint64(10) {
			arrivals, finished := drawn(seed, 150), map[uint64]bool{}
			events := play(t, newGroup(t, simulation.Options{Profile: profile, TokenBudget: 300}, 3), arrivals)
			var last time.Duration
			for _, e := range events {
				assert.GreaterOrEqual(t, e.At, last, "%s, seed %d: in order of time", name, seed)
				last = e.At
				if e.Kind == simulation.Finished {
					assert.False(t, finished[e.Request.ID], "%s, seed %d: %d finishes once", name, seed, e.Request.ID)
					finished[e.Request.ID] = true
					assert.GreaterOrEqual(t, e.Times.Started, arrivals[e.Request.ID].at)
				}
			}
			assert.Len(t, finished, len(arrivals), "%s, seed %d", name, seed)
			assert.Equal(t, events, play(t, newGroup(t, simulation.Options{Profile: profile, TokenBudget: 300}, 3), arrivals), "the same again")
		}
	}
}

func TestGroupsThatCannotBe(t *testing.T) {
	linear := shared()
	linear.Form = serving.Linear
	odd := shared()
	odd.Experts.Share = 1.5
	for name, c := range map[string]struct {
		profile serving.Profile
		engines int
		want    string
	}{
		"none":                 {plain, 0, "0 engines behind one address; expected at least 1"},
		"another number":       {shared(), 3, "3 engines behind one address with a profile of 2 that share experts"},
		"no experts":           {linear, 2, "a form that has none"},
		"more than all":        {odd, 2, "no share between 0 and 1"},
		"an unknown profile":   {serving.Profile{}, 2, "no base time"},
		"a negative one":       {serving.Profile{Base: 1, Experts: serving.ExpertTimes{Reading: -1}}, 1, "a negative time"},
		"a negative way":       {serving.Profile{Base: 1, Experts: serving.ExpertTimes{PerExchanged: -1}}, 1, "a negative time"},
		"a negative operation": {serving.Profile{Base: 1, Experts: serving.ExpertTimes{PerToken: -1}}, 1, "a negative time"},
	} {
		_, err := simulation.NewGroup(simulation.Options{Profile: c.profile}, c.engines)
		assert.ErrorContains(t, err, c.want, name)
	}
	g := newGroup(t, simulation.Options{Profile: serving.Profile{Base: 1, KVTokens: capacity.Tokens(10)}}, 2)
	assert.ErrorContains(t, g.Submit(0, simulation.Request{Input: 10, Output: 2}), "the server has 10")
}

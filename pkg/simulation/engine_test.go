package simulation_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

const ms = time.Millisecond

// plain is a profile whose times can be added up by hand: 10 ms per iteration, 1
// ms per decoding request and 1 ms per 10 prompt tokens.
var plain = serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1}

func newEngine(t testing.TB, o simulation.Options) *simulation.Engine {
	t.Helper()
	e, err := simulation.NewEngine(o)
	require.NoError(t, err)
	return e
}

// happening is an event without what is not looked at.
type happening struct {
	kind simulation.Kind
	id   uint64
	at   time.Duration
}

// finishAll advances until the engine is idle.
func finishAll(e *simulation.Engine) (events []simulation.Event) {
	for {
		end, ok := e.Next()
		if !ok {
			return events
		}
		events = append(events, e.Advance(end)...)
	}
}

func happenings(events []simulation.Event) (all []happening) {
	for _, e := range events {
		all = append(all, happening{e.Kind, e.Request.ID, e.At})
	}
	return all
}

func TestHandComputed(t *testing.T) {
	type arrival struct {
		at            time.Duration
		input, output int
	}
	const first, resumed, finished = simulation.FirstToken, simulation.Resumed, simulation.Finished
	for name, c := range map[string]struct {
		profile  serving.Profile
		budget   int
		arrivals []arrival
		want     []happening
	}{
		"one request: prefill 10+10, then two decodes of 11": {
			profile:  plain,
			arrivals: []arrival{{5 * ms, 100, 3}},
			want:     []happening{{first, 1, 25 * ms}, {finished, 1, 47 * ms}},
		},
		"a request of one token ends with its prompt": {
			profile:  plain,
			arrivals: []arrival{{0, 100, 1}},
			want:     []happening{{first, 1, 20 * ms}, {finished, 1, 20 * ms}},
		},
		"two that arrive together share the first iteration": {
			profile:  plain,
			arrivals: []arrival{{0, 100, 2}, {0, 200, 2}},
			// prefill 10+30, then both decode: 10+2
			want: []happening{{first, 1, 40 * ms}, {first, 2, 40 * ms}, {finished, 1, 52 * ms}, {finished, 2, 52 * ms}},
		},
		"one that arrives during an iteration waits for its end": {
			profile:  plain,
			arrivals: []arrival{{0, 100, 2}, {1 * ms, 100, 1}},
			// 10+10, then one decodes beside 100 prompt tokens: 10+1+10
			want: []happening{{first, 1, 20 * ms}, {finished, 1, 41 * ms}, {first, 2, 41 * ms}, {finished, 2, 41 * ms}},
		},
		"a prompt above the budget takes several iterations": {
			profile:  plain,
			budget:   100,
			arrivals: []arrival{{0, 250, 1}},
			want:     []happening{{first, 1, 55 * ms}, {finished, 1, 55 * ms}},
		},
		"decoding comes out of the budget first, prompts in order get the rest": {
			profile: plain,
			budget:  100,
			// 1: [0,20) prefill 100. 2 and 3 wait for that. [20,41) 1 decodes, 99 of 2 (9.9):
			// 20.9 -> 40.9. [40.9, ...) 1 decodes its last, 1 of 2 and 98 of 3: 10+1+9.9 -> 61.8.
			// then 2 decodes beside the last 2 of 3: 10+1+0.2 -> 73.
			arrivals: []arrival{{0, 100, 3}, {10 * ms, 100, 2}, {10 * ms, 100, 1}},
			want: []happening{
				{first, 1, 20 * ms},
				{finished, 1, 61800 * time.Microsecond},
				{first, 2, 61800 * time.Microsecond},
				{finished, 2, 73 * ms},
				{first, 3, 73 * ms},
				{finished, 3, 73 * ms},
			},
		},
		"the batch limit makes the second wait": {
			profile:  serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1, BatchLimit: 1},
			arrivals: []arrival{{0, 100, 2}, {0, 100, 1}},
			want:     []happening{{first, 1, 20 * ms}, {finished, 1, 31 * ms}, {first, 2, 51 * ms}, {finished, 2, 51 * ms}},
		},
		"a prompt that does not fit beside what is held waits, and nobody overtakes it": {
			profile:  serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1, KVTokens: 200},
			arrivals: []arrival{{0, 100, 2}, {0, 150, 1}, {0, 10, 1}},
			// 1 alone: 20, 31. Then 2 and 3 together: 10+16.
			want: []happening{
				{first, 1, 20 * ms},
				{finished, 1, 31 * ms},
				{first, 2, 57 * ms},
				{finished, 2, 57 * ms},
				{first, 3, 57 * ms},
				{finished, 3, 57 * ms},
			},
		},
		"when decoding overflows the cache the youngest is computed again": {
			profile:  serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1, KVTokens: 204},
			arrivals: []arrival{{0, 100, 4}, {0, 100, 4}},
			// [0,30) both prompts. [30,42) and [42,54) both decode: 204 tokens, 3 of 4
			// generated. One more each does not fit: 2 goes back. [54,65) 1 decodes its
			// last. [65,85.3) 2 computes 100+3 again and has its last token.
			want: []happening{
				{first, 1, 30 * ms},
				{first, 2, 30 * ms},
				{finished, 1, 65 * ms},
				{resumed, 2, 85300 * time.Microsecond},
				{finished, 2, 85300 * time.Microsecond},
			},
		},
		"resident tokens slow decoding down": {
			profile:  serving.Profile{Base: 10, PerResidentToken: 0.1},
			arrivals: []arrival{{0, 100, 3}},
			// 10, then 10+10.1 and 10+10.2
			want: []happening{{first, 1, 10 * ms}, {finished, 1, 50300 * time.Microsecond}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t, simulation.Options{Profile: c.profile, TokenBudget: c.budget})
			var events []simulation.Event
			for i, a := range c.arrivals {
				require.NoError(t, e.Submit(a.at, simulation.Request{ID: uint64(i + 1), Input: a.input, Output: a.output}))
			}
			events = append(events, e.Advance(0)...)
			events = append(events, finishAll(e)...)
			assert.Equal(t, c.want, happenings(events))
			assert.Zero(t, e.State().KVUsed, "all places are given back")
		})
	}
}

func TestTimesOfARequest(t *testing.T) {
	e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10, PerRequest: 1, PerPrefillToken: 0.1, KVTokens: 204}})
	require.NoError(t, e.Submit(5*ms, simulation.Request{ID: 1, Input: 100, Output: 4}))
	require.NoError(t, e.Submit(5*ms, simulation.Request{ID: 2, Input: 100, Output: 4}))
	var last, resumed simulation.Event
	for _, event := range finishAll(e) {
		last = event
		if event.Kind == simulation.Resumed {
			resumed = event
		}
	}
	assert.Equal(t, simulation.Times{
		Arrived: 5 * ms, Started: 5 * ms, FirstToken: 35 * ms, Finished: 90300 * time.Microsecond, Preemptions: 1,
	}, last.Times)
	assert.Equal(t, (85300-54000)*time.Microsecond, resumed.Gap, "since its third token")
	counts := e.State().Counts
	assert.Equal(t, uint64(8), counts.Generated)
	assert.Equal(t, uint64(200), counts.Prompted, "each prompt once")
	assert.Equal(t, uint64(303), counts.Prefilled, "and what was computed again")
}

// One late look at the engine must see the same as many timely ones.
func TestAdvanceCatchesUp(t *testing.T) {
	play := func(step time.Duration) []happening {
		e := newEngine(t, simulation.Options{Profile: plain, TokenBudget: 256})
		var all []happening
		for i := range 50 {
			at := time.Duration(i) * 7 * ms
			for now := at - 7*ms + step; now < at; now += step {
				all = append(all, happenings(e.Advance(now))...)
			}
			require.NoError(t, e.Submit(at, simulation.Request{ID: uint64(i), Input: 90 + i, Output: 5}))
		}
		return append(all, happenings(append(e.Advance(time.Hour), finishAll(e)...))...)
	}
	assert.Equal(t, play(7*ms), play(time.Millisecond/3))
}

func TestStateBetweenCalls(t *testing.T) {
	e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10, KVTokens: 1000, BatchLimit: 1}})
	assert.Equal(t, simulation.State{KVCapacity: 1000}, e.State())
	_, busy := e.Next()
	assert.False(t, busy)

	require.NoError(t, e.Submit(0, simulation.Request{ID: 1, Input: 100, Output: 2}))
	require.NoError(t, e.Submit(0, simulation.Request{ID: 2, Input: 100, Output: 2}))
	assert.Equal(t, 2, e.State().Waiting, "the iteration has not begun")
	end, busy := e.Next()
	assert.True(t, busy)
	assert.Equal(t, 10*ms, end)
	state := e.State()
	assert.Equal(t, []int{1, 1, 100}, []int{state.Running, state.Waiting, state.KVUsed})
	assert.Empty(t, e.Advance(end-1))
	assert.Len(t, e.Advance(end), 1)
	assert.Empty(t, e.Advance(end), "events are handed out once")
}

func TestCancel(t *testing.T) {
	submit := func(e *simulation.Engine, ids ...uint64) {
		for _, id := range ids {
			require.NoError(t, e.Submit(0, simulation.Request{ID: id, Input: 100, Output: 3}))
		}
	}
	t.Run("while it waits", func(t *testing.T) {
		e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10, BatchLimit: 1}})
		submit(e, 1, 2, 3)
		e.Advance(ms)
		assert.True(t, e.Cancel(2*ms, 2))
		assert.Equal(t, []happening{
			{simulation.FirstToken, 1, 10 * ms},
			{simulation.Finished, 1, 30 * ms},
			{simulation.FirstToken, 3, 40 * ms},
			{simulation.Finished, 3, 60 * ms},
		}, happenings(finishAll(e)))
	})
	t.Run("while its prompt is computed", func(t *testing.T) {
		e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10}, TokenBudget: 150})
		submit(e, 1, 2)
		e.Advance(ms)
		assert.Equal(t, 200, e.State().KVUsed)
		assert.True(t, e.Cancel(2*ms, 2))
		assert.Equal(t, 100, e.State().KVUsed)
		assert.Len(t, finishAll(e), 2)
		assert.Zero(t, e.State().KVUsed)
	})
	t.Run("while it decodes", func(t *testing.T) {
		e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10}})
		submit(e, 1, 2)
		e.Advance(15 * ms)
		assert.Equal(t, 202, e.State().KVUsed)
		assert.True(t, e.Cancel(16*ms, 1))
		assert.Equal(t, 101, e.State().KVUsed)
		assert.Equal(t, []happening{{simulation.Finished, 2, 30 * ms}}, happenings(finishAll(e)))
		assert.Zero(t, e.State().KVUsed)
	})
	t.Run("the only one", func(t *testing.T) {
		e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10}})
		submit(e, 1)
		e.Advance(15 * ms)
		assert.True(t, e.Cancel(16*ms, 1))
		assert.Empty(t, finishAll(e))
		assert.False(t, e.Cancel(17*ms, 1), "it is gone")
	})
}

func TestRefusals(t *testing.T) {
	for name, o := range map[string]simulation.Options{
		"no base time":          {Profile: serving.Profile{PerRequest: 1}},
		"a negative time":       {Profile: serving.Profile{Base: 1, PerPrefillToken: -1}},
		"a negative budget":     {Profile: plain, TokenBudget: -1},
		"a negative batch":      {Profile: serving.Profile{Base: 1, BatchLimit: -1}},
		"a negative cache size": {Profile: serving.Profile{Base: 1, KVTokens: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := simulation.NewEngine(o)
			assert.Error(t, err)
		})
	}
	e := newEngine(t, simulation.Options{Profile: serving.Profile{Base: 10, KVTokens: 100}})
	assert.Error(t, e.Submit(0, simulation.Request{Input: 0, Output: 1}))
	assert.Error(t, e.Submit(0, simulation.Request{Input: 1, Output: 0}))
	assert.ErrorContains(t, e.Submit(0, simulation.Request{Input: 90, Output: 12}), "needs 101 tokens of KV cache; the server has 100")
	assert.NoError(t, e.Submit(0, simulation.Request{Input: 90, Output: 11}), "the last token needs no place")
	assert.Len(t, finishAll(e), 2)
}

// 10 ms per iteration, 1 ms per decoding request and 1 ms per 10 prompt tokens, with requests
// that come while others are served.
func TestAnEngineThatChoosesAhead(t *testing.T) {
	const first, finished = simulation.FirstToken, simulation.Finished
	for name, c := range map[string]struct {
		budget   int
		arrivals []arrival
		want     []happening
	}{
		"an engine that serves nobody chooses at once": {
			arrivals: []arrival{{5 * ms, simulation.Request{ID: 1, Input: 100, Output: 1}}, {40 * ms, simulation.Request{ID: 2, Input: 100, Output: 1}}},
			want:     []happening{{first, 1, 25 * ms}, {finished, 1, 25 * ms}, {first, 2, 60 * ms}, {finished, 2, 60 * ms}},
		},
		"who comes during an iteration waits for the end of the next one": {
			arrivals: []arrival{{0, simulation.Request{ID: 1, Input: 100, Output: 3}}, {1 * ms, simulation.Request{ID: 2, Input: 100, Output: 1}}},
			// 10+10, then the first alone, 10+1, and then both: 10+1+10
			want: []happening{{first, 1, 20 * ms}, {finished, 1, 52 * ms}, {first, 2, 52 * ms}, {finished, 2, 52 * ms}},
		},
		"who comes as an iteration begins is in the next one": {
			arrivals: []arrival{
				{0, simulation.Request{ID: 1, Input: 100, Output: 3}},
				{20 * ms, simulation.Request{ID: 2, Input: 100, Output: 1}},
			},
			want: []happening{{first, 1, 20 * ms}, {finished, 1, 52 * ms}, {first, 2, 52 * ms}, {finished, 2, 52 * ms}},
		},
		"when the last one has left, nobody waits": {
			arrivals: []arrival{{0, simulation.Request{ID: 1, Input: 100, Output: 1}}, {1 * ms, simulation.Request{ID: 2, Input: 100, Output: 1}}},
			want:     []happening{{first, 1, 20 * ms}, {finished, 1, 20 * ms}, {first, 2, 40 * ms}, {finished, 2, 40 * ms}},
		},
		"what was begun goes on at once": {
			budget:   100,
			arrivals: []arrival{{0, simulation.Request{ID: 1, Input: 250, Output: 1}}},
			want:     []happening{{first, 1, 55 * ms}, {finished, 1, 55 * ms}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			events := play(t, newEngine(t, simulation.Options{Profile: plain, TokenBudget: c.budget, Ahead: true}), c.arrivals)
			assert.Equal(t, c.want, happenings(events))
		})
	}
}

// An engine that chooses ahead loses nothing, and its first tokens come later.
func TestChoosingAheadDelaysFirstTokens(t *testing.T) {
	o := simulation.Options{Profile: serving.Profile{Base: 5, PerPrefillToken: 0.02}, TokenBudget: 1 << 20}
	ahead := o
	ahead.Ahead = true
	for seed := range uint64(10) {
		arrivals := drawn(seed, 200)
		at := func(o simulation.Options) (firsts map[uint64]time.Duration, finished int) {
			firsts = map[uint64]time.Duration{}
			for _, e := range play(t, newEngine(t, o), arrivals) {
				switch e.Kind {
				case simulation.FirstToken:
					firsts[e.Request.ID] = e.At - e.Times.Arrived
				case simulation.Finished:
					finished++
				case simulation.Resumed:
				}
			}
			return firsts, finished
		}
		soon, all := at(o)
		late, same := at(ahead)
		assert.Equal(t, len(arrivals), all)
		assert.Equal(t, len(arrivals), same)
		var sum time.Duration
		for id := range soon {
			sum += late[id] - soon[id]
		}
		assert.Greater(t, sum/time.Duration(len(arrivals)), 4*ms, "seed %d: nearly an iteration in the mean", seed)
	}
}

package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// conversations are requests of which many begin as an earlier one does, and some are one
// again.
func conversations(random *rand.Rand, count, block, most int) []Request {
	var all []Request
	next := uint64(1)
	for id := range uint64(count) {
		if id > 0 && random.IntN(10) == 0 {
			again := all[random.IntN(len(all))]
			again.ID = id
			all = append(all, again)
			continue
		}
		var numbers []uint64
		if len(all) > 0 && random.IntN(3) > 0 {
			before := all[max(0, len(all)-1-random.IntN(20))].Prompt
			if full := before.Blocks() - 1; full > 0 {
				numbers = slices.Clone(before.Numbers[:1+random.IntN(full)])
			}
		}
		for range 1 + random.IntN(most) {
			numbers = append(numbers, next)
			next++
		}
		input := block*(len(numbers)-1) + 1 + random.IntN(block)
		all = append(all, Request{ID: id, Input: input, Output: 1 + random.IntN(40), Prompt: &workload.Prompt{Block: block, Numbers: numbers}})
	}
	return all
}

// let is a block that was let go.
type let struct {
	number uint64
	tokens int
}

// slowCache is the prefix cache of a server that serves one request after the other, as
// one would write it down: a list of what was let go, the first one first.
type slowCache struct {
	size int
	list []let
}

// serve returns how many tokens of the request are found.
func (c *slowCache) serve(r Request) (found int) {
	var own []let
	for i, number := range r.Prompt.Numbers {
		tokens := min(r.Prompt.Block, r.Input-i*r.Prompt.Block)
		at := slices.IndexFunc(c.list, func(l let) bool { return l.number == number })
		if at < 0 || found < i*r.Prompt.Block {
			own = append(own, let{number, tokens})
			continue
		}
		own = append(own, c.list[at])
		found += tokens
		c.list = slices.Delete(c.list, at, at+1)
	}
	// At its last token the request has all its places.
	left := 0
	for _, l := range c.list {
		left += l.tokens
	}
	for left > c.size-(r.Input+r.Output-1) {
		left -= c.list[0].tokens
		c.list = c.list[1:]
	}
	slices.Reverse(own)
	c.list = append(c.list, own...)
	return min(found, r.Input-1)
}

func TestHitsAgainstASlowReference(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 3))
		requests := conversations(random, 150, 16, 8)
		size := 600 + random.IntN(3000)
		for _, r := range requests {
			size = max(size, r.Input+r.Output-1)
		}
		e, err := NewEngine(Options{Profile: serving.Profile{Base: 1, KVTokens: capacity.Tokens(size)}, TokenBudget: 64, PrefixCache: true})
		require.NoError(t, err)
		slow := &slowCache{size: size}
		var now time.Duration
		total := uint64(0)
		for i, r := range requests {
			require.NoError(t, e.Submit(now, r))
			for {
				end, ok := e.Next()
				if !ok {
					break
				}
				e.Advance(end)
				now = end
			}
			total += uint64(slow.serve(r))
			require.Equal(t, total, e.State().Found, "seed %d, request %d", seed, i)
		}
		require.Positive(t, total)
		assert.Equal(t, e.State().Prompted, e.State().Prefilled+e.State().Found, "every token is computed or found")
	}
}

// On random loads of many requests at a time, the books are right after every iteration:
// what is held is what requests hold, shared blocks once, and what is kept beside it fits.
func TestTheBooksOfThePrefixCache(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 4))
		requests := conversations(random, 200, 16, 10)
		size := 800 + random.IntN(3000)
		for _, r := range requests {
			size = max(size, r.Input+r.Output-1)
		}
		// A trace may be wrong.
		for i := range requests {
			if numbers := requests[i].Prompt.Numbers; i%20 == 0 {
				repeated := slices.Clone(numbers)
				repeated[len(repeated)-1] = repeated[0]
				requests[i].Prompt = &workload.Prompt{Block: 16, Numbers: repeated}
			}
		}
		var e *Engine
		check := func(Iteration) { books(t, e) }
		e, err := NewEngine(Options{
			Profile:     serving.Profile{Base: 5, PerPrefillToken: 0.02, KVTokens: capacity.Tokens(size), BatchLimit: 1 + random.IntN(20)},
			TokenBudget: 32 + random.IntN(300), PrefixCache: true, Watch: check,
		})
		require.NoError(t, err)
		var now time.Duration
		finished := 0
		count := func(events []Event) {
			for _, event := range events {
				if event.Kind == Finished {
					finished++
				}
			}
		}
		cancelled := 0
		for _, r := range requests {
			now += time.Duration(random.ExpFloat64() * float64(20*time.Millisecond))
			count(e.Advance(now))
			require.NoError(t, e.Submit(now, r))
			if random.IntN(10) == 0 && e.Cancel(now, random.Uint64N(r.ID+1)) {
				cancelled++
			}
		}
		for {
			end, ok := e.Next()
			if !ok {
				break
			}
			count(e.Advance(end))
		}
		assert.Equal(t, len(requests), finished+cancelled, "seed %d", seed)
		assert.Zero(t, e.State().KVUsed, "seed %d: nothing is held", seed)
		assert.Positive(t, e.State().Found, "seed %d", seed)
		if cancelled == 0 && e.State().Preemptions == 0 {
			assert.Equal(t, e.State().Prompted, e.State().Prefilled+e.State().Found, "seed %d", seed)
		}
		e.drop(func(Request) {})
		assert.Empty(t, e.prefix.blocks)
	}
}

// books counts again what the engine counts as it goes.
func books(t *testing.T, e *Engine) {
	t.Helper()
	own, held := 0, map[*block]int{}
	for i, s := range e.running {
		place := s.target
		if i < e.decoding {
			place = s.request.Input + s.request.Output - int(s.finish-e.step) - 1
		}
		sharing := 0
		for _, b := range s.kept {
			held[b]++
			sharing += b.tokens
		}
		require.Equal(t, sharing, s.sharing)
		require.LessOrEqual(t, sharing, s.computed+1, "all but the last token that it shares")
		own += place - sharing
	}
	for b, users := range held {
		require.Equal(t, users, b.users)
		own += b.tokens
	}
	require.Equal(t, own, e.held, "held")
	idle, tokens := 0, 0
	for b := e.prefix.idle.next; b != &e.prefix.idle; b = b.next {
		require.Zero(t, b.users)
		require.Same(t, b, e.prefix.blocks[b.number])
		idle++
		tokens += b.tokens
	}
	require.Equal(t, tokens, e.prefix.tokens)
	require.Len(t, e.prefix.blocks, idle+len(held))
}

func TestPrefixHitsByHand(t *testing.T) {
	const ms = time.Millisecond
	prompt := func(block int, numbers ...uint64) *workload.Prompt {
		return &workload.Prompt{Block: block, Numbers: numbers}
	}
	type first struct {
		id uint64
		at time.Duration
	}
	for name, c := range map[string]struct {
		hits     float64
		cache    bool
		size     capacity.Tokens
		requests []Request
		want     []first
		found    uint64
	}{
		// 10 ms and 1 ms per 10 tokens: 30 ms for 200 of them.
		"no cache": {requests: []Request{{1, 200, 1, prompt(100, 1, 2)}, {2, 200, 1, prompt(100, 1, 2)}}, want: []first{{1, 30 * ms}, {2, 60 * ms}}},
		// Half of 200, and of 101 fifty.
		"a share": {
			hits: 0.5, requests: []Request{{1, 200, 1, nil}, {2, 101, 1, nil}}, found: 150,
			want: []first{{1, 20 * ms}, {2, 20*ms + 15*ms + 100*time.Microsecond}},
		},
		// All but one token of the first block is found, in a prompt of a single one.
		"the whole prompt": {
			cache: true, requests: []Request{{1, 100, 1, prompt(100, 1)}, {2, 100, 1, prompt(100, 1)}}, found: 99,
			want: []first{{1, 20 * ms}, {2, 30*ms + 100*time.Microsecond}},
		},
		// The second begins as the first; the third has the same second block behind another
		// first one, which has another number then.
		"the beginning counts": {
			cache: true, requests: []Request{{1, 200, 1, prompt(100, 1, 2)}, {2, 200, 1, prompt(100, 1, 3)}, {3, 200, 1, prompt(100, 4, 5)}}, found: 100,
			want: []first{{1, 30 * ms}, {2, 50 * ms}, {3, 80 * ms}},
		},
		// There is room for two of three, and what was let go first is gone.
		"no room": {
			cache: true, size: 200, found: 99,
			requests: []Request{{1, 100, 1, prompt(100, 1)}, {2, 100, 1, prompt(100, 2)}, {3, 100, 1, prompt(100, 3)}, {4, 100, 1, prompt(100, 1)}, {5, 100, 1, prompt(100, 1)}},
			want:     []first{{1, 20 * ms}, {2, 40 * ms}, {3, 60 * ms}, {4, 80 * ms}, {5, 90*ms + 100*time.Microsecond}},
		},
		"without a prompt there is the share": {
			cache: true, hits: 0.25, requests: []Request{{1, 100, 1, prompt(100, 1)}, {2, 100, 1, nil}}, found: 25,
			want: []first{{1, 20 * ms}, {2, 20*ms + 17*ms + 500*time.Microsecond}},
		},
		"a trace that repeats itself": {
			cache: true, requests: []Request{{1, 300, 1, prompt(100, 1, 1, 1)}, {2, 300, 1, prompt(100, 1, 1, 1)}}, found: 299,
			want: []first{{1, 40 * ms}, {2, 50*ms + 100*time.Microsecond}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := NewEngine(Options{
				Profile:     serving.Profile{Base: 10, PerPrefillToken: 0.1, BatchLimit: 1, KVTokens: c.size},
				PrefixCache: c.cache, PrefixHits: c.hits,
			})
			require.NoError(t, err)
			for _, r := range c.requests {
				require.NoError(t, e.Submit(0, r))
			}
			var got []first
			for {
				end, ok := e.Next()
				if !ok {
					break
				}
				for _, event := range e.Advance(end) {
					if event.Kind == FirstToken {
						got = append(got, first{event.Request.ID, event.At})
					}
				}
			}
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.found, e.State().Found)
		})
	}
}

// Five requests of 1,000 tokens, 900 of which are the same, need 900 and five times 100
// places, not 5,000: they are served together.
func TestRequestsShareTheirPlaces(t *testing.T) {
	for cache, together := range map[bool]int{true: 5, false: 1} {
		most := 0
		e, err := NewEngine(Options{
			Profile: serving.Profile{Base: 10, KVTokens: 1500}, TokenBudget: 2000, PrefixCache: cache,
			Watch: func(i Iteration) { most = max(most, i.Running) },
		})
		require.NoError(t, err)
		for id := range uint64(5) {
			require.NoError(t, e.Submit(0, Request{ID: id, Input: 1000, Output: 10, Prompt: &workload.Prompt{Block: 100, Numbers: []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 100 + id}}}))
		}
		for {
			end, ok := e.Next()
			if !ok {
				break
			}
			e.Advance(end)
		}
		assert.EqualValues(t, 5, e.State().Finished)
		assert.Equal(t, together, most)
	}
}

func TestSharesThatCannotBe(t *testing.T) {
	for _, hits := range []float64{-0.1, 1, math.NaN(), math.Inf(1)} {
		_, err := NewEngine(Options{Profile: serving.Profile{Base: 1}, PrefixHits: hits})
		assert.ErrorContains(t, err, "of each prompt is found in the prefix cache; expected at least 0 and below 1")
	}
}

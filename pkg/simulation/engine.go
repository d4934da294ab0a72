package simulation

import (
	"fmt"
	"math"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// DefaultTokenBudget is the largest number of tokens in one iteration, decoded
// and prefilled together, unless the options say otherwise. It is what vLLM's V1
// engine takes as max_num_batched_tokens for its API server on most devices;
// there it is LargeTokenBudget on devices of 70 GiB and more, the A100 excepted.
const DefaultTokenBudget = 2048

// LargeTokenBudget is the token budget of an API server of vLLM V1 on devices
// like H100, H200 and MI300X.
const LargeTokenBudget = 8192

// Options describe one engine.
type Options struct {
	// Profile gives the time of an iteration, the size of the KV cache and the
	// batch limit; an unknown KV cache or batch limit limits nothing.
	Profile serving.Profile
	// TokenBudget is the largest number of tokens in one iteration; 0 means
	// DefaultTokenBudget.
	TokenBudget int
	// PrefixCache has the engine keep what it computed of prompts, in the room that no
	// request needs, for later prompts that begin alike (enable_prefix_caching of vLLM).
	// Requests say by their Prompt what they begin with.
	PrefixCache bool
	// PrefixHits is the share of its prompt that a request without a Prompt finds computed
	// already, at least 0 and below 1. It has a place in the KV cache of its own all the
	// same.
	PrefixHits float64
	// Ahead has the engine choose the requests of an iteration when the one before begins, as
	// vLLM does with asynchronous scheduling. Who comes later waits for the next one.
	Ahead bool
	// Watch, if set, is called at the end of every iteration.
	Watch func(Iteration)
}

// Request is what the engine is asked to serve.
type Request struct {
	// ID is the caller's name for the request. The engine only hands it back, and
	// finds requests to cancel by it.
	ID uint64
	// Input is the number of prompt tokens, at least 1.
	Input int
	// Output is the number of tokens to generate, at least 1.
	Output int
	// Prompt says what the prompt begins with; nil means that nobody knows.
	Prompt *workload.Prompt
}

// Engine serves the requests of one model server in virtual time. Each iteration
// decodes one token of every request whose prompt is done, and spends the rest of
// the token budget on prompts in order of arrival. A request enters the batch
// when its whole prompt fits into the KV cache beside what is held. When the
// tokens to decode overflow the cache, the youngest request loses its place and
// goes back to the head of the queue; what it had is computed again later, its
// generated tokens as part of the prompt. A request gets its first token at the
// end of the iteration that completes its prompt.
//
// With a prefix cache, a request begins behind the blocks of its prompt that are
// computed already, be it that a running request holds them or that nobody needed their
// room since. At least one token is always computed. Blocks are computed as the tokens
// of an iteration are handed out, so that a request behind another in the same iteration
// finds them. Those that no request holds give way to what is needed, the one that was
// let go first before the others; of one request, the end of its prompt goes first. What
// is generated is not kept.
//
// An iteration costs a constant time unless a request starts, finishes or is
// preempted in it, then at most a time linear in the batch; nothing is allocated
// once the buffers have grown. An Engine is not safe for concurrent use.
type Engine struct {
	profile serving.Profile
	budget  int
	batch   int
	cache   int
	watch   func(Iteration)
	// prefix is nil without a prefix cache.
	prefix *prefixCache
	hits   float64
	ahead  bool
	// chosen is when the requests of the next iteration are chosen, with ahead and while
	// others run.
	chosen time.Duration
	// member is set for an engine whose iterations a Group begins and ends.
	member bool

	// clock is the latest time that a call named. start and end are those of the
	// running iteration; without one, start is where the next may begin.
	clock, start, end time.Duration
	active            bool
	// decodes is how many requests decode a token in the running iteration, and iteration
	// all that is told of it, which is only noted for those who watch.
	decodes   int
	iteration Iteration

	// running is in order of arrival: the first decoding of them decode, the
	// others are prefilled. Only the last can be left with a part of its prompt
	// when an iteration ends.
	running  []place
	decoding int
	waiting  queue
	spare    []*sequence

	// step counts the iterations that have ended. No decoding request finishes
	// before nextFinish.
	step, nextFinish uint64
	// held is the number of tokens that have a place in the KV cache, resident
	// those of them that belong to decoding requests.
	held, resident int

	counts Counts
	// decoded is the number of tokens that iterations decoded, between the sum of the
	// lengths of those iterations, once for each token.
	decoded   uint64
	between   time.Duration
	events    []Event
	delivered bool
}

// NewEngine makes an idle engine. It refuses a profile that cannot tell the time
// of an iteration, and negative limits.
func NewEngine(o Options) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("simulated model server: %w", err)
	}
	p := o.Profile
	e := &Engine{
		profile:    p,
		budget:     o.TokenBudget,
		batch:      p.BatchLimit,
		cache:      int(p.KVTokens),
		watch:      o.Watch,
		hits:       o.PrefixHits,
		ahead:      o.Ahead,
		nextFinish: math.MaxUint64,
	}
	if o.PrefixCache {
		e.prefix = newPrefixCache()
	}
	if e.budget == 0 {
		e.budget = DefaultTokenBudget
	}
	if e.batch == 0 {
		e.batch = math.MaxInt
	}
	if e.cache == 0 {
		e.cache = math.MaxInt
	}
	return e, nil
}

func (o Options) check() error {
	p, x := o.Profile, o.Profile.Experts
	switch {
	case !p.Known():
		return fmt.Errorf("the profile has no base time of an iteration (%v ms); expected one above 0", p.Base)
	case min(p.PerRequest, p.PerResidentToken, p.PerResidentBeside, p.PerPrefillToken, p.Overhead, p.PerPair, p.PerExchanged, p.LongExchange) < 0:
		return fmt.Errorf("the profile has a negative time: %+v", p)
	case x.Reading < 0 || x.PerToken < 0 || x.PerExchanged < 0 || !(x.Share >= 0 && x.Share <= 1) || x.Engines < 0:
		return fmt.Errorf("experts with a negative time, or of which a token uses no share between 0 and 1: %+v", x)
	case !(o.PrefixHits >= 0 && o.PrefixHits < 1):
		return fmt.Errorf("%v of each prompt is found in the prefix cache; expected at least 0 and below 1", o.PrefixHits)
	case o.TokenBudget < 0 || p.BatchLimit < 0 || p.KVTokens < 0:
		return fmt.Errorf("negative limit: token budget %d, batch limit %d, KV cache %v tokens", o.TokenBudget, p.BatchLimit, p.KVTokens)
	}
	return nil
}

// Submit puts a request into the queue at the given time. Iterations that ended
// before are finished first; their events come with the next Advance. Requests
// that are submitted at the very time at which an iteration can begin are part of
// it. A time before that of an earlier call counts as that one. The error says
// that the request can never be served; the engine is unchanged then.
func (e *Engine) Submit(now time.Duration, r Request) error {
	if r.Input < 1 || r.Output < 1 {
		return fmt.Errorf("request of %d prompt and %d generated tokens: expected at least 1 of each", r.Input, r.Output)
	}
	// The last token is never read back, so it needs no place.
	if most := r.Input + r.Output - 1; most > e.cache {
		return fmt.Errorf("request of %d prompt and %d generated tokens needs %d tokens of KV cache; the server has %d",
			r.Input, r.Output, most, e.cache)
	}
	e.run(now, false)
	s := e.newSequence()
	*s = sequence{request: r, times: Times{Arrived: e.clock}, kept: s.kept[:0]}
	e.waiting.pushBack(s)
	return nil
}

// Cancel forgets the first request with the given ID, wherever it is, and frees
// its place at once; the running iteration takes as long as it would have. It
// reports whether there was such a request. No event follows.
func (e *Engine) Cancel(now time.Duration, id uint64) bool {
	e.run(now, false)
	if s := e.waiting.remove(id); s != nil {
		e.recycle(s)
		return true
	}
	for i, p := range e.running {
		if p.request.ID != id {
			continue
		}
		e.release(i)
		e.running = append(e.running[:i], e.running[i+1:]...)
		e.recycle(p.sequence)
		return true
	}
	return false
}

// Next is the end of the running iteration, which it begins if one is due; ok is
// false while the engine has nothing to do.
func (e *Engine) Next() (end time.Duration, ok bool) {
	if !e.active && e.busy() {
		e.begin()
	}
	return e.end, e.active
}

// Advance finishes all iterations that end by now, each beginning where the one
// before ended, and returns what happened since the last Advance, in order of
// time and then of arrival. The slice is valid until the next call of Submit,
// Cancel or Advance.
func (e *Engine) Advance(now time.Duration) []Event {
	e.run(now, true)
	e.delivered = true
	return e.events
}

// run brings the engine to the given time. An iteration that could begin at that
// very time waits for what else the caller does then.
func (e *Engine) run(now time.Duration, inclusive bool) {
	if e.delivered {
		e.events, e.delivered = e.events[:0], false
	}
	e.clock = max(e.clock, now)
	if e.member {
		return
	}
	for {
		if !e.active {
			if !e.busy() {
				e.start = e.clock
				return
			}
			if e.start == e.clock {
				return
			}
			e.begin()
		}
		if e.end > e.clock || e.end == e.clock && !inclusive {
			return
		}
		e.finish()
	}
}

// due is a time before which Advance would change nothing. Unlike Next it begins no
// iteration, so that what is submitted at the present time can still be part of it.
func (e *Engine) due() time.Duration {
	switch {
	case e.active:
		return e.end
	case e.busy():
		return e.clock + 1
	default:
		return never
	}
}

// drop forgets all requests, and hands them over in the order of their service and
// then of the queue. The engine is idle then.
func (e *Engine) drop(each func(Request)) {
	for _, p := range e.running {
		each(p.request)
		e.recycle(p.sequence)
	}
	for e.waiting.len() > 0 {
		s := e.waiting.popFront()
		each(s.request)
		e.recycle(s)
	}
	clear(e.running)
	e.running = e.running[:0]
	e.decoding, e.held, e.resident, e.active = 0, 0, 0, false
	if e.prefix != nil {
		e.prefix = newPrefixCache()
	}
}

func (e *Engine) busy() bool { return len(e.running) > 0 || e.waiting.len() > 0 }

// begin begins the next iteration.
func (e *Engine) begin() {
	f := e.form()
	e.lasts(f, e.profile.Iteration(e.decoding, capacity.Tokens(e.resident), capacity.Tokens(f.prefill))+e.profile.Attention(f.pairs))
}

// lasts says how long the iteration takes that begins.
func (e *Engine) lasts(f prompts, length capacity.Milliseconds) {
	// Half a nanosecond and then cut off is rounded, and faster than math.Round.
	e.end = e.start + time.Duration(float64(length)*float64(time.Millisecond)+0.5)
	e.decodes = e.decoding
	if e.watch != nil {
		e.iteration = Iteration{
			Start: e.start, End: e.end, Running: len(e.running),
			Decoding: e.decoding, Resident: e.resident, Prefill: f.prefill, Held: e.held,
		}
	}
}

// prompts are what an iteration computes of prompts: tokens, and pairs of one of them and
// itself or one before it.
type prompts struct {
	prefill int
	pairs   float64
}

// form forms the batch of the next iteration.
func (e *Engine) form() prompts {
	preempted := e.makeRoom()
	e.active = true
	e.held += e.decoding
	e.resident += e.decoding
	left := e.budget - e.decoding
	prefill, pairs := 0, 0.0
	take := func(s *sequence) {
		chunk, before := s.prefill(left - prefill)
		prefill += chunk
		pairs += float64(chunk) * (float64(before) + float64(chunk+1)/2)
		if e.prefix != nil {
			e.prefix.keep(s)
		}
	}
	for _, p := range e.running[e.decoding:] {
		take(p.sequence)
	}
	// As in vLLM, an iteration that had to preempt lets nobody in.
	for !preempted && prefill < left && e.fits() && e.inTime(e.waiting.front()) {
		s := e.waiting.popFront()
		s.target, s.computed = s.request.Input+s.generated, 0
		if s.times.Preemptions == 0 {
			s.times.Started = e.start
		}
		e.held += s.target
		if e.prefix != nil || e.hits > 0 {
			e.find(s)
		}
		e.running = append(e.running, place{sequence: s})
		take(s)
	}
	e.chosen = e.start
	e.counts.Prefilled += uint64(prefill)
	if e.prefix != nil {
		e.prefix.shrink(e.cache - e.held)
	}
	return prompts{prefill, pairs}
}

// inTime reports whether a request was there when the requests of this iteration were
// chosen. An engine that serves nobody chooses at once.
func (e *Engine) inTime(s *sequence) bool {
	return !e.ahead || len(e.running) == 0 || s.times.Arrived <= e.chosen
}

// fits reports whether the first waiting request may enter the batch.
func (e *Engine) fits() bool {
	if e.waiting.len() == 0 || len(e.running) >= e.batch {
		return false
	}
	first := e.waiting.front()
	need := first.request.Input + first.generated
	if e.prefix != nil && need > e.cache-e.held {
		need -= e.prefix.held(&first.request)
	}
	return need <= e.cache-e.held
}

// makeRoom preempts the youngest requests until each of the others can decode
// one more token. The oldest always can: Submit let it in.
func (e *Engine) makeRoom() (preempted bool) {
	for e.held > e.cache-e.decoding {
		last := len(e.running) - 1
		s := e.running[last].sequence
		s.generated += e.release(last)
		if s.generated > 0 && s.computed == s.target {
			s.last = e.start
		}
		s.times.Preemptions++
		e.running[last] = place{}
		e.running = e.running[:last]
		e.waiting.pushFront(s)
		e.counts.Preemptions++
		preempted = true
	}
	return preempted
}

// release gives back the place of a running request and returns the number of
// tokens that it generated since it entered the batch.
func (e *Engine) release(i int) (generated int) {
	s := e.running[i]
	if i >= e.decoding {
		e.free(s.sequence, s.target)
		return 0
	}
	total := s.request.Output - int(s.finish-e.step)
	tokens := s.request.Input + total - 1
	if e.active {
		tokens++
	}
	e.free(s.sequence, tokens)
	e.resident -= tokens
	e.decoding--
	return total - s.generated
}

// free gives back so many places of a request.
func (e *Engine) free(s *sequence, places int) {
	e.held -= places
	if e.prefix != nil {
		e.held += e.prefix.letGo(s)
	}
}

// finish ends the running iteration: it hands out its tokens and lets finished
// requests go.
func (e *Engine) finish() {
	e.active = false
	e.decoded += uint64(e.decodes)
	e.between += time.Duration(e.decodes) * (e.end - e.start)
	e.start = e.end
	e.step++
	e.counts.Iterations++
	e.counts.Generated += uint64(e.decoding)
	if e.step >= e.nextFinish || e.decoding < len(e.running) {
		e.settle()
	}
	if e.watch != nil {
		e.watch(e.iteration)
	}
}

// settle takes finished requests out of the batch and moves those whose prompt is
// done on to decoding.
func (e *Engine) settle() {
	from, prefilling := 0, e.decoding
	if e.step < e.nextFinish {
		from = e.decoding
	} else {
		e.nextFinish = math.MaxUint64
	}
	kept := from
	for i := from; i < len(e.running); i++ {
		s := e.running[i]
		if i < prefilling {
			if s.finish == e.step {
				tokens := s.request.Input + s.request.Output - 1
				e.free(s.sequence, tokens)
				e.resident -= tokens
				e.decoding--
			}
		} else if s.computed == s.target {
			s.finish = e.prompted(s.sequence)
		}
		if s.finish == e.step {
			e.emit(Finished, s.sequence)
			e.counts.Finished++
			e.recycle(s.sequence)
			continue
		}
		if s.finish > 0 {
			e.nextFinish = min(e.nextFinish, s.finish)
		}
		e.running[kept] = s
		kept++
	}
	clear(e.running[kept:])
	e.running = e.running[:kept]
}

func (e *Engine) emit(kind Kind, s *sequence) {
	event := Event{Kind: kind, At: e.start, Request: s.request, Times: s.times}
	switch kind {
	case Resumed:
		event.Gap = e.start - s.last
	case Finished:
		event.Times.Finished = e.start
	case FirstToken:
	}
	e.events = append(e.events, event)
}

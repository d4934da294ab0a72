package simulation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Group is several engines of one model behind one address (data parallelism). Each has
// its own queue, batch and KV cache, and each request goes to one of them.
//
// Engines of a dense model know nothing of each other. Those that share the experts of a
// mixture (serving.ExpertTimes) begin each iteration together, and it takes as long as
// that of the slowest; one without requests computes a token for nothing.
type Group struct {
	engines  []*Engine
	together bool

	// As those of an engine, for engines that go together.
	clock, start, end time.Duration
	active            bool
	prompts           []prompts
	events            []Event
}

// waitingWeight is how many running requests a waiting one counts for where the engine
// of a request is chosen, as in vLLM.
const waitingWeight = 4

// NewGroup makes so many idle engines with the same options. It refuses what NewEngine
// refuses, and a profile whose experts are shared by another number of engines.
func NewGroup(o Options, engines int) (*Group, error) {
	if engines < 1 {
		return nil, fmt.Errorf("simulated model server: %d engines behind one address; expected at least 1", engines)
	}
	sharing := max(1, o.Profile.Experts.Engines)
	if sharing > 1 && sharing != engines {
		return nil, fmt.Errorf("simulated model server: %d engines behind one address with a profile of %d that share experts", engines, sharing)
	}
	if sharing > 1 && o.Profile.Form != serving.Overlapped {
		return nil, fmt.Errorf("simulated model server: experts that engines share in a profile of a form that has none")
	}
	g := &Group{together: sharing > 1, prompts: make([]prompts, engines)}
	for range engines {
		e, err := NewEngine(o)
		if err != nil {
			return nil, err
		}
		e.member = g.together
		g.engines = append(g.engines, e)
	}
	return g, nil
}

// Submit gives a request to the engine with the least to do, counted as vLLM does: a
// waiting request as four running ones. Otherwise it is as Engine.Submit.
func (g *Group) Submit(now time.Duration, r Request) error {
	g.run(now, false)
	best, least := g.engines[0], 0
	for i, e := range g.engines {
		state := e.State()
		if load := waitingWeight*state.Waiting + state.Running; i == 0 || load < least {
			best, least = e, load
		}
	}
	return best.Submit(now, r)
}

// Next is as Engine.Next: the end of the first of the running iterations.
func (g *Group) Next() (end time.Duration, ok bool) {
	if g.together {
		if !g.active && g.busy() {
			g.begin()
		}
		return g.end, g.active
	}
	for _, e := range g.engines {
		if at, running := e.Next(); running && (!ok || at < end) {
			end, ok = at, true
		}
	}
	return end, ok
}

// Advance is as Engine.Advance; what happened at the same time comes in the order of the
// engines.
func (g *Group) Advance(now time.Duration) []Event {
	g.run(now, true)
	g.events = g.events[:0]
	for _, e := range g.engines {
		g.events = append(g.events, e.events...)
		e.delivered = true
	}
	slices.SortStableFunc(g.events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	return g.events
}

func (g *Group) busy() bool {
	return slices.ContainsFunc(g.engines, (*Engine).busy)
}

// run brings all engines to the given time; see Engine.run.
func (g *Group) run(now time.Duration, inclusive bool) {
	for _, e := range g.engines {
		e.run(now, inclusive)
	}
	if !g.together {
		return
	}
	g.clock = max(g.clock, now)
	for {
		if !g.active {
			if !g.busy() {
				g.start = g.clock
				return
			}
			if g.start == g.clock {
				return
			}
			g.begin()
		}
		if g.end > g.clock || g.end == g.clock && !inclusive {
			return
		}
		g.finish()
	}
}

// begin begins an iteration of all engines.
func (g *Group) begin() {
	tokens, fewest := 0, math.MaxInt
	for i, e := range g.engines {
		e.start = g.start
		own := 1
		if e.busy() {
			g.prompts[i] = e.form()
			own = e.decoding + g.prompts[i].prefill
		}
		tokens, fewest = tokens+own, min(fewest, own)
	}
	var length capacity.Milliseconds
	for i, e := range g.engines {
		if f := g.prompts[i]; e.active {
			own := e.profile.IterationAmong(e.decoding, capacity.Tokens(e.resident), capacity.Tokens(f.prefill), capacity.Tokens(tokens), capacity.Tokens(fewest))
			length = max(length, own+e.profile.Attention(f.pairs))
		}
	}
	for i, e := range g.engines {
		if e.active {
			e.lasts(g.prompts[i], length)
			g.end = e.end
		}
	}
	g.active = true
}

// finish ends the running iteration of all engines.
func (g *Group) finish() {
	for _, e := range g.engines {
		if e.active {
			e.finish()
		}
	}
	g.active, g.start = false, g.end
}

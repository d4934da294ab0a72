package simulation

import (
	"fmt"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// request is one that was sent, at a time since the begin of the run.
type request struct {
	at            time.Duration
	input, output int
}

// served is what one request saw. perToken is 0 for an output of one token.
type served struct {
	ttft, perToken time.Duration
	output         int
}

// server is the engine that is judged, or so many of them behind one address.
type server struct {
	profile serving.Profile
	budget  int
	engines int
	// prompts are what the requests' prompts begin with, for a server that caches
	// prefixes; nil for one that does not, or of which nobody knows it.
	prompts []*workload.Prompt
	// ahead says that the requests of an iteration are chosen while the one before runs.
	ahead bool
	// client says that tokens are seen by a client: one iteration after the engine
	// has them.
	client bool
}

// serve plays the requests, which are in order of time, and returns what those saw
// that finished until the end, in the order in which they were sent. An end of 0
// waits for all.
func (s server) serve(requests []request, end time.Duration) ([]served, error) {
	p := player{requests: requests, first: make([]time.Duration, len(requests)), last: make([]time.Duration, len(requests))}
	options := simulation.Options{Profile: s.profile, TokenBudget: s.budget, Watch: p.iterationEnds, PrefixCache: s.prompts != nil, Ahead: s.ahead}
	engine, err := simulation.NewGroup(options, max(1, s.engines))
	if err != nil {
		return nil, err
	}
	for i, r := range requests {
		p.record(engine.Advance(r.at))
		q := simulation.Request{ID: uint64(i), Input: r.input, Output: r.output}
		if s.prompts != nil {
			q.Prompt = s.prompts[i]
		}
		if err := engine.Submit(r.at, q); err != nil {
			return nil, fmt.Errorf("request %d of %d: %w", i+1, len(requests), err)
		}
	}
	for {
		next, ok := engine.Next()
		if !ok || end > 0 && next > end {
			break
		}
		p.record(engine.Advance(next))
	}
	return p.served(s.client, end), nil
}

// player collects what an engine does.
type player struct {
	requests    []request
	first, last []time.Duration
	// ends are the ends of all iterations.
	ends []time.Duration
}

func (p *player) iterationEnds(i simulation.Iteration) { p.ends = append(p.ends, i.End) }

func (p *player) record(events []simulation.Event) {
	for _, e := range events {
		switch e.Kind {
		case simulation.FirstToken:
			p.first[e.Request.ID] = e.At
		case simulation.Finished:
			p.last[e.Request.ID] = e.At
		case simulation.Resumed:
		}
	}
}

func (p *player) served(client bool, end time.Duration) []served {
	all := make([]served, 0, len(p.requests))
	for i, r := range p.requests {
		first, last := p.first[i], p.last[i]
		if last == 0 || end > 0 && last > end {
			continue
		}
		one := served{output: r.output}
		if r.output > 1 {
			one.perToken = (last - first) / time.Duration(r.output-1)
		}
		if client {
			first = p.after(first)
		}
		one.ttft = first - r.at
		all = append(all, one)
	}
	return all
}

// after is the end of the iteration after the one that ends at the given time; that
// time itself if it was the last.
func (p *player) after(at time.Duration) time.Duration {
	i, _ := slices.BinarySearch(p.ends, at)
	return p.ends[min(i+1, len(p.ends)-1)]
}

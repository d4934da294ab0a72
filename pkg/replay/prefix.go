package replay

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// Prompts reports whether a variant asks what prompts begin with.
func (s *Scenario) Prompts() bool {
	return slices.ContainsFunc(s.Models, func(m Model) bool {
		return slices.ContainsFunc(m.Variants, func(v Variant) bool { return v.PrefixCache })
	})
}

// Latency is the profile of a variant with what it does not compute of prompts.
func (s *Scenario) Latency(model, variant int) serving.Profile {
	v := &s.Models[model].Variants[variant]
	hits := v.PrefixHits
	if v.PrefixCache && s.found != nil {
		hits = s.found[model][variant]
	}
	p := v.Profile
	p.PerPrefillToken *= capacity.Milliseconds(1 - hits)
	return p
}

// caching is the scenario with the share of these requests' tokens that a prefix cache of
// the size of a replica's finds, if all of them come to it. Several replicas find about as
// many, if requests come to them by chance: each sees fewer and keeps them longer.
// It refuses requests of which none says what it begins with, if a variant asks for it.
func (s *Scenario) caching(source Source) (*Scenario, error) {
	if !s.Prompts() {
		return s, nil
	}
	cached := *s
	cached.found = make([][]float64, len(s.Models))
	for m := range s.Models {
		cached.found[m] = make([]float64, len(s.Models[m].Variants))
		for i, v := range s.Models[m].Variants {
			if !v.PrefixCache {
				continue
			}
			var said bool
			var err error
			if cached.found[m][i], said, err = v.finds(source); err != nil {
				return nil, err
			}
			if !said {
				return nil, fmt.Errorf("the variant %s caches what prompts begin with (prefixCache), and no request says it; expected a Mooncake trace with hash_ids, or a share of hits (prefixHits)", v.Name)
			}
		}
	}
	return &cached, nil
}

// finds is the share of all prompt tokens that a prefix cache of the size of a replica's
// finds. It is not said where no request says what it begins with.
func (v *Variant) finds(source Source) (share float64, said bool, err error) {
	// Nothing takes longer than a nanosecond, so that requests do not meet.
	const instant = 1e-6
	engine, err := simulation.NewEngine(simulation.Options{
		Profile: serving.Profile{Base: instant, KVTokens: v.Profile.KVTokens}, TokenBudget: math.MaxInt32,
		PrefixCache: true, PrefixHits: v.PrefixHits,
	})
	if err != nil {
		return 0, false, err
	}
	stream, err := source()
	if err != nil {
		return 0, false, err
	}
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, false, err
		}
		said = said || r.Prompt != nil
		engine.Advance(r.Arrival)
		// One that is too long for a replica counts for nothing here.
		_ = engine.Submit(r.Arrival, simulation.Request{Input: r.Input, Output: 1, Prompt: r.Prompt})
	}
	for end, ok := engine.Next(); ok; end, ok = engine.Next() {
		engine.Advance(end)
	}
	counts := engine.State()
	return float64(counts.Found) / math.Max(1, float64(counts.Prompted)), said, nil
}

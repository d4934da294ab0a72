package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/scenario"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// asked are the requests that are meant: those of the trace, else those that the scenario
// has of its own. They are counted before they are multiplied.
func (o *options) asked(ctx context.Context, s *replay.Scenario, counted *workload.Dispersion) (replay.Source, error) {
	if o.trace != "" {
		return o.source(ctx, counted)
	}
	sources := s.Sources(o.seed)
	switch {
	case sources == nil:
		return nil, errors.New("--trace is missing: expected a file of requests, or synthetic: and one of " + strings.Join(workload.Names(), ", ") +
			"; without it, one of the scenarios that have requests of their own: " + strings.Join(exampleNames(), ", "))
	case o.from > 0:
		return nil, errors.New("--from goes with --trace only: what happens in the scenario has times of its own")
	case o.duration > 0 && o.duration <= s.Learning:
		return nil, fmt.Errorf("--duration is %s, and the first %s of the scenario are for learning: expected more", report.Duration(o.duration), report.Duration(s.Learning))
	}
	if o.rate > 1 {
		if err := count(replay.Merge(o.parts(ctx, sources, 1)), counted); err != nil {
			return nil, err
		}
	}
	return replay.Merge(o.parts(ctx, sources, o.rate)), nil
}

// parts are the wanted part of each model's requests, so many times.
func (o *options) parts(ctx context.Context, sources []replay.Source, rate float64) []replay.Source {
	parts := make([]replay.Source, len(sources))
	for m, source := range sources {
		if source == nil {
			continue
		}
		parts[m] = func() (workload.Stream, error) {
			stream, err := source()
			if err != nil {
				return nil, err
			}
			if o.duration > 0 {
				stream = workload.Limit(stream, o.duration)
			}
			if rate != 1 {
				if stream, err = workload.Rate(stream, rate, o.spread, o.seed+uint64(m)<<32); err != nil {
					return nil, err
				}
			}
			return &interruptible{Stream: stream, ctx: ctx}, nil
		}
	}
	return parts
}

// count reads a source to its end.
func count(source replay.Source, counted *workload.Dispersion) error {
	stream, err := source()
	if err != nil {
		return err
	}
	for {
		r, err := stream.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		counted.Add(r.Arrival)
	}
}

// interruptible is a stream until the user has enough.
type interruptible struct {
	workload.Stream
	// ctx is that of the command: a stream of package workload knows none.
	ctx context.Context
}

// Next implements workload.Stream.
func (i *interruptible) Next() (workload.Request, error) {
	if i.ctx.Err() != nil {
		return workload.Request{}, ErrInterrupted
	}
	return i.Stream.Next()
}

// scenarioData is the scenario that is meant, and what to call it: one that is built in by
// its name, else a file.
func (o *options) scenarioData() (data []byte, place string, err error) {
	if e, ok := scenario.Named(o.scenario); ok {
		return e.Data, "the built-in scenario " + e.Name, nil
	}
	if data, err = readFile(o.scenario); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("%w: expected a file, or one of the built-in %s", err, strings.Join(exampleNames(), ", "))
		}
		return nil, "", fmt.Errorf("--scenario: %w", err)
	}
	return data, o.scenario, nil
}

// exampleNames are those of the scenarios that are built in beside the usual one.
func exampleNames() []string {
	var names []string
	for _, e := range scenario.Examples() {
		names = append(names, e.Name)
	}
	return names
}

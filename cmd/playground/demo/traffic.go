package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// replicasAtPeak is how many replicas of a model's first variant serve the peak of
// the synthetic traffic within the SLO.
const replicasAtPeak = 4

// peak is the rate in requests per second that the synthetic traffic of a model
// reaches.
func peak(m model) float64 {
	first := m.Variants[0]
	return replicasAtPeak * float64(first.Profile.MaxRate(m.tokens(), m.SLO, 1))
}

// synthetic is a model's traffic without a trace: up to the peak within the first
// third, level, and down again within the last.
func synthetic(m model, duration time.Duration, seed uint64) (workload.Stream, error) {
	top := peak(m)
	return workload.NewSynthetic(workload.Synthetic{
		Rate: []workload.Point{
			{At: 0, Rate: 0},
			{At: duration / 3, Rate: top},
			{At: duration * 2 / 3, Rate: top},
			{At: duration, Rate: 0},
		},
		Input:  m.Input,
		Output: m.Output,
		Seed:   seed,
	})
}

// streams are the requests of every model, in the order of the models, and what
// closes the trace.
func (p plan) streams() ([]workload.Stream, func(), error) {
	var all []workload.Stream
	done := func() {}
	for i, m := range p.models {
		if i == 0 && p.Trace != "" {
			t, err := openTrace(p.Options)
			if err != nil {
				return nil, nil, err
			}
			done = func() { _ = t.Close() }
			all = append(all, t)
			continue
		}
		// The seeds differ, so that the models do not move in step.
		stream, err := synthetic(m, p.Duration, p.Seed+uint64(i))
		if err != nil {
			done()
			return nil, nil, fmt.Errorf("traffic of %s: %w", m.ID, err)
		}
		all = append(all, stream)
	}
	return all, done, nil
}

// trace is the needed part of a trace file as a stream.
type trace struct {
	workload.Stream
	file *os.File
}

func (t trace) Close() error { return t.file.Close() }

// openTrace starts to read a trace. The file may end before the duration does.
func openTrace(o Options) (trace, error) {
	file, err := os.Open(o.Trace)
	if err != nil {
		return trace{}, fmt.Errorf("--trace: %w", err)
	}
	stream, err := limitedTrace(file, o)
	if err != nil {
		_ = file.Close()
		return trace{}, err
	}
	return trace{Stream: stream, file: file}, nil
}

func limitedTrace(file *os.File, o Options) (workload.Stream, error) {
	if info, err := file.Stat(); err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("--trace: %s is not a regular file; expected a CSV file with the header %s", o.Trace, workload.AzureHeader)
	}
	azure, err := workload.NewAzure(file, o.Trace)
	if err != nil {
		return nil, err
	}
	copies, err := workload.Rate(workload.Limit(azure, o.Duration), o.Rate, workload.DefaultSpread, o.Seed)
	if err != nil {
		return nil, fmt.Errorf("--rate: %w", err)
	}
	// Copies come up to the end of the last request's second, which the duration may cut.
	return workload.Limit(copies, o.Duration), nil
}

// extent is how much there is of a trace.
type extent struct {
	requests int
	last     time.Duration
}

// checkTrace reads the whole needed part of the trace, so that a malformed line is
// found before anything starts.
func checkTrace(o Options) (extent, error) {
	var e extent
	t, err := openTrace(o)
	if err != nil {
		return e, err
	}
	defer func() { _ = t.Close() }()
	for {
		r, err := t.Next()
		switch {
		case errors.Is(err, io.EOF) && e.requests == 0:
			return e, fmt.Errorf("%s: there are no requests in the first %s; expected rows of %s", o.Trace, report.Duration(o.Duration), workload.AzureHeader)
		case errors.Is(err, io.EOF):
			return e, nil
		case err != nil:
			return e, err
		}
		e.requests, e.last = e.requests+1, r.Arrival
	}
}

package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"llmd.ai/workload-variant-autoscaler/pkg/replay"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// source opens the trace from its beginning, each time that it is asked. That there is
// a request in it is found out now.
// Requests are counted as they are read, before they are multiplied.
func (o *options) source(ctx context.Context, counted *workload.Dispersion) (replay.Source, error) {
	source := func() (workload.Stream, error) {
		*counted = workload.Dispersion{}
		return o.open(ctx, counted, openFile)
	}
	var files []string
	stream, err := o.open(ctx, new(workload.Dispersion), func(path string) (io.ReadCloser, error) {
		files = append(files, path)
		return openFile(path)
	})
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	_, err = stream.Next()
	closed := stream.trace.Close()
	for _, path := range files {
		err = errors.Join(o.spares("--trace", path), err)
	}
	switch {
	case errors.Is(err, io.EOF) && o.thinned(ctx):
		return nil, fmt.Errorf("--trace: %s has requests, but --rate %v left none of them: expected a larger one, or another --seed", o.trace, o.rate)
	case errors.Is(err, io.EOF) && o.from > 0:
		return nil, fmt.Errorf("--trace: %s has no request from %s on: expected a smaller --from", o.trace, report.Duration(o.from))
	case errors.Is(err, io.EOF):
		return nil, fmt.Errorf("--trace: %s has no request in it: expected at least one", o.trace)
	case err != nil:
		return nil, err
	}
	return source, closed
}

// thinned reports whether there would be a request if all were kept.
func (o *options) thinned(ctx context.Context) bool {
	whole := *o
	whole.rate = 1
	stream, err := whole.open(ctx, new(workload.Dispersion), openFile)
	if err != nil {
		return false
	}
	_, err = stream.Next()
	_ = stream.trace.Close()
	return err == nil && o.rate < 1
}

// open opens the part of the trace that is meant, with as many requests as are meant.
func (o *options) open(ctx context.Context, counted *workload.Dispersion, file workload.Files) (*requests, error) {
	part := workload.OpenOptions{From: o.from, Length: o.duration, Seed: o.seed, Prompts: o.prompts}
	if o.rate < 1 {
		part.Thin = o.rate
	}
	trace, err := workload.Open(file, o.trace, part)
	if err != nil {
		return nil, err
	}
	stream := workload.Stream(trace)
	if o.rate > 1 {
		if stream, err = workload.Rate(counted.Of(trace), o.rate, o.spread, o.seed); err != nil {
			return nil, errors.Join(err, trace.Close())
		}
	}
	return &requests{interruptible: interruptible{Stream: stream, ctx: ctx}, trace: trace}, nil
}

func openFile(path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory: expected a file of requests", path)
	}
	return os.Open(path)
}

// requests are those of a trace, until the user has enough.
type requests struct {
	interruptible
	trace *workload.Trace
}

// Next implements workload.Stream.
func (r *requests) Next() (workload.Request, error) {
	request, err := r.interruptible.Next()
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, ErrInterrupted) {
		err = fmt.Errorf("--trace: %w", err)
	}
	return request, err
}

package controller

import (
	"context"
	"maps"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

// found is what a reading found of each model. With an error, what is there is good.
type found[T any] struct {
	at  time.Time
	of  map[decision.ModelKey]T
	err error
}

// aside reads beside the loop, whose rounds never wait for it and go on without it, and hands
// over what it found. The context of the reading ends with the timeout.
func aside[T any](ctx context.Context, at time.Time, timeout time.Duration, to chan<- found[T],
	read func(context.Context, time.Time) (map[decision.ModelKey]T, error),
) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		of, err := read(ctx, at)
		to <- found[T]{at, of, err}
	}()
}

// over is what was found, and of the other models what was known before.
func (f found[T]) over(known map[decision.ModelKey]T) map[decision.ModelKey]T {
	all := make(map[decision.ModelKey]T, len(known)+len(f.of))
	maps.Copy(all, known)
	maps.Copy(all, f.of)
	return all
}

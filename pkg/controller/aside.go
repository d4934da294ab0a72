package controller

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

const (
	// historyEvery is how often the load of earlier days is read. Each reading reaches
	// forecast.HistoryAhead, so that one may fail.
	historyEvery = time.Hour
	// historyRetry is when it is tried again after a failure.
	historyRetry = 10 * time.Minute
)

// past is what is known of earlier days. It belongs to the goroutine of the loop.
type past struct {
	// earlier is that of Options.
	earlier read[[]forecast.History]
	known   map[decision.ModelKey][]forecast.History
	// due is when it is read next.
	due     time.Time
	arrived chan found[[]forecast.History]
}

// begin reads what is due.
func (p *past) begin(ctx context.Context, now time.Time) {
	if p.earlier == nil || now.Before(p.due) {
		return
	}
	p.due = now.Add(historyEvery)
	aside(ctx, now, historyRetry, p.arrived, p.earlier)
}

// take keeps what was read. With an error that is what is there now and what was known of
// the other models before.
func (p *past) take(ctx context.Context, read found[[]forecast.History]) {
	p.known = read.over(p.known)
	if read.err == nil {
		return
	}
	p.due = read.at.Add(historyRetry)
	klog.FromContext(ctx).Error(read.err, "The load of earlier days could not be read; forecasts go on without it")
}

// attainmentTimeout bounds one reading of it: full rounds are as far apart by default.
const attainmentTimeout = time.Minute

// attainment is what is known of the share of requests that kept the promised latency. It
// belongs to the goroutine of the loop.
type attainment struct {
	// met is that of Options.
	met func(context.Context, time.Time, time.Duration, map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Sample, error)
	// promises are those of the last observation, of models with a target.
	promises map[decision.ModelKey]capacity.SLO
	known    map[decision.ModelKey]decision.Sample
	// reading is set while a reading is under way.
	reading bool
	// wrong is what was last logged of readings: the text of the error; empty without.
	wrong   string
	arrived chan found[decision.Sample]
}

// follow learns what is promised. Promises count in hybrid mode alone.
func (a *attainment) follow(policy *decision.Policy) {
	a.promises = map[decision.ModelKey]capacity.SLO{}
	if !policy.Hybrid {
		return
	}
	for key, promise := range policy.Promises {
		if promise.SLO.TTFT > 0 || promise.SLO.ITL > 0 {
			a.promises[key] = promise.SLO
		}
	}
}

// begin reads, unless nothing is promised or a reading is under way. Where nothing is
// promised any more, what was known is forgotten.
func (a *attainment) begin(ctx context.Context, now time.Time, window time.Duration) {
	if len(a.promises) == 0 {
		a.known = nil
	}
	if a.met == nil || a.reading || len(a.promises) == 0 {
		return
	}
	a.reading = true
	promises := a.promises // follow makes new ones.
	aside(ctx, now, attainmentTimeout, a.arrived, func(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error) {
		return a.met(ctx, at, window, promises)
	})
}

// take keeps what was read. With an error that is what is there now and what was known of the
// other models before, which is as old as its time says. An error is logged when it changes.
func (a *attainment) take(ctx context.Context, read found[decision.Sample]) {
	a.reading, a.known = false, read.over(a.known)
	if news(&a.wrong, read.err) && read.err != nil {
		klog.FromContext(ctx).Error(read.err, "What share of the requests kept the promised latency could not be read; decisions go on without it")
	}
}

// read reads something of each model. With an error, what is there is good.
type read[T any] = func(context.Context, time.Time) (map[decision.ModelKey]T, error)

// found is what such a reading found.
type found[T any] struct {
	at  time.Time
	of  map[decision.ModelKey]T
	err error
}

// over is what is known after a reading. Where it failed, that is what was known before of the
// models that it lacks.
func (f found[T]) over(before map[decision.ModelKey]T) map[decision.ModelKey]T {
	if f.err == nil {
		return f.of
	}
	return over(before, f.of)
}

// aside reads beside the loop, whose rounds never wait for it and go on without it, and hands
// over what it found. The context of the reading ends with the timeout.
func aside[T any](ctx context.Context, at time.Time, timeout time.Duration, to chan<- found[T], read read[T]) {
	go func() {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		of, err := read(ctx, at)
		to <- found[T]{at, of, err}
	}()
}

// over is what is known now, and of the other models what was known before.
func over[T any](before, now map[decision.ModelKey]T) map[decision.ModelKey]T {
	all := make(map[decision.ModelKey]T, len(before)+len(now))
	maps.Copy(all, before)
	maps.Copy(all, now)
	return all
}

// news reports whether an error, or that there is none, is another than was last told, and
// keeps its text as told.
func news(told *string, err error) bool {
	before := *told
	*told = ""
	if err != nil {
		*told = err.Error()
	}
	return *told != before
}

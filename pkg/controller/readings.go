package controller

import (
	"context"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
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
	met func(context.Context, time.Time, time.Duration, map[decision.ModelKey]capacity.SLO) (map[decision.ModelKey]decision.Kept, error)
	// promises are those of the last observation, of models with a target.
	promises map[decision.ModelKey]capacity.SLO
	known    map[decision.ModelKey]decision.Kept
	// reading is set while a reading is under way.
	reading bool
	// wrong is what was last logged of readings: the text of the error; empty without.
	wrong   string
	arrived chan found[decision.Kept]
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
	aside(ctx, now, attainmentTimeout, a.arrived, func(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Kept, error) {
		return a.met(ctx, at, window, promises)
	})
}

// take keeps what was read. With an error that is what is there now and what was known of the
// other models before, which is as old as its time says. An error is logged when it changes.
func (a *attainment) take(ctx context.Context, read found[decision.Kept]) {
	a.reading, a.known = false, read.over(a.known)
	if news(&a.wrong, read.err) && read.err != nil {
		klog.FromContext(ctx).Error(read.err, "The share of the requests that met the SLO could not be read; decisions go on without it")
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

// readings are the samples of one moment.
type readings struct {
	at     time.Time
	pods   map[types.NamespacedName]decision.Replica
	models map[decision.ModelKey]decision.Model
	// adapters are what pods show, where that was asked for.
	adapters map[types.NamespacedName][]string
	err      error
}

// over fills what a reading that failed lacks with the one before. Samples carry
// their times, so a short outage of Prometheus is what it is: data that age. What is as
// old as stale counts for nothing, and is dropped: a reading can fail for ever because of
// one pod, while others come and go.
func (r readings) over(before readings, stale time.Duration) readings {
	if r.err == nil {
		return r
	}
	since := r.at.Add(-stale)
	r.pods, r.models = filled(before.pods, r.pods, since, samplesOf), filled(before.models, r.models, since, samplesOfModel)
	return r
}

// filled is what is known now, and what was known before where samples are from after an instant.
func filled[K comparable, V any](before, now map[K]V, since time.Time, of func(*V) samples) map[K]V {
	all := make(map[K]V, len(before))
	for key, v := range before {
		if of(&v).keep(since) {
			all[key] = v
		}
	}
	for key, v := range now {
		old := all[key]
		of(&v).fill(of(&old))
		all[key] = v
	}
	return all
}

// samples are those of a replica or a model. Span is that of recent, which is one of them.
type samples struct {
	all    []*decision.Sample
	recent *decision.Sample
	span   *time.Duration
}

func samplesOf(r *decision.Replica) samples {
	return samples{[]*decision.Sample{
		&r.KVUse, &r.KVTokens, &r.Waiting, &r.Running, &r.Served, &r.InService, &r.InFlightGrowth, &r.Recent,
		&r.TTFT, &r.ITL, &r.Input, &r.Output,
	}, &r.Recent, &r.RecentSpan}
}

func samplesOfModel(m *decision.Model) samples {
	return samples{[]*decision.Sample{&m.Arrival, &m.Recent, &m.Queue}, &m.Recent, &m.RecentSpan}
}

// keep drops the samples that are not from after an instant, and reports whether any is left.
func (s samples) keep(since time.Time) (left bool) {
	for _, one := range s.all {
		if !one.Time.After(since) {
			*one = decision.Sample{}
		}
		left = left || one.Present
	}
	if !s.recent.Present {
		*s.span = 0
	}
	return left
}

// fill takes the samples that are missing from those of before.
func (s samples) fill(before samples) {
	if !s.recent.Present {
		*s.span = *before.span
	}
	for i, one := range s.all {
		if !one.Present {
			*one = *before.all[i]
		}
	}
}

package controller

import (
	"context"
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
	// historian is nil where nobody remembers.
	historian Historian
	known     map[decision.ModelKey][]forecast.History
	// due is when it is read next.
	due     time.Time
	arrived chan found[[]forecast.History]
}

func newPast(h Historian) past {
	return past{historian: h, arrived: make(chan found[[]forecast.History], 1)}
}

// begin reads what is due.
func (p *past) begin(ctx context.Context, now time.Time) {
	if p.historian == nil || now.Before(p.due) {
		return
	}
	p.due = now.Add(historyEvery)
	aside(ctx, now, historyRetry, p.arrived, p.historian.Earlier)
}

// take keeps what was read. With an error that is what is there now and what was known of
// the other models before.
func (p *past) take(ctx context.Context, read found[[]forecast.History]) {
	if read.err == nil {
		p.known = read.of
		return
	}
	p.due, p.known = read.at.Add(historyRetry), over(p.known, read.of)
	klog.FromContext(ctx).Error(read.err, "The load of earlier days could not be read; forecasts go on without it")
}

// attainmentTimeout bounds one reading of it: full rounds are as far apart by default.
const attainmentTimeout = time.Minute

// attainment is what is known of the share of requests that kept the promised latency. It
// belongs to the goroutine of the loop.
type attainment struct {
	// attainer is nil where nobody can tell.
	attainer Attainer
	// promises are those of the last observation, of models with a target.
	promises map[decision.ModelKey]capacity.SLO
	known    map[decision.ModelKey]decision.Sample
	// reading is set while a reading is under way.
	reading bool
	// wrong is what was last logged of readings: the text of the error; empty without.
	wrong   string
	arrived chan found[decision.Sample]
}

func newAttainment(a Attainer) attainment {
	return attainment{attainer: a, arrived: make(chan found[decision.Sample], 1)}
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
	if a.attainer == nil || a.reading || len(a.promises) == 0 {
		return
	}
	a.reading = true
	promises := a.promises // follow makes new ones.
	aside(ctx, now, attainmentTimeout, a.arrived, func(ctx context.Context, at time.Time) (map[decision.ModelKey]decision.Sample, error) {
		return a.attainer.Met(ctx, at, window, promises)
	})
}

// take keeps what was read. With an error that is what is there now and what was known of the
// other models before, which is as old as its time says. An error is logged when it changes.
func (a *attainment) take(ctx context.Context, read found[decision.Sample]) {
	a.reading = false
	if read.err == nil {
		a.known, a.wrong = read.of, ""
		return
	}
	a.known = over(a.known, read.of)
	if text := read.err.Error(); text != a.wrong {
		klog.FromContext(ctx).Error(read.err, "What share of the requests kept the promised latency could not be read; decisions go on without it")
		a.wrong = text
	}
}

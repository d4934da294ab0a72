package controller

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
)

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

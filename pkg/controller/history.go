package controller

import (
	"context"
	"maps"
	"time"

	"k8s.io/klog/v2"

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

// past is what is known of earlier days. It is read beside the rounds, which never wait for
// it and go on without it. It belongs to the goroutine of the loop.
type past struct {
	// historian is nil where nobody remembers.
	historian Historian
	known     map[decision.ModelKey][]forecast.History
	// due is when it is read next.
	due     time.Time
	arrived chan earlier
}

// earlier is one reading of it.
type earlier struct {
	at    time.Time
	loads map[decision.ModelKey][]forecast.History
	err   error
}

func newPast(h Historian) past { return past{historian: h, arrived: make(chan earlier, 1)} }

// begin reads what is due.
func (p *past) begin(ctx context.Context, now time.Time) {
	if p.historian == nil || now.Before(p.due) {
		return
	}
	p.due = now.Add(historyEvery)
	go func() {
		ctx, cancel := context.WithTimeout(ctx, historyRetry)
		defer cancel()
		loads, err := p.historian.Earlier(ctx, now)
		p.arrived <- earlier{now, loads, err}
	}()
}

// take keeps what was read. With an error that is what is there now and what was known of
// the other models before.
func (p *past) take(ctx context.Context, e earlier) {
	if e.err == nil {
		p.known = e.loads
		return
	}
	p.due = e.at.Add(historyRetry)
	klog.FromContext(ctx).Error(e.err, "The load of earlier days could not be read; forecasts go on without it")
	known := maps.Clone(p.known)
	if known == nil {
		known = map[decision.ModelKey][]forecast.History{}
	}
	maps.Copy(known, e.loads)
	p.known = known
}

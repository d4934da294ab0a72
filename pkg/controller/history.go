package controller

import (
	"context"
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

package dashboard

import (
	"context"
	"time"

	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/report"
)

// half is one of the two targets of a promise, and where the share within it is shown.
type half struct {
	prometheus.Latency
	field func(*report.LoadPoint) **float64
}

// halves are both targets.
func halves() []half {
	return []half{
		{prometheus.ToFirstToken(), func(p *report.LoadPoint) **float64 { return &p.WithinTTFT }},
		{prometheus.PerFurtherToken(), func(p *report.LoadPoint) **float64 { return &p.WithinITL }},
	}
}

// within finds the share of requests within the targets, at every step from first to last.
func (q questions) within(ctx context.Context, from asker, h half, first, last time.Time, step time.Duration) (model.Matrix, error) {
	promises := make(map[decision.ModelKey]capacity.SLO, len(q.promises))
	for key, slo := range q.promises {
		promises[decision.ModelKey{Namespace: key.namespace, ID: key.model}] = slo
	}
	if !h.Promised(promises) {
		return nil, nil
	}
	found, err := from.Now(ctx, h.Ends(q.namespace))
	if err != nil {
		return nil, err
	}
	ends := prometheus.EndsOf(found)
	rates, err := from.Range(ctx, h.Rates(ends, promises, q.namespace, q.window), first, last, step)
	if err != nil {
		return nil, err
	}
	return h.Shares(ends, rates, promises), nil
}

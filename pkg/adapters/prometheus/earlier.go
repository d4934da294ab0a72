package prometheus

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
)

// completions says how many requests the servers of each model completed in a second.
func completions() query {
	q := newBuilder(forecast.HistoryStep, 0)
	rate := func(series string) string {
		return q.whole("sum", fmt.Sprintf("rate(%s[%s])", series, q.window), series, modelserver.LabelModel)
	}
	return asking("load of earlier days", sum("namespace,"+modelserver.LabelModel, q.ofEngines("sum", each(modelserver.Completed, rate), modelserver.LabelModel)))
}

// Earlier returns how the load of each model went on from this time of day on earlier days,
// with one range query for each of forecast.HistoryAgo. A model has as many of them as
// Prometheus has; with an error, what is there is good.
//
// It counts completed requests, which on the scale of forecast.HistoryStep are those that
// arrived, unless they were too many to serve.
func (c *Client) Earlier(ctx context.Context, now time.Time) (map[decision.ModelKey][]forecast.History, error) {
	at := now.Truncate(forecast.HistoryStep)
	histories := map[decision.ModelKey][]forecast.History{}
	var failures []error
	for _, ago := range forecast.HistoryAgo {
		r := v1.Range{Start: at.Add(-ago - forecast.HistoryBehind), End: at.Add(-ago + forecast.HistoryAhead), Step: forecast.HistoryStep}
		answer, err := c.over(ctx, completions(), r, now)
		if err != nil {
			failures = append(failures, err)
		}
		for _, series := range answer {
			key := decision.ModelKey{Namespace: string(series.Metric[modelserver.LabelNamespace]), ID: string(series.Metric[modelserver.LabelModel])}
			if key.ID != "" {
				histories[key] = append(histories[key], historyOf(series, ago, r))
			}
		}
	}
	return histories, errors.Join(failures...)
}

func historyOf(series *model.SampleStream, ago time.Duration, r v1.Range) forecast.History {
	h := forecast.History{Ago: ago, From: r.Start.Add(-r.Step), Step: r.Step, Rates: make([]float64, int(r.End.Sub(r.Start)/r.Step)+1)}
	for i := range h.Rates {
		h.Rates[i] = math.NaN()
	}
	for _, pair := range series.Values {
		if i := int(pair.Timestamp.Time().Sub(r.Start) / r.Step); i >= 0 && i < len(h.Rates) {
			h.Rates[i] = float64(pair.Value)
		}
	}
	return h
}

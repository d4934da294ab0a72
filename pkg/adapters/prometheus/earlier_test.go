package prometheus

import (
	"math"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// counter is a server that counts so many completed requests a minute.
type counter struct {
	labels             string
	perMinute, counted float64
}

func (s *counter) scrape() map[string]float64 {
	return map[string]float64{"vllm:request_success_total{" + s.labels + "}": s.counted}
}

// The load of yesterday's time of day is read with one query for each time ago, for all
// models at once; what no server told then is unknown, and not zero.
func TestTheLoadOfEarlierDays(t *testing.T) {
	p := prometheustest.New(t)
	one := &counter{labels: `model_name="llama", namespace="models", pod="a", instance="10.0.0.1:8000"`}
	two := &counter{labels: `model_name="llama", namespace="models", pod="b", instance="10.0.0.2:8000"`, perMinute: 30}
	other := &counter{labels: `model_name="llama", namespace="elsewhere", pod="c", instance="10.0.0.3:8000"`, perMinute: 12}
	// From an hour before that time of day to an hour after it; it doubles half an hour in.
	for at := -time.Hour; at <= time.Hour; at += scrapeInterval {
		one.perMinute = 60
		if at >= 30*time.Minute {
			one.perMinute = 150
		}
		for _, s := range []*counter{one, two, other} {
			s.counted += s.perMinute / 4
			p.Append(start.Add(at), s.scrape())
		}
	}
	var asked atomic.Int64
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		p.Handler.ServeHTTP(w, r)
	}))
	day := forecast.HistoryAgo[0]
	histories, err := client.Earlier(t.Context(), start.Add(day))
	require.NoError(t, err)
	assert.EqualValues(t, len(forecast.HistoryAgo), asked.Load())

	require.Len(t, histories, 2)
	mine := histories[decision.ModelKey{Namespace: "models", ID: "llama"}]
	require.Len(t, mine, 1, "nobody knows of a week ago")
	h := mine[0]
	assert.Equal(t, day, h.Ago)
	assert.Equal(t, forecast.HistoryStep, h.Step)
	rate := func(at time.Duration) float64 {
		i := int(start.Add(at).Sub(h.From) / h.Step)
		require.Less(t, i, len(h.Rates))
		return h.Rates[i]
	}
	assert.LessOrEqual(t, h.From, start.Add(-forecast.HistoryBehind))
	assert.InEpsilon(t, 1.5, rate(-5*time.Minute), 0.01, "both servers")
	assert.InEpsilon(t, 1.5, rate(20*time.Minute), 0.01)
	assert.InEpsilon(t, 3, rate(40*time.Minute), 0.01)
	assert.True(t, math.IsNaN(rate(90*time.Minute)), "nobody was scraped then")
	assert.InEpsilon(t, 0.2, histories[decision.ModelKey{Namespace: "elsewhere", ID: "llama"}][0].Rates[0], 0.01)

	// What the decision asks of it: how the load goes on from now.
	histories, err = client.Earlier(t.Context(), start.Add(3*day))
	require.NoError(t, err)
	assert.Empty(t, histories)
}

func TestTheLoadOfEarlierDaysNamesWhatFails(t *testing.T) {
	p := prometheustest.New(t)
	s := &counter{labels: `model_name="llama", namespace="models", pod="a", instance="10.0.0.1:8000"`, perMinute: 60}
	for at := time.Duration(0); at <= time.Hour; at += scrapeInterval {
		s.counted += s.perMinute / 4
		p.Append(start.Add(at), s.scrape())
	}
	var asked atomic.Int64
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			p.Handler.ServeHTTP(w, r)
			return
		}
		http.Error(w, `{"status":"error","errorType":"timeout","error":"query timed out"}`, http.StatusUnprocessableEntity)
	}))
	histories, err := client.Earlier(t.Context(), start.Add(forecast.HistoryAgo[0]))
	require.ErrorContains(t, err, ": looking back for the load of earlier days: ")
	assert.Len(t, histories, 1, "what was answered is good")
}

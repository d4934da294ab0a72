package prometheus

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/modelserver"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// One Prometheus for several clusters, which have the same pods of the same model in the same
// namespace, as from one git repository.
func TestSeveralClustersInOnePrometheus(t *testing.T) {
	p := prometheustest.New(t)
	times := scrapes(6)
	for i, at := range times {
		for _, cluster := range []string{"a", "b"} {
			values := load(fmt.Sprintf(`cluster=%q, namespace="models", pod="p-0", instance=%[1]q, model_name="llama"`, cluster), at.Sub(start))
			for series := range values {
				if i == len(times)-1 {
					values[series] = prometheustest.Stale // so that the dear question is asked too
				}
			}
			gateway := fmt.Sprintf(`cluster=%q, namespace="models", pod="epp", instance=%[1]q, model_name="llama"`, cluster)
			values["inference_extension_flow_control_queue_size{"+gateway+"}"] = 4
			values[`inference_extension_scheduler_attempts_total{status="success", `+gateway+"}"] = 2 * at.Sub(start).Seconds()
			values[ttftSeries+`_bucket{cluster="`+cluster+`", namespace="models", pod="p-0", model_name="llama", le="1"}`] = at.Sub(start).Seconds()
			values[ttftSeries+`_bucket{cluster="`+cluster+`", namespace="models", pod="p-0", model_name="llama", le="+Inf"}`] = 2 * at.Sub(start).Seconds()
			p.Append(at, values)
		}
	}
	var selectors atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		expression, err := parser.NewParser(parser.Options{}).ParseExpr(r.FormValue("query"))
		if assert.NoError(t, err, r.FormValue("query")) {
			parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
				if s, ok := node.(*parser.VectorSelector); ok {
					selectors.Add(1)
					assert.Contains(t, s.String(), `cluster="a"`)
					assert.Contains(t, s.String(), `zone!~"x|y"`)
				}
				return nil
			})
		}
		p.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	o := options(server.URL)
	o.AllowHTTP, o.Matchers = true, `cluster="a", zone!~"x|y"`
	client, err := New(o)
	require.NoError(t, err)

	last := times[len(times)-1]
	replicas, models, err := client.Read(t.Context(), last.Add(time.Second), window, lookback)
	require.NoError(t, err)
	assert.InDelta(t, 20, replicas[pod("p-0")].Running.Value, 1e-9)
	assert.InDelta(t, 4, models[modelKey("llama")].Queue.Value, 1e-9)
	assert.InDelta(t, 2, models[modelKey("llama")].Arrival.Value, 1e-9)
	queues, err := client.Queues(t.Context(), last)
	require.NoError(t, err)
	assert.InDelta(t, 4, queues[modelKey("llama")].Value, 1e-9)
	_, err = client.Earlier(t.Context(), last)
	require.NoError(t, err)
	_, err = client.Range(t.Context(), running, StepsOf(scrapeInterval, "llama", "").Over("avg_over_time", modelserver.Running, ""), v1.Range{Start: start, End: last, Step: scrapeInterval})
	require.NoError(t, err)
	_, err = client.Met(t.Context(), last, window, map[decision.ModelKey]capacity.SLO{modelKey("llama"): {TTFT: 1000, ITL: 50}})
	require.NoError(t, err)
	assert.Greater(t, selectors.Load(), int64(200))
}

func TestMatchersThatPromQLDoesNotTake(t *testing.T) {
	for _, wrong := range []string{`cluster=a`, `{cluster="a"}`, `cluster="a" region="b"`, `cluster="a\.b"`, `cluster=~"(a"`} {
		o := options("https://prometheus.example")
		o.Matchers = wrong
		_, err := New(o)
		require.Error(t, err, wrong)
		assert.ErrorContains(t, err, fmt.Sprintf("PROMETHEUS_MATCHERS is %q: write matchers of PromQL with commas between them, such as cluster=\"a\": ", wrong))
	}
}

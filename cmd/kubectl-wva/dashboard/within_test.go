package dashboard

import (
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/prometheus"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// Three models: one whose servers count the mean time per token of each request, one whose
// servers count tokens, under another name, and one without a promise. Ends are written as
// versions do.
func TestTheSharesOfModelsAreThoseOfTheirHistograms(t *testing.T) {
	t.Parallel()
	begin := time.Now().Add(-4 * time.Minute).Truncate(15 * time.Second)
	at := func(seconds int) time.Time { return begin.Add(time.Duration(seconds) * time.Second) }
	p := prometheustest.New(t)
	for second := 0; second <= 180; second += 15 {
		n := float64(second)
		values := map[string]float64{}
		count := func(name, model string, ends map[string]float64) {
			for end, each := range ends {
				values[name+`_bucket{namespace="chat",pod="`+model+`",le="`+end+`",model_name="`+model+`"}`] = each * n
			}
		}
		count("vllm:time_to_first_token_seconds", "new", map[string]float64{"0.5": 3, "1.0": 4, "2.5": 4, "+Inf": 4})
		count("vllm:request_time_per_output_token_seconds", "new", map[string]float64{"0.025": 1, "0.05": 3, "+Inf": 4})
		count("vllm:inter_token_latency_seconds", "new", map[string]float64{"0.01": 0, "0.04": 0, "+Inf": 400})
		count("sglang:inter_token_latency_seconds", "old", map[string]float64{"0.02": 100, "0.04": 300, "+Inf": 400})
		count("vllm:time_to_first_token_seconds", "free", map[string]float64{"0.5": 1, "1": 1, "+Inf": 1})
		p.Append(at(second), values)
	}
	server := httptest.NewServer(p.Handler)
	t.Cleanup(server.Close)
	address, err := url.Parse(server.URL)
	require.NoError(t, err)
	q := questions{window: time.Minute, promises: map[modelKey]capacity.SLO{
		{"chat", "new"}: {TTFT: 750, ITL: 50}, {"chat", "old"}: {TTFT: 500, ITL: 30}, {"chat", "silent"}: {TTFT: 1},
	}}
	l, err := newLoads(at(0), 15*time.Second).read(t.Context(), prometheus.At(address), q, at(152))
	require.NoError(t, err)
	last := func(model string) (ttft, itl *float64) {
		points := l.of(modelKey{"chat", model})
		return points[len(points)-1].WithinTTFT, points[len(points)-1].WithinITL
	}
	ttft, itl := last("new")
	assert.InDelta(t, 3.0/4, *ttft, 1e-9, "three of four below 500 ms; of the fourth nobody knows whether it was below 750")
	assert.InDelta(t, 3.0/4, *itl, 1e-9, "of requests, although tokens are counted too")
	ttft, itl = last("old")
	assert.Nil(t, ttft, "unknown is not zero")
	assert.InDelta(t, 1.0/4, *itl, 1e-9, "of tokens, those below 20 ms")
	ttft, itl = last("free")
	assert.Nil(t, ttft, "nothing was promised")
	assert.Nil(t, itl)

	// The same of one namespace alone, in which nobody is.
	q.namespace = "other"
	l, err = newLoads(at(0), 15*time.Second).read(t.Context(), prometheus.At(address), q, at(152))
	require.NoError(t, err)
	ttft, _ = last("new")
	assert.Nil(t, ttft)
}

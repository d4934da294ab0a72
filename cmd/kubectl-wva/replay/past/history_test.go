package past

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"llmd.ai/workload-variant-autoscaler/pkg/adapters/prometheus"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

const interval = 15 * time.Second

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// clientOf asks a Prometheus that answers like this.
func clientOf(t *testing.T, handler http.Handler) *prometheus.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := prometheus.New(prometheus.Options{Address: server.URL, AllowHTTP: true, Timeout: 10 * time.Second})
	require.NoError(t, err)
	return client
}

// pastServer writes the metrics of one vLLM server that serves so many requests a minute of
// 1,000 and 50 tokens.
type pastServer struct {
	labels                       string
	perMinute, inFlight, counted float64
}

func (s *pastServer) scrape() map[string]float64 {
	histogram := func(name string, mean float64, buckets ...float64) map[string]float64 {
		values := map[string]float64{name + "_sum{" + s.labels + "}": s.counted * mean, name + "_count{" + s.labels + "}": s.counted}
		for _, le := range buckets {
			n := s.counted
			if le < mean {
				n = 0
			}
			values[fmt.Sprintf("%s_bucket{%s, le=%q}", name, s.labels, fmt.Sprint(le))] = n
		}
		if len(buckets) > 0 {
			values[name+"_bucket{"+s.labels+`, le="+Inf"}`] = s.counted
		}
		return values
	}
	values := map[string]float64{
		"vllm:request_success_total{" + s.labels + `, finished_reason="stop"}`:   s.counted * 0.75,
		"vllm:request_success_total{" + s.labels + `, finished_reason="length"}`: s.counted * 0.25,
		"vllm:num_requests_running{" + s.labels + "}":                            s.inFlight,
		"vllm:num_requests_waiting{" + s.labels + "}":                            0,
	}
	for _, all := range []map[string]float64{
		histogram("vllm:request_prompt_tokens", 1000, 500, 1000, 2000), histogram("vllm:request_generation_tokens", 50, 20, 50, 100),
		histogram("vllm:time_to_first_token_seconds", 0.2), histogram("vllm:inter_token_latency_seconds", 0.02),
	} {
		for series, value := range all {
			values[series] = value
		}
	}
	return values
}

func TestHistoryCountsWhatWasServed(t *testing.T) {
	p := prometheustest.New(t)
	const minutes = 90
	first := &pastServer{labels: `model_name="llama", namespace="models", pod="llama-6d5f-a", instance="10.0.0.1:8000", engine="0"`, perMinute: 40, inFlight: 4, counted: 100_000}
	late := &pastServer{labels: `model_name="llama", namespace="models", pod="llama-6d5f-b", instance="10.0.0.2:8000", engine="0"`, perMinute: 20, inFlight: 2}
	other := &pastServer{labels: `model_name="other", namespace="models", pod="other-0", instance="10.0.0.3:8000"`, perMinute: 1000}
	const born, anew, gapFrom, gapTo = 30, 60, 70, 74
	for at := time.Duration(0); at <= minutes*time.Minute; at += interval {
		minute := int(at / time.Minute)
		all := []*pastServer{first, other}
		if minute >= born {
			all = append(all, late)
		}
		if at == anew*time.Minute {
			first.counted = 0
		}
		for _, s := range all {
			s.counted += s.perMinute / 4
			if minute < gapFrom || minute >= gapTo {
				p.Append(start.Add(at), s.scrape())
			}
		}
		p.Append(start.Add(at), map[string]float64{
			`vllm:cache_config_info{namespace="models", pod="llama-6d5f-a", instance="10.0.0.1:8000", engine="0", num_gpu_blocks="1000", block_size="16"}`: 1,
			`vllm:cache_config_info{namespace="models", pod="other-0", instance="10.0.0.3:8000", num_gpu_blocks="9", block_size="16"}`:                     1,
		})
	}
	var asked atomic.Int64
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		p.Handler.ServeHTTP(w, r)
	}))
	span := Span{Model: "llama", Namespace: "models", From: start, To: start.Add(minutes * time.Minute), Step: time.Minute}
	h, err := LookBack(t.Context(), client, span)
	require.NoError(t, err)
	once := asked.Swap(0)

	require.Len(t, h.Pods, 2, "those of another model are not seen")
	a, b := h.Pods[0], h.Pods[1]
	assert.Equal(t, types.NamespacedName{Namespace: "models", Name: "llama-6d5f-a"}, a.Pod)
	assert.InDelta(t, 16_000, a.KVTokens, 0)
	assert.Zero(t, b.KVTokens)
	require.Len(t, a.Steps, minutes)
	var completed, inFlight [2]float64
	for k, past := range h.Pods {
		for i, s := range past.Steps {
			completed[k] += s.Completed
			inFlight[k] += s.InFlight
			if s.Completed > 0 && i != anew-1 {
				assert.InDelta(t, 1000, s.Input.Value(), 1e-6)
				assert.InDelta(t, 50, s.Output.Value(), 1e-6)
				assert.InDelta(t, 0.2, s.FirstToken.Value(), 1e-9)
				assert.InDelta(t, 0.02, s.InterToken.Value(), 1e-9)
			}
		}
	}
	assert.InDelta(t, 40*minutes, completed[0], 41, "a restart loses at most what came within a step")
	assert.InDelta(t, 20*(minutes-born), completed[1], 6, "and the first count of a new server is not lost")
	assert.InDelta(t, 0, inFlight[0], 1e-9)
	assert.InDelta(t, 2, inFlight[1], 1e-9)
	assert.InDelta(t, 40, a.Steps[20].Completed, 1e-9)
	assert.InDelta(t, 4, a.Steps[20].Running, 1e-9)
	assert.Zero(t, a.Steps[20].Waiting)
	assert.True(t, a.Steps[20].Seen)
	assert.False(t, b.Steps[20].Seen)
	assert.True(t, math.IsNaN(b.Steps[20].Running))
	assert.InDelta(t, 40, a.Steps[gapFrom+1].Completed, 10, "what was not scraped is spread over the gap")
	assert.True(t, a.Steps[gapFrom+1].Seen)
	assert.True(t, math.IsNaN(a.Steps[gapFrom+1].Running))
	// All are in the bucket that ends at the mean.
	assert.InDelta(t, 995, h.Input.P99, 5)
	assert.InDelta(t, 1000, h.Input.Most, 1e-6)
	assert.InDelta(t, 50, h.Output.Most, 1e-6)

	span.From, span.Step = start.Add(80*time.Minute), 30*time.Second
	_, err = LookBack(t.Context(), client, span)
	require.NoError(t, err)
	assert.Equal(t, once, asked.Load(), "as many queries for any span")

	span.Model = "none"
	h, err = LookBack(t.Context(), client, span)
	require.NoError(t, err)
	assert.Empty(t, h.Pods)
	assert.True(t, math.IsNaN(h.Input.P99))
}

func TestHistoryNamesTheQueryThatFails(t *testing.T) {
	client := clientOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"status":"error","errorType":"timeout","error":"query timed out"}`, http.StatusUnprocessableEntity)
	}))
	_, err := LookBack(t.Context(), client, Span{Model: "llama", From: start, To: start.Add(time.Hour), Step: time.Minute})
	require.ErrorContains(t, err, ": looking back for the ")
	require.ErrorContains(t, err, "query timed out")
	assert.Equal(t, 1, strings.Count(err.Error(), "looking back"), "one failure says it")
}

// A Prometheus that scrapes more seldom than a step is long counts the same.
func TestHistoryOfSeldomScrapes(t *testing.T) {
	p := prometheustest.New(t)
	s := &pastServer{labels: `model_name="llama", namespace="models", pod="a", instance="10.0.0.1:8000"`, inFlight: 3}
	for at := time.Duration(0); at <= 20*time.Minute; at += 2 * time.Minute {
		p.Append(start.Add(at), s.scrape())
		s.counted += 60
	}
	// It was gone for longer than Prometheus shows a value.
	for at := 30 * time.Minute; at <= 40*time.Minute; at += 2 * time.Minute {
		p.Append(start.Add(at), s.scrape())
		s.counted += 60
	}
	h, err := LookBack(t.Context(), clientOf(t, p.Handler), Span{Model: "llama", From: start, To: start.Add(40 * time.Minute), Step: time.Minute})
	require.NoError(t, err)
	require.Len(t, h.Pods, 1)
	steps := h.Pods[0].Steps
	for i, step := range steps {
		seen := i < 20 || i >= 30
		assert.Equal(t, seen, step.Seen, i)
		if seen {
			assert.InDelta(t, 30, step.Completed, 1e-9, i)
		}
	}
	assert.InDelta(t, 6, steps[25].Completed, 1e-9, "what came in the silence is spread over it")
}

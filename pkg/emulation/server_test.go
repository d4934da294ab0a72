package emulation_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/emulation"
)

const (
	// patience is how long a condition may take on a busy machine.
	patience = 30 * time.Second
	tick     = 5 * time.Millisecond
)

// quick is a profile whose iterations all take 2 ms.
var quick = serving.Profile{Base: 2, KVTokens: 16_000, BatchLimit: 64}

// slow is a profile whose first token takes longer than any test.
var slow = serving.Profile{Base: 3_600_000, KVTokens: 16_000}

// serve starts a model server on a free port and waits until it has started.
func serve(t testing.TB, options emulation.ServerOptions) (server *emulation.Server, address string) {
	t.Helper()
	server, err := emulation.NewServer(options)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		require.NoError(t, <-done)
	})
	if options.Startup == 0 {
		<-server.Started()
	}
	return server, listener.Addr().String()
}

func words(n int) string { return strings.Repeat("w ", n) }

// post sends a completions request; the caller closes the body.
func post(ctx context.Context, address, body string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/v1/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	return http.DefaultClient.Do(request)
}

// hang sends a request whose answer is of no interest, and returns when it ends.
func hang(ctx context.Context, address, body string) error {
	response, err := post(ctx, address, body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return errors.Join(err, response.Body.Close())
}

// ask sends a request that is not streamed and returns the status and the body. It
// may be called from any goroutine.
func ask(t testing.TB, address, model string, input, output int) (int, string) {
	t.Helper()
	response, err := post(t.Context(), address, fmt.Sprintf(`{"model":%q,"prompt":%q,"max_tokens":%d}`, model, words(input), output))
	if !assert.NoError(t, err) {
		return 0, ""
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	assert.NoError(t, err)
	return response.StatusCode, string(body)
}

// scrape reads /metrics.
func scrape(t testing.TB, address string) map[string]*dto.MetricFamily {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	require.Equal(t, http.StatusOK, response.StatusCode)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	return families
}

// valueOf is the value of the one series of a family that has the given labels.
func valueOf(t testing.TB, families map[string]*dto.MetricFamily, name string, labels map[string]string) float64 {
	t.Helper()
	require.Contains(t, families, name)
	for _, m := range families[name].GetMetric() {
		found := 0
		for _, l := range m.GetLabel() {
			if labels[l.GetName()] == l.GetValue() {
				found++
			}
		}
		if found == len(labels) {
			return m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	require.Fail(t, "no such series", "%s%v", name, labels)
	return 0
}

func histogramOf(t testing.TB, families map[string]*dto.MetricFamily, name string) *dto.Histogram {
	t.Helper()
	require.Contains(t, families, name)
	require.Len(t, families[name].GetMetric(), 1)
	return families[name].GetMetric()[0].GetHistogram()
}

func TestCompletion(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	status, body := ask(t, address, "llama", 30, 5)
	require.Equal(t, http.StatusOK, status, body)
	var got struct {
		Object  string
		Model   string
		Choices []struct {
			Text         string
			FinishReason string `json:"finish_reason"`
		}
		Usage map[string]int
	}
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	assert.Equal(t, "text_completion", got.Object)
	assert.Equal(t, "llama", got.Model)
	assert.Equal(t, "length", got.Choices[0].FinishReason)
	assert.Len(t, strings.Fields(got.Choices[0].Text), 5)
	assert.Equal(t, map[string]int{"prompt_tokens": 30, "completion_tokens": 5, "total_tokens": 35}, got.Usage)
}

func TestCompletionWithoutMaxTokens(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	response, err := post(t.Context(), address, `{"model":"llama","prompt":"one two"}`)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), `"completion_tokens":16`, "the default of the OpenAI interface")
}

func TestStreamedCompletion(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	for name, c := range map[string]struct {
		output int
		want   []int
	}{
		"first token, the others, the end": {8, []int{1, 7}},
		"a single token":                   {1, []int{1}},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := post(t.Context(), address,
				fmt.Sprintf(`{"model":"llama","prompt":"a b c","max_tokens":%d,"stream":true,"ignore_eos":true}`, c.output))
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			assert.Equal(t, "text/event-stream", response.Header.Get("Content-Type"))
			var events []string
			for lines := bufio.NewScanner(response.Body); lines.Scan(); {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					events = append(events, data)
				}
			}
			require.Len(t, events, len(c.want)+1)
			assert.Equal(t, "[DONE]", events[len(c.want)])
			for i, tokens := range c.want {
				var event struct {
					Choices []struct{ Text string }
					Usage   map[string]int
				}
				require.NoError(t, json.Unmarshal([]byte(events[i]), &event))
				assert.Len(t, strings.Fields(event.Choices[0].Text), tokens)
				if i == len(c.want)-1 {
					assert.Equal(t, map[string]int{"prompt_tokens": 3, "completion_tokens": c.output, "total_tokens": 3 + c.output}, event.Usage)
				} else {
					assert.Nil(t, event.Usage)
				}
			}
		})
	}
}

func TestRefusedCompletions(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	for name, c := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"another model":          {`{"model":"gpt","prompt":"a"}`, http.StatusNotFound, `model \"gpt\" does not exist here`},
		"no JSON":                {`prompt=a`, http.StatusBadRequest, "no completions request"},
		"a prompt of tokens":     {`{"model":"llama","prompt":[1,2]}`, http.StatusBadRequest, "a prompt that is a string"},
		"an empty prompt":        {`{"model":"llama","prompt":" "}`, http.StatusBadRequest, "expected at least 1 of each"},
		"nothing to generate":    {`{"model":"llama","prompt":"a","max_tokens":0}`, http.StatusBadRequest, "expected at least 1 of each"},
		"more than the KV cache": {`{"model":"llama","prompt":"a","max_tokens":16001}`, http.StatusBadRequest, "the server has 16000"},
	} {
		t.Run(name, func(t *testing.T) {
			response, err := post(t.Context(), address, c.body)
			require.NoError(t, err)
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			assert.Equal(t, c.status, response.StatusCode)
			assert.Contains(t, string(body), c.want)
			assert.Contains(t, string(body), `"error"`)
		})
	}
}

func TestServerIsUnavailableUntilItHasStarted(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick, Startup: time.Hour})
	for _, path := range []string{"/health", "/metrics", "/v1/models"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, http.StatusServiceUnavailable, response.StatusCode, path)
	}
	status, body := ask(t, address, "llama", 1, 1)
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.Contains(t, body, "is starting")

	_, address = serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	for _, path := range []string{"/health", "/v1/models"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		_ = response.Body.Close()
		assert.Equal(t, http.StatusOK, response.StatusCode, path)
		if path == "/v1/models" {
			assert.JSONEq(t, `{"object":"list","data":[{"id":"llama","object":"model"}]}`, string(body))
		}
	}
}

// Names, types and labels are those of vLLM.
func TestServerMetrics(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: quick})
	status, _ := ask(t, address, "llama", 30, 5)
	require.Equal(t, http.StatusOK, status)
	families := scrape(t, address)
	types := map[string]string{}
	for name, family := range families {
		types[name] = strings.ToLower(family.GetType().String())
	}
	assert.Equal(t, map[string]string{
		"vllm:num_requests_running":                  "gauge",
		"vllm:num_requests_waiting":                  "gauge",
		"vllm:kv_cache_usage_perc":                   "gauge",
		"vllm:cache_config_info":                     "gauge",
		"vllm:num_preemptions_total":                 "counter",
		"vllm:prefix_cache_queries_total":            "counter",
		"vllm:prefix_cache_hits_total":               "counter",
		"vllm:prompt_tokens_total":                   "counter",
		"vllm:generation_tokens_total":               "counter",
		"vllm:request_success_total":                 "counter",
		"vllm:request_prompt_tokens":                 "histogram",
		"vllm:request_generation_tokens":             "histogram",
		"vllm:time_to_first_token_seconds":           "histogram",
		"vllm:inter_token_latency_seconds":           "histogram",
		"vllm:time_per_output_token_seconds":         "histogram",
		"vllm:request_time_per_output_token_seconds": "histogram",
		"vllm:e2e_request_latency_seconds":           "histogram",
		"vllm:request_queue_time_seconds":            "histogram",
		"vllm:request_inference_time_seconds":        "histogram",
	}, types)
	for name, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			assert.Equal(t, "0", labels["engine"], name)
			if name == "vllm:cache_config_info" {
				assert.NotContains(t, labels, "model_name", "the real one has none")
				assert.Equal(t, "16", labels["block_size"])
				assert.Equal(t, "1000", labels["num_gpu_blocks"])
				continue
			}
			assert.Equal(t, "llama", labels["model_name"], name)
		}
	}
	assert.InDelta(t, 1, valueOf(t, families, "vllm:request_success_total", map[string]string{"finished_reason": "length"}), 0)
	assert.InDelta(t, 0, valueOf(t, families, "vllm:request_success_total", map[string]string{"finished_reason": "stop"}), 0)
	assert.InDelta(t, 30, valueOf(t, families, "vllm:prompt_tokens_total", nil), 0)
	assert.InDelta(t, 5, valueOf(t, families, "vllm:generation_tokens_total", nil), 0)
	assert.InDelta(t, 0, valueOf(t, families, "vllm:num_requests_running", nil), 0)

	// One request on an idle server: five iterations of 2 ms in engine time,
	// however late the timers of this machine are.
	for name, want := range map[string]struct {
		count uint64
		sum   float64
	}{
		"vllm:request_prompt_tokens":                 {1, 30},
		"vllm:request_generation_tokens":             {1, 5},
		"vllm:time_to_first_token_seconds":           {1, 0.002},
		"vllm:inter_token_latency_seconds":           {4, 0.008},
		"vllm:time_per_output_token_seconds":         {4, 0.008},
		"vllm:request_time_per_output_token_seconds": {1, 0.002},
		"vllm:e2e_request_latency_seconds":           {1, 0.010},
		"vllm:request_queue_time_seconds":            {1, 0},
		"vllm:request_inference_time_seconds":        {1, 0.010},
	} {
		h := histogramOf(t, families, name)
		assert.Equal(t, want.count, h.GetSampleCount(), name)
		assert.InDelta(t, want.sum, h.GetSampleSum(), 1e-9, name)
	}
}

func TestMetricsOfAnUnknownCacheAreAbsent(t *testing.T) {
	_, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: serving.Profile{Base: 2}})
	families := scrape(t, address)
	assert.NotContains(t, families, "vllm:kv_cache_usage_perc", "unknown is not zero")
	assert.NotContains(t, families, "vllm:cache_config_info")
}

// Under load the server behaves as its engine says: with iterations that take 2 ms
// and 0.02 ms per prompt token, whatever the timing of the clients.
func TestServerUnderLoadAgreesWithTheEngine(t *testing.T) {
	profile := serving.Profile{Base: 2, PerPrefillToken: 0.02, KVTokens: 16_000, BatchLimit: 8}
	server, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: profile})
	const clients, each, input, output = 24, 4, 50, 20
	var wait sync.WaitGroup
	for range clients {
		wait.Go(func() {
			for range each {
				status, body := ask(t, address, "llama", input, output)
				assert.Equal(t, http.StatusOK, status, body)
			}
		})
	}
	wait.Wait()

	state := server.State()
	assert.EqualValues(t, clients*each, state.Finished)
	assert.EqualValues(t, clients*each*output, state.Generated)
	assert.EqualValues(t, clients*each*input, state.Prefilled)
	assert.Zero(t, state.KVUsed)
	families := scrape(t, address)
	gaps := histogramOf(t, families, "vllm:inter_token_latency_seconds")
	assert.EqualValues(t, clients*each*(output-1), gaps.GetSampleCount())
	mean := gaps.GetSampleSum() / float64(gaps.GetSampleCount())
	// A token takes at least an iteration without a prompt, and at most one that
	// computes a prompt for each of the seven others.
	assert.GreaterOrEqual(t, mean, 0.002)
	assert.LessOrEqual(t, mean, 0.002+7*0.001)
	first := histogramOf(t, families, "vllm:time_to_first_token_seconds")
	queueing := histogramOf(t, families, "vllm:request_queue_time_seconds")
	inService := histogramOf(t, families, "vllm:request_inference_time_seconds")
	assert.Positive(t, queueing.GetSampleSum(), "there are more clients than places")
	endToEnd := histogramOf(t, families, "vllm:e2e_request_latency_seconds")
	assert.InDelta(t, queueing.GetSampleSum()+inService.GetSampleSum(), endToEnd.GetSampleSum(), 1e-6, "waiting and service are all")
	assert.InDelta(t, first.GetSampleSum()+gaps.GetSampleSum(), endToEnd.GetSampleSum(), 1e-6, "so are the tokens")
}

func TestServerForgetsAClientThatIsGone(t *testing.T) {
	server, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: slow})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- hang(ctx, address, `{"model":"llama","prompt":"a b","stream":true}`) }()
	require.Eventually(t, func() bool { return server.State().Running == 1 }, patience, tick)
	leave()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return server.State().Running == 0 }, patience, tick)
	assert.Zero(t, server.State().KVUsed)
	assert.InDelta(t, 1, valueOf(t, scrape(t, address), "vllm:request_success_total", map[string]string{"finished_reason": "abort"}), 0)
}

func TestShutdownFinishesWhatIsInFlight(t *testing.T) {
	server, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: serving.Profile{Base: 20}})
	answers := make(chan string, 1)
	go func() {
		_, body := ask(t, address, "llama", 3, 20)
		answers <- body
	}()
	require.Eventually(t, func() bool { return server.State().Running == 1 }, patience, time.Millisecond)
	require.NoError(t, server.Shutdown(t.Context()))
	assert.Contains(t, <-answers, `"completion_tokens":20`)
	assert.Error(t, hang(t.Context(), address, `{}`), "nothing new")
}

func TestShutdownCutsOffAtItsDeadline(t *testing.T) {
	server, address := serve(t, emulation.ServerOptions{Model: "llama", Profile: slow})
	gone := make(chan error, 1)
	go func() { gone <- hang(t.Context(), address, `{"model":"llama","prompt":"a b"}`) }()
	require.Eventually(t, func() bool { return server.State().Running == 1 }, patience, tick)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, server.Shutdown(ctx), context.DeadlineExceeded)
	assert.Error(t, <-gone)
}

func TestServerRefusals(t *testing.T) {
	_, err := emulation.NewServer(emulation.ServerOptions{Profile: quick})
	assert.ErrorContains(t, err, "no model name")
	_, err = emulation.NewServer(emulation.ServerOptions{Model: "llama"})
	assert.ErrorContains(t, err, "model server of llama")
}

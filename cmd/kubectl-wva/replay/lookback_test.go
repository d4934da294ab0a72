package replay

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/cmd/kubectl-wva/replay/past"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
	"llmd.ai/workload-variant-autoscaler/test/integration/prometheustest"
)

// truth is how fast the replicas of the past were, and asked what a request is like.
var (
	truth = serving.Profile{Base: 6.46, PerResidentToken: 4.71e-5, PerPrefillToken: 0.022, KVTokens: 447_936, BatchLimit: 256}
	asked = capacity.TokenShape{Input: 1000, Output: 200}
)

// pastHours is how long there were metrics, and pastModel of what.
const (
	pastHours = 3
	pastModel = "meta-llama/Llama-3.1-8B-Instruct"
)

// pastServers are a Prometheus that scraped two replicas every 30 seconds for three hours up
// to now, and how many requests they served. The load rises and falls.
func pastServers(t *testing.T, now time.Time) (address string, requests float64, queries *atomic.Int64) {
	t.Helper()
	p := prometheustest.New(t)
	from := now.Add(-pastHours * time.Hour)
	counted, output, first := [2]float64{500, 900}, [2]float64{}, [2]float64{}
	for at := time.Duration(0); at <= pastHours*time.Hour; at += 30 * time.Second {
		batch := 34 - 30*math.Cos(2*math.Pi*at.Hours()/1.5)
		seen := truth.Steady(batch, asked)
		values := map[string]float64{}
		for k := range counted {
			if served := float64(seen.Rate) * 30; at > 0 {
				counted[k] += served
				requests += served
				output[k] += served * float64(asked.Output) * float64(seen.ITL) / 1000
				first[k] += served * float64(seen.TTFT) / 1000
			}
			n := counted[k]
			labels := fmt.Sprintf(`model_name=%q, namespace="chat", pod="llama-8b-h100-7d9f-%c", instance="10.0.0.%d:8000", engine="0"`, pastModel, 'a'+k, k)
			for series, value := range map[string]float64{
				`vllm:request_success_total{%s, finished_reason="stop"}`: n,
				"vllm:num_requests_running{%s}":                          batch,
				"vllm:num_requests_waiting{%s}":                          0,
				"vllm:request_prompt_tokens_sum{%s}":                     n * float64(asked.Input),
				"vllm:request_prompt_tokens_count{%s}":                   n,
				`vllm:request_prompt_tokens_bucket{%s, le="1000"}`:       0.6 * n,
				`vllm:request_prompt_tokens_bucket{%s, le="5000"}`:       n,
				`vllm:request_prompt_tokens_bucket{%s, le="+Inf"}`:       n,
				"vllm:request_generation_tokens_sum{%s}":                 n * float64(asked.Output),
				"vllm:request_generation_tokens_count{%s}":               n,
				`vllm:request_generation_tokens_bucket{%s, le="500"}`:    n,
				`vllm:request_generation_tokens_bucket{%s, le="+Inf"}`:   n,
				"vllm:inter_token_latency_seconds_sum{%s}":               output[k],
				"vllm:inter_token_latency_seconds_count{%s}":             n * float64(asked.Output),
				"vllm:time_to_first_token_seconds_sum{%s}":               first[k],
				"vllm:time_to_first_token_seconds_count{%s}":             n,
			} {
				values[fmt.Sprintf(series, labels)] = value
			}
			values[fmt.Sprintf(`vllm:cache_config_info{namespace="chat", pod="llama-8b-h100-7d9f-%c", instance="10.0.0.%d:8000", engine="0", num_gpu_blocks="27996", block_size="16"}`, 'a'+k, k)] = 1
		}
		p.Append(from.Add(at), values)
	}
	queries = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries.Add(1)
		p.Handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL, requests, queries
}

// twoVariants is a scenario whose variants have no profile.
const twoVariants = `
nodes:
  - {name: h100, count: 4, accelerator: H100, devices: 8}
  - {name: h200, count: 4, accelerator: H200, devices: 8}
prices: {H100: 6, H200: 8, X1: 9}
models:
  - id: meta-llama/Llama-3.1-8B-Instruct
    slo: {ttft: 2000, itl: 40}
    variants:
      - {name: llama-8b-h100, accelerator: H100, acceleratorCount: 1}
      - {name: llama-8b-h200, accelerator: H200, acceleratorCount: 1}
  - id: another
    slo: {ttft: 2000, itl: 40}
    variants:
      - {name: another, accelerator: H100, acceleratorCount: 1, profile: {base: 10}}
`

// The past of a model becomes a trace with as many requests as were counted and the tokens
// that were summed up, and its variants get profiles: one from the metrics of its replicas,
// the other from those of the first.
func TestReplayOfThePast(t *testing.T) {
	t.Chdir(t.TempDir())
	now := time.Now().Truncate(time.Minute)
	address, requests, queries := pastServers(t, now)
	scenario := write(t, "scenario.yaml", twoVariants)
	arguments := []string{"--from-prometheus", address, "--model", pastModel, "--last", "3h", "--scenario", scenario, "--policy", "hybrid,static:2", "-o", "json", "--duration", "10m"}
	out, notes, err := run(t.Context(), append(arguments, "--write-trace", "past.csv")...)
	require.NoError(t, err, notes)
	assert.Contains(t, out, `"policy": "hybrid"`)
	assert.Contains(t, notes, "note: the scenario has 2 models, and "+pastModel+" alone is replayed\n")
	assert.Contains(t, notes, "note: the profile of variant llama-8b-h100 is learned from the metrics of its replicas, as the manager learns it (")
	assert.Contains(t, notes, "; KV cache of 447936 tokens (reported by the server)\n")
	assert.Contains(t, notes, "note: the profile of variant llama-8b-h200 is borrowed from llama-8b-h100 on 1xH100, for 1xH200: ")
	assert.Regexp(t, `note: the requests of meta-llama/Llama-3.1-8B-Instruct from \S+ on are in past.csv: \d+ requests in (3h0m0s|2h5\dm\d+s), 1000 prompt and 200 generated tokens on average`, notes)
	once := queries.Load()

	trace, err := workload.Open(openFile, "past.csv", workload.OpenOptions{})
	require.NoError(t, err)
	sum, err := workload.Summarize(trace)
	require.NoError(t, err)
	assert.InEpsilon(t, requests, float64(sum.Requests), 0.015, "but for those within the minute that had begun")

	// The file is a trace like any other.
	again, _, err := run(t.Context(), "--trace", "past.csv", "--policy", "static:2", "--duration", "10m", "-o", "json")
	require.NoError(t, err)
	assert.Contains(t, again, `"policy": "static:2"`)

	// Without a name the file is called after the model and the time, and the seed draws.
	_, notes, err = run(t.Context(), "--from-prometheus", address, "--model", pastModel, "--last", "30m", "--scenario", scenario, "--policy", "static:2", "--duration", "5m", "--seed", "3")
	require.NoError(t, err)
	assert.Equal(t, once, queries.Load()-once, "as many queries for any time")
	files, err := filepath.Glob("Llama-3.1-8B-Instruct-*Z.csv")
	require.NoError(t, err)
	require.Len(t, files, 1)
	assert.Contains(t, notes, " on are in "+files[0]+": ")
}

// What is learned is what the replicas were: the time per token within a tenth, over the
// batches that were seen.
func TestProfilesAreLearnedFromThePast(t *testing.T) {
	now := time.Now().Truncate(time.Minute)
	address, _, _ := pastServers(t, now)
	p, err := past.Read(t.Context(), past.Options{Address: address, Model: pastModel, Namespace: "chat", Last: pastHours * time.Hour, Now: now})
	require.NoError(t, err)
	assert.Empty(t, p.Notes)
	owns := func(name string) func(string) bool {
		return func(pod string) bool { return strings.HasPrefix(pod, name+"-") }
	}
	h100 := capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1}
	found := p.Profiles([]past.Variant{
		{Name: "own", Shape: h100, Owns: owns("llama-8b-h100"), Arguments: serving.Arguments{MaxSequences: 128}},
		{Name: "alike", Shape: h100, Owns: owns("another")},
	})
	profile := found["own"].Profile
	for _, batch := range []float64{5, 10, 20, 40, 60} {
		assert.InEpsilon(t, float64(truth.Steady(batch, asked).ITL), float64(profile.Steady(batch, asked).ITL), 0.1, "batch %v", batch)
	}
	assert.Equal(t, capacity.Tokens(447_936), profile.KVTokens)
	assert.Equal(t, 128, profile.BatchLimit, "that of its arguments")
	assert.Contains(t, found["alike"].Source, "borrowed from own on 1xH100, which is alike; KV cache of ")
	assert.Contains(t, found["alike"].Source, " tokens (memory and model size)")

	// Where nobody showed anything, figures say what they can.
	found = p.Profiles([]past.Variant{
		{Name: "figures", Shape: capacity.Shape{Accelerator: "L40S", Devices: 1, Pods: 1}, Owns: owns("nobody")},
		{Name: "unknown", Shape: capacity.Shape{Accelerator: "X1", Devices: 1, Pods: 1}, Owns: owns("nobody")},
	})
	assert.Contains(t, found["figures"].Source, "estimated from the published figures of "+pastModel+" and 1xL40S")
	assert.Greater(t, found["figures"].Profile.Base, capacity.Milliseconds(10))
	assert.NotContains(t, found, "unknown")
}

func TestThePastNeedsMetrics(t *testing.T) {
	now := time.Now().Truncate(time.Minute)
	address, _, _ := pastServers(t, now)
	_, err := past.Read(t.Context(), past.Options{Address: address, Model: "other", Namespace: "chat", Last: time.Hour, Now: now})
	require.EqualError(t, err, `--from-prometheus: there are no series of vLLM or SGLang with model_name="other" and namespace="chat" in the last 1h: see with the query vllm:request_success_total what the labels are, and that Prometheus scrapes the servers`)

	p, err := past.Read(t.Context(), past.Options{Address: address, Model: pastModel, Last: 5 * time.Hour, Now: now})
	require.NoError(t, err)
	require.Len(t, p.Notes, 1)
	assert.Regexp(t, "^the metrics of the model cover 3h of the last 5h, from .* on; that is what is replayed", p.Notes[0])
	assert.Equal(t, now.Add(-pastHours*time.Hour).Truncate(time.Minute).UTC(), p.From.UTC())
}

func TestPrometheusMayWantCredentials(t *testing.T) {
	seen := atomic.Pointer[string]{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(new(r.Header.Get("Authorization")))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"matrix","result":[]}}`))
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	token, ca := write(t, "token", "secret\n"), filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(ca, certificate(server), 0o600))
	arguments := []string{"--from-prometheus", server.URL, "--model", "m", "--scenario", write(t, "s.yaml", twoVariants)}
	_, _, err := run(t.Context(), arguments...)
	require.ErrorContains(t, err, "certificate")
	_, _, err = run(t.Context(), append(arguments, "--prometheus-ca-file", ca, "--prometheus-token-file", token)...)
	require.ErrorContains(t, err, `there are no series of vLLM or SGLang with model_name="m" in the last 24h`)
	assert.Equal(t, "Bearer secret", *seen.Load())
}

func TestMistakesAboutThePast(t *testing.T) {
	scenario := write(t, "scenario.yaml", twoVariants)
	now := time.Now().Truncate(time.Minute)
	address, _, _ := pastServers(t, now)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	unknown := write(t, "unknown.yaml", strings.ReplaceAll(twoVariants, "accelerator: H200", "accelerator: X1"))
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no model":              {[]string{"--from-prometheus", "http://p:9090"}, "--model is missing: expected the name by which clients ask for the model"},
		"no address":            {[]string{"--from-prometheus", "p:9090", "--model", "m"}, "--from-prometheus is no address: expected one such as http://localhost:9090"},
		"an empty address":      {[]string{"--from-prometheus", "", "--model", "m"}, "--model goes with --from-prometheus only"},
		"a password":            {[]string{"--from-prometheus", "http://u:p@p:9090", "--model", "m"}, "--from-prometheus has credentials in it: expected an address without"},
		"hardly any time":       {[]string{"--from-prometheus", "http://p:9090", "--model", "m", "--last", "1m"}, "--last is 1m: expected from 5m to 8784h"},
		"a trace too":           {with("--from-prometheus", "http://p:9090", "--model", "m"), "--trace and --from-prometheus are both given: expected one of them"},
		"--last alone":          {with("--last", "1h"), "--last goes with --from-prometheus only: expected both or none"},
		"nobody there":          {[]string{"--from-prometheus", closed.URL, "--model", "m", "--scenario", scenario}, "--from-prometheus: prometheus " + closed.URL + ": looking back for the "},
		"no file can be there":  {[]string{"--from-prometheus", address, "--model", pastModel, "--last", "3h", "--scenario", scenario, "--write-trace", "/none/t.csv"}, "--write-trace: /none/t.csv cannot be written"},
		"a model that is not":   {[]string{"--from-prometheus", address, "--model", pastModel, "--last", "3h", "--write-trace", filepath.Join(t.TempDir(), "t"), "--scenario", "two-models"}, `--model is "meta-llama/Llama-3.1-8B-Instruct": expected a model of the scenario (`},
		"devices without facts": {[]string{"--from-prometheus", address, "--model", pastModel, "--last", "3h", "--write-trace", filepath.Join(t.TempDir(), "t"), "--scenario", unknown}, "no latency profile is known of llama-8b-h200: its replicas left no metrics in the last 3h, and there are no published figures of meta-llama/Llama-3.1-8B-Instruct on its devices; expected"},
	} {
		_, _, err := run(t.Context(), c.args...)
		assert.ErrorContains(t, err, c.says, name)
	}
}

func TestNamesOfTraces(t *testing.T) {
	at := time.Date(2026, 11, 22, 14, 0, 0, 0, time.UTC)
	assert.Equal(t, "Llama-3.1-8B-Instruct-20261122T1400Z.csv", traceName(pastModel, at))
	assert.Equal(t, "my-model-20261122T1400Z.csv", traceName("/models/my model", at))
}

func TestWhosePodItIs(t *testing.T) {
	targets := []string{"llama", "llama-large", "other"}
	for pod, want := range map[string]int{"llama-7d9f-x": 0, "llama-large-7d9f-x": 1, "llama-large-0": 1, "llamas-0": -1, "other": -1} {
		assert.Equal(t, want, ownerOf(pod, targets), pod)
	}
}

// certificate is that of a test server.
func certificate(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

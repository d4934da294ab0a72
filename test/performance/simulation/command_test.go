package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/test/performance/harness"
)

// truth are the constants that the made data were made with.
var truth = efficiency{Overhead: 3, Arithmetic: 0.8}

const header = "model,isl_nominal,osl_nominal,strategy,rps,isl_mean,osl_mean,ttft_ms_mean,ttft_ms_p50,ttft_ms_p99,itl_ms_mean,itl_ms_p99,duration_s\n"

// madeSweep writes what the engine would have shown of four shapes at two rates.
func madeSweep(t *testing.T, folder string) {
	t.Helper()
	var text strings.Builder
	text.WriteString(header)
	for _, in := range []float64{64, 2048} {
		for _, out := range []float64{32, 256} {
			for _, rate := range []float64{1, 4} {
				r := row{model: "meta-llama/Llama-3.1-8B", in: in, out: out, offered: rate, rate: rate, input: in, duration: 10 * time.Second}
				s, err := judge{}.row(r, truth)
				require.NoError(t, err)
				fmt.Fprintf(&text, "%s,%v,%v,constant@%v,%v,%v,%v,%v,%v,%v,%v,%v,10\n", r.model, in, out, rate, rate, in, out,
					s.meanTTFT, s.meanTTFT, s.p99TTFT, s.meanTPOT, s.p99TPOT)
			}
			fmt.Fprintf(&text, "m,%v,%v,throughput,5,%v,%v,9,9,9,9,9,10\n", in, out, in, out)
		}
	}
	path := filepath.Join(folder, defaultSweep)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
}

const madeMeta = `{"model": "/models/Llama-3.1-8B-Instruct", "engine_kwargs": {"tensor_parallel_size": 1, "data_parallel_size": 1,
	"max_num_seqs": 4, "max_num_batched_tokens": 512, "dtype": "bfloat16", "kv_cache_dtype": "auto"},
	"kv_cache": {"num_kv_tokens": 2400}, "hardware": {"device_name": "NVIDIA GeForce RTX 4090"}}`

// madeRun writes a run of the engine itself with the constants, whose few tokens of
// cache and places in the batch make requests wait and lose their place.
func madeRun(t *testing.T, folder string, constants efficiency) {
	t.Helper()
	require.NoError(t, os.MkdirAll(folder, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "meta.json"), []byte(madeMeta), 0o600))
	model, err := modelNamed("Llama-3.1-8B", "bfloat16", "auto")
	require.NoError(t, err)
	device, err := deviceNamed("NVIDIA GeForce RTX 4090", 1, false)
	require.NoError(t, err)
	profile := roofline(model, device, usual(constants))
	profile.KVTokens, profile.BatchLimit = 2400, 4
	requests := make([]request, 40)
	for i := range requests {
		requests[i] = request{at: time.Duration(i) * 250 * time.Millisecond, input: 100 + 37*i%900, output: 1 + 53*i%300}
	}
	all, err := server{profile: profile, budget: 512}.serve(requests, 0)
	require.NoError(t, err)
	require.Len(t, all, len(requests))
	var text strings.Builder
	for i, s := range all {
		arrived := requests[i].at.Seconds()
		first := 500 + arrived + s.ttft.Seconds()
		fmt.Fprintf(&text, `{"request_id": "r%d", "input_toks": %d, "output_toks": %d, "arrival_time": %.7f, "queued_ts": %.9f, "scheduled_ts": 0, "first_token_ts": %.9f, "last_token_ts": %.9f}`+"\n",
			i, requests[i].input, s.output, 1.7e9+arrived, 500+arrived, first, first+s.perToken.Seconds()*float64(s.output-1))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "requests.jsonl"), []byte(text.String()), 0o600))
}

func run(t *testing.T, out io.Writer, args ...string) error {
	t.Helper()
	return Run(t.Context(), &harness.Call{Args: args, Out: out, Log: io.Discard})
}

func TestTheEngineFindsItself(t *testing.T) {
	data, target := t.TempDir(), filepath.Join(t.TempDir(), "bench.json")
	madeSweep(t, data)
	madeRun(t, filepath.Join(data, "made"), truth)
	var out strings.Builder
	require.NoError(t, run(t, &out, "--data", data, "--run", "made", "--out", target, "--rows"))

	text, err := os.ReadFile(target)
	require.NoError(t, err)
	var shape []map[string]any
	require.NoError(t, json.Unmarshal(text, &shape))
	require.Len(t, shape, 2)
	for _, line := range shape {
		assert.Len(t, line, 5)
	}
	var results []result
	require.NoError(t, json.Unmarshal(text, &results))
	assert.Equal(t, "llama31_8b_h100_vllm_guidellm", results[0].Run)
	assert.Equal(t, "made", results[1].Run)
	for _, r := range results {
		for i, v := range r.values() {
			assert.Less(t, v, 4.0, "%s %d: the fit should find the constants", r.Run, i)
		}
	}
	assert.Contains(t, out.String(), "8 constant-rate rows of 4 token shapes")
	assert.Contains(t, out.String(), "at most 4 sequences, 512 tokens per iteration, 2400 tokens of KV cache")
	assert.NotContains(t, out.String(), "misses the target")
}

func TestAMissedTargetIsAnErrorAfterTheFile(t *testing.T) {
	data, target := t.TempDir(), filepath.Join(t.TempDir(), "bench.json")
	madeSweep(t, data)
	// A server with three times the overhead of the one that the sweep is of.
	madeRun(t, filepath.Join(data, "made"), efficiency{Overhead: 9, Arithmetic: truth.Arithmetic})
	for _, to := range []string{target, ""} {
		var out strings.Builder
		require.ErrorIs(t, run(t, &out, "--data", data, "--run", "made", "--out", to), harness.ErrMissed)
		assert.Contains(t, out.String(), "made misses the target of its mean TPOT")
		assert.NotContains(t, out.String(), "guidellm misses")
	}
	text, err := os.ReadFile(target)
	require.NoError(t, err)
	var results []result
	require.NoError(t, json.Unmarshal(text, &results))
	require.Len(t, results, 2)
	assert.Greater(t, results[1].MeanTPOTErrorPct, 10.0)
}

func TestWhichTargetsAreMissed(t *testing.T) {
	at := result{"run", 15, 25, 10, 25}
	for name, tc := range map[string]struct {
		results []result
		want    []string
	}{
		"exactly at all of them": {[]result{at}, nil},
		"no error at all":        {[]result{{Run: "run"}}, nil},
		"mean TTFT":              {[]result{at, {"run", 15.01, 25, 10, 25}}, []string{"run misses the target of its mean TTFT"}},
		"p99 TTFT":               {[]result{{"run", 15, 25.01, 10, 25}, at}, []string{"run misses the target of its p99 TTFT"}},
		"mean TPOT":              {[]result{{"run", 15, 25, 10.01, 25}}, []string{"run misses the target of its mean TPOT"}},
		"p99 TPOT":               {[]result{{"run", 15, 25, 10, 25.01}}, []string{"run misses the target of its p99 TPOT"}},
		"no number":              {[]result{{"run", math.NaN(), 25, 10, 25}}, []string{"run misses the target of its mean TTFT"}},
		"two runs": {[]result{{"sweep", 16, 25, 10, 25}, {"run", 15, 25, 11, 25}},
			[]string{"sweep misses the target of its mean TTFT", "run misses the target of its mean TPOT"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, missed(tc.results)) })
	}
}

func TestARunOfTheEngineItselfIsPredictedExactly(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	madeRun(t, folder, truth)
	r, err := readRecord(folder)
	require.NoError(t, err)
	predicted, err := judge{}.record(r, truth)
	require.NoError(t, err)
	for i, m := range predicted.against(summarize(r.measured, false)) {
		assert.InDelta(t, 0, m, 1e-5, i)
	}
	slower, err := judge{}.record(r, efficiency{Overhead: 6, Arithmetic: 0.8})
	require.NoError(t, err)
	for i, m := range slower.against(summarize(r.measured, false)) {
		assert.Greater(t, m, 0.05, i)
	}
}

func TestAClientSeesTheFirstTokenOneIterationLater(t *testing.T) {
	// 10 ms per iteration whatever is in it.
	profile := serving.Profile{Base: 10}
	requests := []request{{0, 5, 3}, {0, 5, 1}}
	inside, err := server{profile: profile}.serve(requests, 0)
	require.NoError(t, err)
	assert.Equal(t, []served{{10 * time.Millisecond, 10 * time.Millisecond, 3}, {10 * time.Millisecond, 0, 1}}, inside)
	outside, err := server{profile: profile, client: true}.serve(requests, 0)
	require.NoError(t, err)
	assert.Equal(t, []served{{20 * time.Millisecond, 10 * time.Millisecond, 3}, {20 * time.Millisecond, 0, 1}}, outside)
	some, err := server{profile: profile}.serve(requests, 20*time.Millisecond)
	require.NoError(t, err)
	assert.Len(t, some, 1, "the other one finishes after the end")
}

func TestStatistics(t *testing.T) {
	all := make([]served, 0, 100)
	for i := range 100 {
		all = append(all, served{ttft: time.Duration(i+1) * time.Millisecond, perToken: 10 * time.Millisecond, output: 2})
	}
	all[99].perToken, all[99].output = 20*time.Millisecond, 100
	s := summarize(all, false)
	assert.InDelta(t, 50.5, s.meanTTFT, 1e-9)
	assert.InDelta(t, 99, s.p99TTFT, 1e-9)
	assert.InDelta(t, 10.1, s.meanTPOT, 1e-9)
	assert.InDelta(t, 10, s.p99TPOT, 1e-9)
	s = summarize(all, true)
	assert.InDelta(t, 15, s.meanTPOT, 1e-9, "99 gaps of 10 ms and 99 of 20 ms")
	assert.InDelta(t, 20, s.p99TPOT, 1e-9)
	assert.Equal(t, miss{0.1, 0.3, 0.2, 0.2}, rounded(meanSize([]miss{{0.1, -0.2, 0, 0.1}, {-0.1, 0.4, 0.4, -0.3}})))
	assert.Equal(t, statistics{}, summarize([]served{}, true))
}

func rounded(m miss) miss {
	for i := range m {
		m[i] = float64(int(m[i]*1e6+0.5)) / 1e6
	}
	return m
}

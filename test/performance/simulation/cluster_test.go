package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// engine is an instance of a config.json.
const engine = `{"model_name": "/models/Llama-3.1-8B-Instruct", "hardware": "RTX4090", "npu_mem": {"mem_size": 24, "mem_bw": 1008}, "num_npus": 1, "tp_size": 1, "pd_type": null}`

// clusterOf is a config.json with such instances on one node.
func clusterOf(instances ...string) string {
	return `{"link_bw": 16, "link_latency": 1000, "nodes": [{"num_instances": 1, "instances": [` + strings.Join(instances, ",") + `]}]}`
}

// bareMeta says nothing of the hardware.
var bareMeta = strings.NewReplacer(`, "hardware": {"device_name": "NVIDIA GeForce RTX 4090"}`, "", `"kv_cache": {"num_kv_tokens": 2400}`, `"num_requests": 1`).Replace(madeMeta)

const oneRequest = `{"request_id": "a", "input_toks": 5, "output_toks": 2, "arrival_time": 10, "queued_ts": 1, "first_token_ts": 2, "last_token_ts": 3}`

// writeRun writes a run's files, in the folder or, with the cluster beside it, in vllm.
func writeRun(t *testing.T, within, meta, cluster string) (folder string) {
	t.Helper()
	require.NotContains(t, bareMeta, "hardware")
	require.NotContains(t, bareMeta, "num_kv_tokens")
	folder = t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, within), 0o700))
	for path, text := range map[string]string{filepath.Join(within, "meta.json"): meta, filepath.Join(within, "requests.jsonl"): oneRequest, "config.json": cluster} {
		if text != "" {
			require.NoError(t, os.WriteFile(filepath.Join(folder, path), []byte(text), 0o600))
		}
	}
	return folder
}

func TestHardwareThatConfigAloneNames(t *testing.T) {
	for _, within := range []string{"", "vllm"} {
		r, err := readRecord(writeRun(t, within, bareMeta, clusterOf(engine)))
		require.NoError(t, err)
		assert.Equal(t, "NVIDIA GeForce RTX 4090", r.meta.Hardware.Device)
		assert.Equal(t, 1, r.engines)
		assert.False(t, r.sharing)
		p, err := judge{}.profile(r, truth)
		require.NoError(t, err)
		// (24 GiB * 0.99 * 0.9 - 1.2 GiB - 512 tokens of 72 KiB - 8.03e9 parameters of 2 bytes) / 128 KiB
		assert.InDelta(t, (24*0.99*0.9-1.2-512*72./(1<<20)-8.03e9*2/(1<<30))*(1<<13), float64(p.KVTokens), 1)
		assert.Equal(t, 4, p.BatchLimit)
	}
	// What meta.json says counts.
	r, err := readRecord(writeRun(t, "", madeMeta, clusterOf(strings.ReplaceAll(engine, "RTX4090", "H100"))))
	require.NoError(t, err)
	assert.Equal(t, "NVIDIA GeForce RTX 4090", r.meta.Hardware.Device)
	p, err := judge{}.profile(r, truth)
	require.NoError(t, err)
	assert.InDelta(t, 2400, float64(p.KVTokens), 0)
}

func TestSeveralEngines(t *testing.T) {
	two := strings.Replace(bareMeta, `data_parallel_size": 1`, `data_parallel_size": 2`, 1)
	grouped := strings.Replace(engine, `"pd_type"`, `"dp_group": "A", "pd_type"`, 1)
	mixture := strings.NewReplacer("/models/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B-Instruct-2507", `"RTX4090"`, `"RTXPRO6000"`, `"mem_size": 24, "mem_bw": 1008`, `"mem_size": 96, "mem_bw": 1597`)
	tensor := strings.NewReplacer(`tensor_parallel_size": 1`, `tensor_parallel_size": 2`, `"num_npus": 1, "tp_size": 1`, `"num_npus": 2, "tp_size": 2`)
	for name, c := range map[string]struct {
		meta, cluster    string
		engines, devices int
		sharing          int
		refused          string
	}{
		"servers of their own":       {bareMeta, clusterOf(engine, engine, engine), 3, 1, 0, ""},
		"one server":                 {two, clusterOf(grouped, grouped), 2, 1, 0, ""},
		"one server of two devices":  {tensor.Replace(two), clusterOf(tensor.Replace(grouped), tensor.Replace(grouped)), 2, 2, 0, ""},
		"meta.json alone":            {strings.Replace(madeMeta, `data_parallel_size": 1`, `data_parallel_size": 2`, 1), "", 2, 1, 0, ""},
		"experts":                    {mixture.Replace(two), mixture.Replace(clusterOf(grouped, grouped)), 2, 1, 2, ""},
		"experts, servers apart":     {mixture.Replace(bareMeta), mixture.Replace(clusterOf(engine, engine)), 2, 1, 0, ""},
		"experts on several devices": {tensor.Replace(mixture.Replace(two)), tensor.Replace(mixture.Replace(clusterOf(grouped, grouped))), 2, 2, 0, "2 engines that share the experts of Qwen/Qwen3-30B-A3B-Instruct-2507, each of 2 devices"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readRecord(writeRun(t, "", c.meta, c.cluster))
			require.NoError(t, err)
			assert.Equal(t, c.engines, r.engines)
			assert.Equal(t, c.devices, r.meta.Engine.Tensor)
			p, err := judge{}.profile(r, truth)
			if c.refused != "" {
				require.ErrorContains(t, err, c.refused)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.sharing, p.Experts.Engines)
			_, err = judge{}.record(r, truth)
			require.NoError(t, err)
		})
	}
	// Engines that share experts have more room for the cache than one with all of them.
	share := func(meta string, instances ...string) float64 {
		r, err := readRecord(writeRun(t, "", mixture.Replace(meta), mixture.Replace(clusterOf(instances...))))
		require.NoError(t, err)
		p, err := judge{}.profile(r, truth)
		require.NoError(t, err)
		return float64(p.KVTokens)
	}
	// Half of 48*128 experts of 3*2048*768 parameters of 2 bytes, over 48*2*4*128*2 bytes.
	assert.InDelta(t, 48*128*3*2048*768./(48*2*4*128*2), share(two, grouped, grouped)-share(bareMeta, engine), 1)
}

func TestRunsThatAreRefusedSayWhatIsMissing(t *testing.T) {
	other := func(old, now string) string { return strings.Replace(engine, old, now, 1) }
	for name, c := range map[string]struct{ meta, cluster, want string }{
		"no hardware at all":    {bareMeta, "", "expected the names model (\"/models/Llama-3.1-8B-Instruct\") and hardware.device_name (\"\"), the latter or the hardware of an instance in a config.json"},
		"no memory":             {bareMeta, clusterOf(other(`"mem_size": 24, `, "")), "num_kv_tokens (0), or of a device's memory"},
		"little memory":         {bareMeta, clusterOf(other(`"mem_size": 24`, `"mem_size": 18`)), "leaves no room for a KV cache on 1 devices of 18 GiB"},
		"unknown hardware":      {bareMeta, clusterOf(other("RTX4090", "TPU")), `no published figures for the hardware "TPU" with a memory of 1008 GB/s; known are NVIDIA A100`},
		"another memory":        {bareMeta, clusterOf(other("1008", "900")), `no published figures for the hardware "RTX4090" with a memory of 900 GB/s`},
		"which of two":          {bareMeta, clusterOf(other(`"RTX4090", "npu_mem": {"mem_size": 24, "mem_bw": 1008}`, `"RTX PRO 6000", "npu_mem": {"mem_size": 96}`)), `may be each of NVIDIA RTX PRO 6000 Blackwell Server Edition, NVIDIA RTX PRO`},
		"no name of hardware":   {bareMeta, clusterOf(other("RTX4090", "")), "instance 1: expected the name of its hardware"},
		"no instances":          {bareMeta, `{"nodes": []}`, "config.json: expected nodes with instances"},
		"no JSON":               {bareMeta, "{", "config.json"},
		"prefill alone":         {bareMeta, clusterOf(other(`"pd_type": null`, `"pd_type": "prefill"`)), "instance 1: it does prefill alone"},
		"a pipeline":            {bareMeta, clusterOf(other(`"tp_size": 1`, `"tp_size": 1, "pp_size": 2`)), "pipeline parallelism is not modelled"},
		"devices to spare":      {bareMeta, clusterOf(other(`"num_npus": 1`, `"num_npus": 2`)), "2 devices of which 1 share each layer"},
		"unlike engines":        {bareMeta, clusterOf(engine, other("RTX4090", "H100")), "instance 2: it differs from the first"},
		"two groups":            {bareMeta, clusterOf(other(`"pd_type"`, `"dp_group": "A", "pd_type"`), other(`"pd_type"`, `"dp_group": "B", "pd_type"`)), "instance 2: it differs from the first"},
		"another model":         {bareMeta, clusterOf(other("8B", "70B")), `the models differ: "/models/Llama-3.1-8B-Instruct" and "/models/Llama-3.1-70B-Instruct"`},
		"another width":         {bareMeta, clusterOf(other(`"num_npus": 1, "tp_size": 1`, `"num_npus": 2, "tp_size": 2`)), "tensor_parallel_size is 1 and tp_size 2"},
		"another number":        {strings.Replace(bareMeta, `data_parallel_size": 1`, `data_parallel_size": 4`, 1), clusterOf(engine, engine), "data_parallel_size is 4, and there are 2 instances"},
		"a server on two nodes": {bareMeta, strings.Replace(clusterOf(other(`"pd_type"`, `"dp_group": "A", "pd_type"`)), `]}]}`, `]}, {"instances": [`+other(`"pd_type"`, `"dp_group": "A", "pd_type"`)+`]}]}`, 1), "one server on 2 nodes"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := readRecord(writeRun(t, "", c.meta, c.cluster))
			if err == nil {
				_, err = judge{}.profile(r, truth)
			}
			assert.ErrorContains(t, err, c.want)
		})
	}
}

// Of requests that all begin alike, a server with a prefix cache is faster.
func TestRunsWithAPrefixCache(t *testing.T) {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, `{"request_id": "r%d", "input_toks": 1200, "output_toks": 2, "arrival_time": %d, "queued_ts": %d, "first_token_ts": %d.5, "last_token_ts": %d.6, "hash_ids": [1, 2, %d]}`+"\n",
			i, i, i, i, i, 10+i)
	}
	ttft := func(cache, requests string) float64 {
		folder := writeRun(t, "", strings.Replace(madeMeta, `"num_kv_tokens"`, cache+`"num_kv_tokens"`, 1), "")
		require.NoError(t, os.WriteFile(filepath.Join(folder, "requests.jsonl"), []byte(requests), 0o600))
		r, err := readRecord(folder)
		require.NoError(t, err)
		s, err := judge{}.record(r, truth)
		require.NoError(t, err)
		profile, err := judge{}.profile(r, truth)
		require.NoError(t, err)
		var out strings.Builder
		report{&out}.record(r, profile)
		assert.Equal(t, cache == "", strings.Contains(out.String(), "prefix cache"), out.String())
		return s.meanTTFT
	}
	with := ttft("", text.String())
	without := ttft(`"enable_prefix_caching": false, `, text.String())
	unsaid := ttft("", regexp.MustCompile(`, "hash_ids": \[[^]]*\]`).ReplaceAllString(text.String(), ""))
	assert.Less(t, with, 0.4*without, "1,024 of 1,200 tokens")
	assert.InDelta(t, without, unsaid, 1e-9)

	_, _, _, err := parseRequests([]byte(strings.Replace(text.String(), "[1, 2, 12]", "[1]", 1)))
	assert.ErrorContains(t, err, `line 3: request "r2": hash_ids has 1 blocks of a prompt of 1200 tokens`)
}

func TestAFolderOfRuns(t *testing.T) {
	all := t.TempDir()
	madeRun(t, filepath.Join(all, "b"), truth)
	madeRun(t, filepath.Join(all, "a", "vllm"), truth)
	require.NoError(t, os.Mkdir(filepath.Join(all, "c"), 0o700))
	runs, err := runsIn(all)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(all, "a"), filepath.Join(all, "b")}, runs)
	for _, one := range []string{"a", "b", "c"} {
		runs, err = runsIn(filepath.Join(all, one))
		require.NoError(t, err)
		assert.Equal(t, []string{filepath.Join(all, one)}, runs)
	}
	_, err = runsIn(filepath.Join(all, "d"))
	assert.ErrorContains(t, err, "read the run")

	data := t.TempDir()
	madeSweep(t, data)
	var out strings.Builder
	require.NoError(t, run(t, &out, "--data", data, "--run", all, "--out", ""))
	for _, name := range []string{"a", "b"} {
		assert.Regexp(t, `(?m)^`+name+` +[0-3]\.`, out.String(), "a line of the table")
	}
}

// A run of engines themselves is predicted exactly, so that nothing is lost between
// the files and the engines.
func TestRunsOfSeveralEnginesArePredictedExactly(t *testing.T) {
	for name, c := range map[string]struct {
		model, device string
		tensor, data  int
	}{
		"two devices":         {"Qwen/Qwen3-32B", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 2, 1},
		"two engines":         {"meta-llama/Llama-3.1-8B", "NVIDIA GeForce RTX 4090", 1, 2},
		"a mixture":           {"mistralai/Mixtral-8x7B-v0.1", "NVIDIA H200", 1, 1},
		"a mixture over two":  {"Qwen/Qwen3-30B-A3B", "NVIDIA H200", 1, 2},
		"a mixture in pieces": {"mistralai/Mixtral-8x7B-v0.1", "NVIDIA H100 80GB HBM3", 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var r record
			r.meta.Model, r.meta.Hardware.Device, r.meta.Cache.Tokens = c.model, c.device, 2400
			r.meta.Engine.Type, r.meta.Engine.CacheType, r.meta.Engine.Tensor, r.meta.Engine.Data = "bfloat16", "auto", c.tensor, c.data
			r.meta.Engine.Sequences, r.meta.Engine.BatchedTokens = 4, 512
			r.engines, r.sharing = c.data, c.data > 1
			for i := range 40 {
				r.requests = append(r.requests, request{at: time.Duration(i) * 250 * time.Millisecond, input: 100 + 37*i%900, output: 1 + 53*i%300})
			}
			profile, err := judge{}.profile(r, truth)
			require.NoError(t, err)
			all, err := server{profile: profile, budget: 512, engines: c.data}.serve(r.requests, 0)
			require.NoError(t, err)
			var text strings.Builder
			for i, s := range all {
				first := 500 + r.requests[i].at.Seconds() + s.ttft.Seconds()
				fmt.Fprintf(&text, `{"request_id": "r%d", "input_toks": %d, "output_toks": %d, "arrival_time": %.7f, "queued_ts": %.9f, "first_token_ts": %.9f, "last_token_ts": %.9f}`+"\n",
					i, r.requests[i].input, s.output, 1.7e9+r.requests[i].at.Seconds(), 500+r.requests[i].at.Seconds(), first, first+s.perToken.Seconds()*float64(s.output-1))
			}
			r.requests, r.measured, r.prompts, err = parseRequests([]byte(text.String()))
			require.NoError(t, err)
			predicted, err := judge{}.record(r, truth)
			require.NoError(t, err)
			for i, m := range predicted.against(summarize(r.measured, false)) {
				assert.InDelta(t, 0, m, 1e-5, i)
			}
			// The engine that a single device would be is not it.
			r.meta.Engine.Tensor, r.engines, r.sharing = 1, 1, false
			if c.tensor*c.data > 1 {
				alone, err := judge{}.record(r, efficiency{Overhead: truth.Overhead, Arithmetic: truth.Arithmetic})
				require.NoError(t, err)
				assert.Greater(t, alone.against(summarize(r.measured, false))[0], 0.05)
			}
		})
	}
}

func TestWhichServersScheduleAhead(t *testing.T) {
	for meta, want := range map[string]bool{
		`{}`:                          false,
		`{"vllm_version": "0.13.0"}`:  false,
		`{"vllm_version": "0.14.0"}`:  true,
		`{"vllm_version": "v0.19.0"}`: true,
		`{"vllm_version": "1.0"}`:     true,
		`{"vllm_version": "main"}`:    false,
		`{"vllm_version": "0.19.0", "resolved_config": {"scheduler_config": {"async_scheduling": false}}}`: false,
		`{"vllm_version": "0.11.2", "resolved_config": {"scheduler_config": {"async_scheduling": true}}}`:  true,
	} {
		var r record
		require.NoError(t, json.Unmarshal([]byte(meta), &r.meta))
		assert.Equal(t, want, r.ahead(), meta)
	}
}

// A server that schedules ahead takes nothing beside the device's work, and its first tokens
// come an iteration later.
func TestARunOfAServerThatSchedulesAhead(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "made")
	madeRun(t, folder, truth)
	r, err := readRecord(folder)
	require.NoError(t, err)
	before, err := judge{}.profile(r, truth)
	require.NoError(t, err)
	behind, err := judge{}.record(r, efficiency{Arithmetic: truth.Arithmetic})
	require.NoError(t, err)
	r.meta.Version = "0.19.0"
	after, err := judge{}.profile(r, truth)
	require.NoError(t, err)
	assert.InDelta(t, float64(truth.Overhead), float64(before.Overhead-after.Overhead), 1e-9)
	ahead, err := judge{}.record(r, truth)
	require.NoError(t, err)
	assert.Greater(t, ahead.meanTTFT, behind.meanTTFT)
	assert.InEpsilon(t, behind.meanTPOT, ahead.meanTPOT, 0.02)
	var out strings.Builder
	report{&out}.record(r, after)
	assert.Contains(t, out.String(), "schedules while the device computes")
}

// Two devices add up 129 times 5,120 numbers of two bytes of each token.
func TestALinkAsItWasMeasured(t *testing.T) {
	var r record
	r.meta.Model, r.meta.Hardware.Device, r.meta.Cache.Tokens = "Qwen/Qwen3-32B", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 2400
	r.meta.Engine.Type, r.meta.Engine.Tensor, r.engines = "bfloat16", 2, 1
	published, err := judge{}.profile(r, truth)
	require.NoError(t, err)
	measured, err := judge{link: 10}.profile(r, truth)
	require.NoError(t, err)
	assert.InEpsilon(t, 1000*129*5120*2/10e9, float64(measured.PerExchanged), 1e-9)
	assert.InEpsilon(t, 0.44*63/10, float64(measured.PerExchanged/published.PerExchanged), 1e-9)
	assert.ErrorContains(t, run(t, io.Discard, "--data", "none", "--link", "-1"), "--link -1: expected GB/s")
}

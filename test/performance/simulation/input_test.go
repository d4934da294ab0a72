package simulation

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhichRowsCount(t *testing.T) {
	rows, err := parseSweep(strings.NewReader(header +
		"m,64,64,synchronous,1,64,64,20,19,25,7,8,360\n" +
		"m,64,64,throughput,10,64,64,20,19,25,7,8,360\n" +
		"m,64,64,constant@7.9,8,64,64,20,19,25,7,8,360\n" +
		"m,64,64,constant@8.2,8.1,64,64,20,19,25,7,8,360\n" +
		"m,64,64,constant@4,4,64,64,-1.5e8,19,25,7,8,359.5\n"))
	require.NoError(t, err)
	require.Len(t, rows, 2, "constant rates up to 0.8 of 10")
	assert.InDelta(t, 7.9, rows[0].offered, 0)
	assert.InDelta(t, 8, rows[0].rate, 0)
	assert.False(t, rows[0].measured.medianTTFT)
	assert.True(t, rows[1].measured.medianTTFT, "an impossible mean")
	assert.InDelta(t, 19, rows[1].measured.meanTTFT, 0)
	assert.Equal(t, 359500*time.Millisecond, rows[1].duration)
}

func TestABrokenSweepSaysWhereItIs(t *testing.T) {
	const good = "m,64,64,throughput,10,64,64,20,19,25,7,8,360\n"
	for name, tc := range map[string]struct{ text, want string }{
		"empty":            {"", "line 1"},
		"no such column":   {"model,rps\nm,1\n", "line 1: the column isl_nominal is missing"},
		"a word":           {header + good + "m,64,64,constant@1,fast,64,64,20,19,25,7,8,360\n", "line 3: the column rps is not a number"},
		"no rate":          {header + good + "m,64,64,constant@x,1,64,64,20,19,25,7,8,360\n", "line 3: the column strategy is not a number"},
		"NaN":              {header + "m,64,64,constant@1,1,64,64,NaN,19,25,7,8,360\n", "line 2: the column ttft_ms_mean is not a number"},
		"negative":         {header + "m,64,64,constant@1,1,64,64,20,19,-25,7,8,360\n", "line 2: a rate, a length, a duration or a latency is not positive"},
		"a short line":     {header + good + "m,64\n", "line 3"},
		"no throughput":    {header + "m,64,64,constant@1,1,64,64,20,19,25,7,8,360\n", "the shape 64/64 has no throughput row"},
		"nothing to judge": {header + good, "no rows of a constant rate"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sweep.csv")
			require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o600))
			_, err := readSweep(path)
			assert.ErrorContains(t, err, tc.want)
			assert.ErrorContains(t, err, "sweep.csv")
		})
	}
}

func TestTheRequestsOfARow(t *testing.T) {
	r := row{in: 100, out: 40, input: 104, offered: 4, duration: 25 * time.Second}
	requests := r.requests()
	require.Len(t, requests, 100)
	assert.Equal(t, requests, r.requests(), "from a fixed seed")
	inputs, outputs := 0, 0
	for i, q := range requests {
		assert.Equal(t, time.Duration(i)*250*time.Millisecond, q.at)
		assert.True(t, q.input >= 52 && q.input <= 156, q.input)
		assert.True(t, q.output >= 20 && q.output <= 60, q.output)
		inputs, outputs = inputs+q.input, outputs+q.output
	}
	assert.InDelta(t, 104, float64(inputs)/100, 0.5)
	assert.InDelta(t, 40, float64(outputs)/100, 0.5)
	assert.False(t, slices.IsSortedFunc(requests, func(a, b request) int { return a.input - b.input }), "in no order")
}

func TestTheHalvesShareNoShape(t *testing.T) {
	var rows []row
	for _, in := range []float64{64, 256, 1024} {
		for _, out := range []float64{64, 256, 1024} {
			rows = append(rows, row{in: in, out: out}, row{in: in, out: out})
		}
	}
	halves := checkerboard(rows)
	assert.Len(t, halves[0], 10, "five of nine fields")
	assert.Len(t, halves[1], 8)
	for _, a := range halves[0] {
		for _, b := range halves[1] {
			assert.False(t, a.in == b.in && a.out == b.out)
		}
	}
}

func TestABrokenRunSaysWhereItIs(t *testing.T) {
	const good = `{"request_id": "a", "input_toks": 5, "output_toks": 2, "arrival_time": 10, "queued_ts": 1, "first_token_ts": 2, "last_token_ts": 3}`
	for name, tc := range map[string]struct{ meta, requests, want string }{
		"no JSON":          {"{", good, "meta.json"},
		"no device":        {strings.Replace(madeMeta, "device_name", "other", 1), good, "meta.json: expected the names"},
		"no limit":         {strings.Replace(madeMeta, "num_kv_tokens", "other", 1), good, "num_kv_tokens (0)"},
		"a pipeline":       {strings.Replace(madeMeta, `data_parallel_size": 1`, `pipeline_parallel_size": 2`, 1), good, "pipeline_parallel_size 2; expected none below 0, and no pipeline"},
		"minus one engine": {strings.Replace(madeMeta, `data_parallel_size": 1`, `data_parallel_size": -1`, 1), good, "data_parallel_size is -1"},
		"quantized":        {strings.Replace(madeMeta, `"dtype"`, `"quantization": "awq", "dtype"`, 1), good, `no published figures for the quantization "awq"`},
		"no requests":      {madeMeta, "\n", "requests.jsonl: it has no requests"},
		"a broken request": {madeMeta, good + "\n{", "requests.jsonl: line 2"},
		"no time":          {madeMeta, good + "\n" + strings.Replace(good, "queued_ts", "other", 1), "requests.jsonl: line 2: request \"a\": expected arrival_time"},
		"times run back":   {madeMeta, strings.Replace(good, `last_token_ts": 3`, `last_token_ts": 1`, 1), "requests.jsonl: line 1: request \"a\": expected lengths"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(folder, "meta.json"), []byte(tc.meta), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "requests.jsonl"), []byte(tc.requests), 0o600))
			_, err := readRecord(folder)
			assert.ErrorContains(t, err, tc.want)
		})
	}
	_, err := readRecord(t.TempDir())
	assert.ErrorContains(t, err, "read the run")
	assert.ErrorContains(t, run(t, io.Discard), "say where the data is")
}

func TestUnknownFiguresAreNamed(t *testing.T) {
	_, err := modelNamed("org/gemma-2-9b", "bfloat16", "auto")
	assert.ErrorContains(t, err, `no published figures for the model "org/gemma-2-9b"; known are deepseek-r1-distill-qwen-1.5b, granite-3.1-8b, llama-2-13b`)
	_, err = modelNamed("Llama-3.1-8B", "float32", "auto")
	assert.ErrorContains(t, err, `at the dtype "float32"`)
	_, err = modelNamed("Llama-3.1-8B-FP8", "auto", "auto")
	assert.ErrorContains(t, err, `no published figures for "Llama-3.1-8B-FP8"`)
	_, err = modelNamed("Llama-3.1-8B", "bfloat16", "int4")
	assert.ErrorContains(t, err, `precision "int4" of the KV cache`)
	m, err := modelNamed("Llama-3.1-8B", "torch.bfloat16", "fp8_e4m3")
	require.NoError(t, err)
	assert.InDelta(t, 1, m.CacheBytes, 0)
	_, err = deviceNamed("TPU v5e", 1, false)
	assert.ErrorContains(t, err, `no published figures for the device "TPU v5e"; known are NVIDIA A100`)
	two, err := deviceNamed("NVIDIA H100 80GB HBM3", 2, true)
	require.NoError(t, err)
	assert.InDelta(t, 2*989.4e12, two.Arithmetic, 1)
	assert.InDelta(t, 6.7e12, two.Bandwidth, 1)
	assert.Equal(t, 2, two.Devices)
	assert.Equal(t, "NVLink 4", two.Link.Name)
	for name, d := range devices {
		assert.Positive(t, d.bandwidth, name)
		assert.InDelta(t, d.sheet, d.measured, 0.3*d.sheet, name)
		several, err := deviceNamed(name, 8, false)
		require.NoError(t, err)
		assert.True(t, several.Link.Known(), name)
	}
}

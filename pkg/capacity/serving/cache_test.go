package serving

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestKVCapacityTakesTheSurestSource(t *testing.T) {
	// Llama-3.1-8B on one H100: 27,996 blocks of 16 were logged.
	memory := Memory{DeviceGiB: 79.65, Devices: 1, WeightsGiB: 14.99, BytesPerToken: 128 << 10}
	for name, tc := range map[string]struct {
		reported  CacheConfig
		arguments Arguments
		memory    Memory
		want      float64
		source    CacheSource
	}{
		"reported in blocks": {CacheConfig{Blocks: 27996, BlockSize: 16}, Arguments{BlocksOverride: 1000}, memory, 447936, CacheReported},
		"reported in tokens": {CacheConfig{Tokens: 400000}, Arguments{}, memory, 400000, CacheReported},
		"fixed in blocks":    {CacheConfig{Blocks: 27996}, Arguments{BlocksOverride: 1000}, memory, 16000, CacheArguments},
		"fixed in tokens":    {CacheConfig{}, Arguments{MaxTotalTokens: 9000}, memory, 9000, CacheArguments},
		"computed":           {CacheConfig{}, Arguments{}, memory, 447936, CacheComputed},
		"nothing is known":   {CacheConfig{}, Arguments{}, Memory{}, 0, CacheUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := KVCapacity(tc.reported, tc.arguments, tc.memory)
			assert.Equal(t, tc.source, source)
			assert.InDelta(t, tc.want, float64(got), 0.02*tc.want)
		})
	}
}

// computed is what follows for a model on so many devices.
func computed(model string, a Arguments, deviceGiB float64, devices int) (capacity.Tokens, CacheSource) {
	return KVCapacity(CacheConfig{}, a, MemoryOf(FiguresOf(model, a), a, deviceGiB, devices))
}

// Each number can be checked with a pocket calculator. On one H100, of 80 GiB 79.2 are
// usable; 0.9 of them are 71.28 GiB, less 1.2 and 8192*72 KiB are 69.5175. Llama-3.1-8B
// has 8,030,261,248*2 bytes, 14.9575 GiB, which leaves 54.56; a token takes
// 2*32*8*128*2 = 131,072 bytes, and a GiB holds 8,192 of them.
func TestKVCapacityByHand(t *testing.T) {
	const h100, h100s = 69.5175, 80
	weights := func(billions, bytes float64) float64 { return billions * 1e9 * bytes / gib }
	perGiB := func(bytes int) float64 { return gib / float64(bytes) }
	for name, tc := range map[string]struct {
		model   string
		a       Arguments
		gib     float64
		devices int
		want    float64
	}{
		"Llama-3.1-8B":                 {"meta-llama/Llama-3.1-8B-Instruct", Arguments{}, h100s, 1, (h100 - 14.9575) * 8192},
		"more of the memory":           {"Llama-3.1-8B", Arguments{MemoryShare: 0.95}, h100s, 1, (h100 + 0.05*79.2 - 14.9575) * 8192},
		"smaller batches":              {"Llama-3.1-8B", Arguments{MaxBatchedTokens: 2048}, h100s, 1, (h100 + 6144*72.0/(1<<20) - 14.9575) * 8192},
		"a small device":               {"Llama-3.1-8B", Arguments{}, 24, 1, (0.9*23.76 - 1.2 - 2048*72.0/(1<<20) - 14.9575) * 8192},
		"a cache at fp8":               {"Llama-3.1-8B", Arguments{CacheNumbers: "fp8_e4m3"}, h100s, 1, (h100 - 14.9575) * 16384},
		"weights at fp8":               {"Llama-3.1-8B-Instruct-FP8", Arguments{}, h100s, 1, (h100 - weights(6.979594, 1) - weights(1.050673, 2)) * 8192},
		"made fp8 by the server":       {"Llama-3.1-8B-Instruct", Arguments{Quantization: "fp8"}, h100s, 1, (h100 - weights(6.979594, 1) - weights(1.050673, 2)) * 8192},
		"70B on four devices":          {"Llama-3.3-70B-Instruct", Arguments{TensorParallel: 4}, h100s, 4, (4*h100 - weights(70.553706, 2)) * perGiB(2*80*8*128*2)},
		"two by two":                   {"Llama-3.3-70B-Instruct", Arguments{TensorParallel: 2, PipelineParallel: 2}, h100s, 4, (4*h100 - weights(70.553706, 2)) * perGiB(2*80*8*128*2)},
		"four heads on eight devices":  {"Qwen3-30B-A3B", Arguments{TensorParallel: 8}, h100s, 8, (8*h100 - weights(30.532123, 2)) * perGiB(2*48*8*128*2)},
		"two engines in one replica":   {"Llama-3.1-8B", Arguments{DataParallel: 2}, h100s, 2, 2 * (h100 - 14.9575) * 8192},
		"a latent vector per device":   {"deepseek-ai/DeepSeek-R1", Arguments{TensorParallel: 8}, 140, 8, (8*(0.9*0.99*140-1.7625) - weights(669.172957, 1) - weights(1.853489, 2)) * perGiB(8*61*576*2)},
		"windows of 128 of 1,024":      {"openai/gpt-oss-20b", Arguments{}, h100s, 1, (h100 - weights(19.75649, 0.578) - weights(1.158267, 2)) * perGiB((12*1024+12*128)*2*8*64*2/1024)},
		"SGLang's share":               {"Llama-3.1-8B", Arguments{MemoryShare: 0.85, Static: true}, h100s, 1, (0.85*79.2 - 14.9575) * 8192},
		"a share that cannot be is .9": {"Llama-3.1-8B", Arguments{MemoryShare: -1}, h100s, 1, (h100 - 14.9575) * 8192},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := computed(tc.model, tc.a, tc.gib, tc.devices)
			assert.Equal(t, CacheComputed, source)
			assert.InEpsilon(t, tc.want, float64(got), 1e-4)
		})
	}
}

// What vLLM wrote in its log when it started, with its defaults where nothing is said.
func TestKVCapacityMeetsServersLogs(t *testing.T) {
	for _, tc := range []struct {
		name, model string
		a           Arguments
		gib         float64
		logged      float64
		within      float64
	}{
		{"Llama-3.1-8B on H100, vLLM 0.21", "unsloth/Meta-Llama-3.1-8B-Instruct", Arguments{}, 80, 447_936, 0.005},
		{"Qwen2.5-14B on H100, vLLM 0.21", "Qwen/Qwen2.5-14B-Instruct", Arguments{}, 80, 226_992, 0.015},
		{"Llama-3.1-8B on RTX 4090, vLLM 0.19", "meta-llama/Llama-3.1-8B", Arguments{MaxBatchedTokens: 2048}, 24, 41_408, 0.01},
		{"Qwen3-Coder-30B-A3B on a device of 80 GiB", "Qwen/Qwen3-Coder-30B-A3B-Instruct", Arguments{}, 80, 150_272, 0.1},
	} {
		got, _ := computed(tc.model, tc.a, tc.gib, 1)
		assert.InEpsilon(t, tc.logged, float64(got), tc.within, tc.name)
	}
	// Loaded weights: 14.99 GiB with a buffer, 56.93 GiB, and 57.75 GiB on each of eight.
	assert.InDelta(t, 14.99, FiguresOf("Llama-3.1-8B", Arguments{}).Weights()/gib, 0.04)
	assert.InDelta(t, 56.93, FiguresOf("Qwen3-30B-A3B", Arguments{}).Weights()/gib, 0.1)
	assert.InDelta(t, 57.75, FiguresOf("Meta-Llama-3.1-405B-Instruct-FP8", Arguments{}).Weights()/8/gib, 0.05)
	assert.InDelta(t, 64.4, FiguresOf("gpt-oss-120b", Arguments{}).Weights()/gib, 0.1)
}

func TestWhatDoesNotFollowStaysUnknown(t *testing.T) {
	const model = "Llama-3.1-8B"
	for name, tc := range map[string]struct {
		model   string
		a       Arguments
		gib     float64
		devices int
	}{
		"a model that nobody published here": {"our-own-8B", Arguments{}, 80, 1},
		"no name":                            {"", Arguments{}, 80, 1},
		"a device of unknown memory":         {model, Arguments{}, 0, 1},
		"a negative memory":                  {model, Arguments{}, -80, 1},
		"an endless memory":                  {model, Arguments{}, math.Inf(1), 1},
		"a memory that is no number":         {model, Arguments{}, math.NaN(), 1},
		"no devices":                         {model, Arguments{}, 80, 0},
		"fewer devices than a layer is on":   {model, Arguments{TensorParallel: 2}, 80, 1},
		"devices that nothing is on":         {model, Arguments{}, 80, 2},
		"absurdly many":                      {model, Arguments{TensorParallel: math.MaxInt, PipelineParallel: 2, DataParallel: math.MaxInt}, 80, 2},
		"a device that is too small":         {model, Arguments{}, 16, 1},
		"hardly any room":                    {"gpt-oss-120b", Arguments{}, 80, 1},
		"experts that engines share":         {"DeepSeek-V3", Arguments{DataParallel: 16}, 140, 16},
		"a draft model beside it":            {model, Arguments{Unmodelled: "speculative-config"}, 80, 1},
		"files at an unknown precision":      {model + "-GPTQ", Arguments{}, 80, 1},
		"a method that says no precision":    {model, Arguments{Quantization: "compressed-tensors"}, 80, 1},
		"numbers of an unknown kind":         {model, Arguments{Numbers: "posit16"}, 80, 1},
		"a cache of an unknown kind":         {model, Arguments{CacheNumbers: "int3"}, 80, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := computed(tc.model, tc.a, tc.gib, tc.devices)
			assert.Zero(t, got)
			assert.Equal(t, CacheUnknown, source)
		})
	}
}

func TestParseArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		command []string
		want    Arguments
	}{
		"separate words":    {[]string{"vllm", "serve", "--max-num-seqs", "64", "--block_size=32"}, Arguments{MaxSequences: 64, BlockSize: 32}},
		"for a shell":       {[]string{"sh", "-c", "vllm serve \\\n  m --gpu-memory-utilization=0.85 --tensor-parallel-size 4"}, Arguments{Model: "m", MemoryShare: 0.85, TensorParallel: 4}},
		"SGLang":            {[]string{"--max-total-tokens", "5000", "--mem-fraction-static", "0.8", "--tp", "2"}, Arguments{MaxTotalTokens: 5000, MemoryShare: 0.8, Static: true, TensorParallel: 2}},
		"the last counts":   {[]string{"--max-model-len=100", "--max-model-len=200"}, Arguments{MaxModelLength: 200}},
		"what cannot be":    {[]string{"--max-num-seqs=-3", "--gpu-memory-utilization=90", "--gpu-memory-utilization=-0.5", "--block-size"}, unread("max-num-seqs", "gpu-memory-utilization", "block-size")},
		"variables":         {[]string{"--num_gpu_blocks_override=$(BLOCKS)", "--mem-fraction-static", "$SHARE", "--tp=$(TP)"}, Arguments{Static: true, Unmodelled: "num-gpu-blocks-override", Unread: []string{"num-gpu-blocks-override", "mem-fraction-static", "tp"}}},
		"unknown blocks":    {[]string{"--num-gpu-blocks-override=10", "--block-size=$(SIZE)"}, unread("block-size")},
		"read at last":      {[]string{"--block-size=$(SIZE)", "--block-size=32"}, Arguments{BlockSize: 32}},
		"unread at last":    {[]string{"--max-num-seqs=8", "--max-num-seqs=$(MAX)"}, unread("max-num-seqs")},
		"a length in k":     {[]string{"--max-model-len=32k"}, Arguments{}},
		"quoted":            {[]string{`--num-gpu-blocks-override="700"`, "--max-num-batched-tokens='2048'"}, Arguments{BlocksOverride: 700, MaxBatchedTokens: 2048}},
		"quoted as a whole": {[]string{"sh", "-c", `vllm serve "m" "--max-num-seqs=12"; sleep 1`}, Arguments{Model: "m", MaxSequences: 12}},
		"longer names":      {[]string{"--max-num-seqs-per-lora=3"}, Arguments{}},
		"the precisions":    {[]string{"--model", "org/m", "-q", "fp8", "--dtype=half", "--kv-cache-dtype", "fp8_e5m2"}, Arguments{Model: "org/m", Quantization: "fp8", Numbers: "half", CacheNumbers: "fp8_e5m2"}},
		"the layout":        {[]string{"-tp", "4", "-pp=2", "-dp", "8"}, Arguments{TensorParallel: 4, PipelineParallel: 2, DataParallel: 8}},
		"not modelled":      {[]string{"--model-path=m", "--cpu_offload_gb=8"}, Arguments{Model: "m", Unmodelled: "cpu-offload-gb"}},
		"no value":          {[]string{"--model", "--dtype=auto"}, Arguments{Numbers: "auto"}},
		"nothing":           {nil, Arguments{}},
		"values look like":  {[]string{"--name", "max-num-seqs", "7"}, Arguments{}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, ParseArguments(tc.command)) })
	}
	a := ParseArguments([]string{"--block-size=x"})
	assert.False(t, a.SequencesUnread())
	for _, name := range []string{"--max_num_seqs", "--max-running-requests"} {
		a := ParseArguments([]string{name, "$(MAX)"})
		assert.True(t, a.SequencesUnread(), name)
	}
}

// unread are arguments of which none could be read.
func unread(names ...string) Arguments { return Arguments{Unmodelled: names[0], Unread: names} }

func TestArgumentsAtTheEndsOfTheirRange(t *testing.T) {
	assert.Empty(t, ParseArguments([]string{"vllm", "serve"}).Model, "nothing follows")
	assert.Empty(t, ParseArguments([]string{"serve"}).Model)
	assert.Equal(t, "m", ParseArguments([]string{"serve", "m"}).Model)
	assert.Zero(t, ParseArguments([]string{"--max-num-seqs"}).MaxSequences, "no value follows")
	for argument, c := range map[string]struct {
		share  float64
		unread []string
	}{
		"--gpu-memory-utilization=1":    {1, nil},
		"--gpu-memory-utilization=0":    {0, []string{"gpu-memory-utilization"}},
		"--gpu-memory-utilization=1.01": {0, []string{"gpu-memory-utilization"}},
		"--max-num-seqs=1":              {0, nil},
		"--max-num-seqs=0":              {0, []string{"max-num-seqs"}},
	} {
		a := ParseArguments([]string{argument})
		assert.InDelta(t, c.share, a.MemoryShare, 0, argument)
		assert.Equal(t, c.unread, a.Unread, argument)
	}
}

// A model that is laid out over another number of devices than there are is not known to
// be anywhere.
func TestALayoutThatTheDevicesDoNotHave(t *testing.T) {
	m := FiguresOf("llama-3.1-8b", Arguments{})
	for name, c := range map[string]struct {
		a       Arguments
		devices int
		known   bool
	}{
		"one device":            {Arguments{}, 1, true},
		"two that share layers": {Arguments{TensorParallel: 2}, 2, true},
		"two stages":            {Arguments{PipelineParallel: 2}, 2, true},
		"two engines":           {Arguments{DataParallel: 2}, 2, true},
		"a stage too many":      {Arguments{PipelineParallel: 2}, 1, false},
		"an engine too many":    {Arguments{DataParallel: 2}, 1, false},
		"a share too many":      {Arguments{TensorParallel: 2}, 1, false},
		"a device too many":     {Arguments{TensorParallel: 2}, 4, false},
		"a product beyond all":  {Arguments{PipelineParallel: 7, DataParallel: 0x6db6db6db6db6db7}, 1, false},
		"shares beyond all":     {Arguments{TensorParallel: 7, PipelineParallel: 0x6db6db6db6db6db7}, 1, false},
	} {
		assert.Equal(t, c.known, MemoryOf(m, c.a, 80, c.devices).BytesPerToken > 0, name)
	}
}

func TestBlocksThatAServerReportsInPart(t *testing.T) {
	for _, reported := range []CacheConfig{{BlockSize: 16}, {Blocks: 16}} {
		tokens, source := KVCapacity(reported, Arguments{MaxTotalTokens: 5}, Memory{})
		assert.Equal(t, capacity.Tokens(5), tokens)
		assert.Equal(t, CacheArguments, source)
	}
}

func TestAllOfTheMemoryIsAShareToo(t *testing.T) {
	memory := MemoryOf(FiguresOf("llama-3.1-8b", Arguments{}), Arguments{}, 80, 1)
	usual, _ := KVCapacity(CacheConfig{}, Arguments{MemoryShare: defaultMemoryShare}, memory)
	all, _ := KVCapacity(CacheConfig{}, Arguments{MemoryShare: 1}, memory)
	beyond, _ := KVCapacity(CacheConfig{}, Arguments{MemoryShare: 1.1}, memory)
	assert.Greater(t, all, usual)
	assert.Equal(t, usual, beyond)
}

func TestTheMemoryBesideTheCacheByHand(t *testing.T) {
	const perToken = 72.0 / (1 << 20)
	assert.InDelta(t, 1.2+2048*perToken, Memory{DeviceGiB: 24}.overhead(Arguments{}), 1e-12)
	assert.InDelta(t, 1.2+8192*perToken, Memory{DeviceGiB: 70}.overhead(Arguments{}), 1e-12)
	assert.InDelta(t, 1.2+100*perToken, Memory{DeviceGiB: 70}.overhead(Arguments{MaxBatchedTokens: 100}), 1e-12)
	// A tenth of both devices has to be left, which 15 of 158.4 GiB are not.
	memory := Memory{DeviceGiB: 80, Devices: 2, BytesPerToken: 1000}
	left := func(gib float64) capacity.Tokens {
		memory.WeightsGiB = 2*(0.5*0.99*80) - gib
		tokens, _ := KVCapacity(CacheConfig{}, Arguments{MemoryShare: 0.5, Static: true}, memory)
		return tokens
	}
	assert.Zero(t, left(15))
	assert.Positive(t, left(17))
}

package serving

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// shape are the figures of a config.json that the table leaves out: hidden_size,
// intermediate_size, the number of experts (0 for a dense model), and what is beside
// the products: a bias of queries, keys and values; norms of queries and keys; norms
// of the state in each layer; parameters of an encoder.
type shape struct {
	hidden, inner, experts int
	bias, headNorms        bool
	norms, encoder         int
}

func (s shape) parameters(m ModelFigures) float64 {
	kept := m.KVHeads * m.HeadSize
	layer := 2*s.hidden*m.Width + 2*s.hidden*kept + s.norms*s.hidden
	if s.bias {
		layer += m.Width + 2*kept
	}
	if s.headNorms {
		layer += 2 * m.HeadSize
	}
	layer += 3 * s.hidden * s.inner * max(1, s.experts)
	layer += s.experts * s.hidden
	return m.Embedding + m.Head + float64(m.Layers*layer+s.hidden+s.encoder)
}

// The published number of parameters follows from the published shape to the last one,
// which no slip in layers, heads or their size would survive.
func TestTheParametersFollowFromTheShape(t *testing.T) {
	llama := func(hidden, inner int) shape { return shape{hidden: hidden, inner: inner, norms: 2} }
	qwen2 := func(hidden, inner int) shape { return shape{hidden: hidden, inner: inner, norms: 2, bias: true} }
	qwen3 := func(hidden, inner, experts int) shape {
		return shape{hidden: hidden, inner: inner, experts: experts, norms: 2, headNorms: true}
	}
	gemma := func(hidden, inner, encoder int) shape {
		return shape{hidden: hidden, inner: inner, norms: 4, headNorms: encoder >= 0, encoder: max(0, encoder)}
	}
	shapes := map[string]shape{
		"llama-2-7b": llama(4096, 11008), "llama-2-13b": llama(5120, 13824), "llama-2-70b": llama(8192, 28672),
		"llama-3.1-8b": llama(4096, 14336), "llama-3.1-70b": llama(8192, 28672), "llama-3.1-405b": llama(16384, 53248),
		"llama-3.2-1b": llama(2048, 8192), "llama-3.2-3b": llama(3072, 8192),
		"qwen2.5-0.5b": qwen2(896, 4864), "qwen2.5-1.5b": qwen2(1536, 8960), "qwen2.5-3b": qwen2(2048, 11008), "qwen2.5-7b": qwen2(3584, 18944),
		"qwen2.5-14b": qwen2(5120, 13824), "qwen2.5-32b": qwen2(5120, 27648), "qwen2.5-72b": qwen2(8192, 29568),
		"deepseek-r1-distill-qwen-1.5b": qwen2(1536, 8960),
		"qwen3-0.6b":                    qwen3(1024, 3072, 0), "qwen3-1.7b": qwen3(2048, 6144, 0), "qwen3-4b": qwen3(2560, 9728, 0), "qwen3-8b": qwen3(4096, 12288, 0),
		"qwen3-14b": qwen3(5120, 17408, 0), "qwen3-32b": qwen3(5120, 25600, 0),
		"qwen3-30b-a3b": qwen3(2048, 768, 128), "qwen3-235b-a22b": qwen3(4096, 1536, 128), "qwen3-coder-480b-a35b": qwen3(6144, 2560, 160),
		"mistral-7b": llama(4096, 14336), "mistral-nemo": llama(5120, 14336), "mistral-small-2409": llama(6144, 16384), "mistral-small-24b": llama(5120, 32768),
		"mistral-large-2407": llama(12288, 28672), "mixtral-8x7b": {hidden: 4096, inner: 14336, experts: 8, norms: 2}, "mixtral-8x22b": {hidden: 6144, inner: 16384, experts: 8, norms: 2},
		"gemma-2-2b": gemma(2304, 9216, -1), "gemma-2-9b": gemma(3584, 14336, -1), "gemma-2-27b": gemma(4608, 36864, -1), "gemma-3-1b": gemma(1152, 6912, 0),
		"gemma-3-4b": gemma(2560, 10240, 419_816_304), "gemma-3-12b": gemma(3840, 15360, 421_290_864), "gemma-3-27b": gemma(5376, 21504, 423_060_336),
		"phi-4": llama(5120, 17920), "phi-4-mini": llama(3072, 8192), "granite-3.1-8b": llama(4096, 12800),
	}
	for name, s := range shapes {
		m, ok := published[name]
		require.True(t, ok, name)
		assert.InDelta(t, s.parameters(m), m.Parameters, 0.5, name)
	}
	for name, m := range published {
		_, checked := shapes[name]
		rounded := slices.Contains([]string{"llama-3.1-405b-fp8", "mistral-small-3.1-24b", "mistral-small-3.2-24b", "deepseek-v3", "gpt-oss-20b", "gpt-oss-120b"}, name)
		assert.NotEqual(t, checked, rounded, "%s is checked by its shape or known to be otherwise", name)
		assert.Greater(t, m.Weights(), 0.25*m.Parameters, name)
		assert.Positive(t, m.CachePerToken(1), name)
		assert.GreaterOrEqual(t, m.CachePerToken(8), m.CachePerToken(1), name)
	}
}

func TestCachePerToken(t *testing.T) {
	assert.Equal(t, 128*128, published["deepseek-v3"].Width)
	for model, kib := range map[string]float64{
		"Llama-3.1-8B": 128, "Llama-3.1-70B": 320, "Llama-3.1-405B": 504, "Llama-2-7b-hf": 512, "Qwen2.5-7B": 56, "Qwen2.5-14B": 192,
		"Qwen3-32B": 256, "Mixtral-8x7B": 128, "DeepSeek-V3": 68.625, "gemma-3-27b-it": 496, "gpt-oss-120b": 40.5, "phi-4": 200,
	} {
		assert.InDelta(t, kib, FiguresOf(model, Arguments{}).CachePerToken(1)/1024, 1e-9, model)
	}
	assert.InDelta(t, 256, FiguresOf("Llama-3.1-8B", Arguments{}).CachePerToken(16)/1024, 1e-9, "eight heads on sixteen devices")
	assert.Zero(t, FiguresOf("Llama-3.1-8B", Arguments{}).CachePerToken(0))
	assert.InDelta(t, 2*4*3*5, ModelFigures{Layers: 4, Windowed: 4, Window: usualContext, KVHeads: 1, HeadSize: 3, CacheBytes: 5}.CachePerToken(1), 1e-9, "every layer has a window")
	assert.Zero(t, ModelFigures{Layers: 2, Windowed: 3, KVHeads: 1, HeadSize: 1, CacheBytes: 1}.CachePerToken(1))
}

func TestNamesOfModels(t *testing.T) {
	for name, want := range map[string]string{
		"meta-llama/Llama-3.1-8B-Instruct":             "llama-3.1-8b",
		"meta-llama/Meta-Llama-3-8B":                   "llama-3.1-8b",
		"/models/Llama-3.3-70B-Instruct/":              "llama-3.1-70b",
		"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic":  "llama-3.1-70b",
		"Meta-Llama-3.1-405B-Instruct-FP8":             "llama-3.1-405b-fp8",
		"deepseek-ai/DeepSeek-R1-Distill-Llama-70B":    "llama-3.1-70b",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B":    "deepseek-r1-distill-qwen-1.5b",
		"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B":     "qwen2.5-32b",
		"deepseek-ai/DeepSeek-R1-0528":                 "deepseek-v3",
		"deepseek-ai/DeepSeek-V3.1":                    "deepseek-v3",
		"Qwen/Qwen2.5-Coder-32B-Instruct-AWQ":          "qwen2.5-32b",
		"Qwen/Qwen2-7B-Instruct":                       "qwen2.5-7b",
		"Qwen/Qwen3-30B-A3B-Thinking-2507-FP8":         "qwen3-30b-a3b",
		"Qwen/Qwen3-Coder-30B-A3B-Instruct":            "qwen3-30b-a3b",
		"Qwen/QwQ-32B":                                 "qwen2.5-32b",
		"mistralai/Mistral-7B-Instruct-v0.3":           "mistral-7b",
		"mistralai/Mistral-Small-Instruct-2409":        "mistral-small-2409",
		"mistralai/Mistral-Small-24B-Instruct-2501":    "mistral-small-24b",
		"mistralai/Mistral-Large-Instruct-2411":        "mistral-large-2407",
		"mistralai/Mixtral-8x7B-Instruct-v0.1":         "mixtral-8x7b",
		"mistralai/Codestral-22B-v0.1":                 "mistral-small-2409",
		"google/gemma-3-27b-it":                        "gemma-3-27b",
		"unsloth/Llama-3.2-3B-Instruct-bnb-4bit":       "llama-3.2-3b",
		"neuralmagic/Meta-Llama-3.1-8B-quantized.w8a8": "llama-3.1-8b",
	} {
		m, ok := spell(name).figures()
		require.True(t, ok, name)
		assert.Equal(t, published[want], m, name)
	}
	// What is something else, though its name begins alike.
	for _, name := range []string{
		"", "/", "default/default", "Llama-3.2-11B-Vision-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2-57B-A14B", "Llama-3.1-Nemotron-Nano-8B-v1",
		"mistralai/Mistral-Small-2503", "mistralai/Mistral-Large-3-675B-Instruct-2512", "deepseek-ai/DeepSeek-V3.2", "deepseek-ai/DeepSeek-V2-Lite",
		"Llama-3.1-8B-Instruct-FP8-KV", "Llama-3.1-8B.Q4_K_M.gguf", "Llama-3-80B", strings.Repeat("8b-", 1000),
	} {
		_, ok := spell(name).figures()
		assert.False(t, ok, name)
	}
	for _, pair := range sameAs {
		_, hidden := published[pair[0]]
		assert.False(t, hidden, "%s is in the table itself", pair[0])
	}
	for name := range maps.Keys(published) {
		m, ok := spell(name).figures()
		assert.True(t, ok, name)
		assert.Equal(t, published[name], m, name)
	}
}

// A name that is not published gives the weights and nothing of the cache.
func TestTheSizeInAName(t *testing.T) {
	for name, want := range map[string]struct{ parameters, weights float64 }{
		"acme/Anvil-70B-Instruct":     {70e9, 140e9},
		"acme/Anvil-70B-FP8":          {70e9, 70e9},
		"acme/Anvil-70B-AWQ":          {70e9, 36.4e9},
		"acme/Anvil-70B-w4a16":        {70e9, 36.4e9},
		"acme/Anvil-70B-GPTQ-Int8":    {70e9, 70e9},
		"acme/Anvil-70B-NVFP4":        {70e9, 39.375e9},
		"acme/Anvil-70B-GPTQ":         {70e9, 0},
		"acme/Anvil-8x7B":             {56e9, 112e9},
		"acme/Anvil-1.5b":             {1.5e9, 3e9},
		"acme/Anvil-500M":             {5e8, 1e9},
		"acme/Anvil-30B-A3B":          {30e9, 60e9},
		"acme/Anvil-7B-of-70B":        {0, 0},
		"acme/Anvil":                  {0, 0},
		"acme/Anvil-0B":               {0, 0},
		"acme/Anvil--7B":              {7e9, 14e9},
		"acme/Anvil-9999999999999B":   {0, 0},
		"acme/Anvil-1e9B":             {0, 0},
		"acme/Anvil-infB":             {0, 0},
		"acme/Anvil-1.2.3B":           {0, 0},
		"acme/Anvil-8x8x8B":           {0, 0},
		"acme/Anvil-99999999999x70B":  {0, 0},
		"acme/Anvil-xB":               {0, 0},
		"acme/Anvil-8x1e1B":           {0, 0},
		"acme/phi-4-tiny":             {0, 0},
		"acme/Anvil-ax7B":             {0, 0},
		"acme/Anvil-100000B":          {1e14, 2e14},
		"acme/Anvil-99999999999999xB": {0, 0},
	} {
		m := FiguresOf(name, Arguments{})
		assert.InDelta(t, want.parameters, m.Parameters, 1, name)
		assert.InDelta(t, want.weights, m.Weights(), 1, name)
		assert.Zero(t, m.CachePerToken(1), name)
	}
}

func TestThePrecisionOfWeightsAndCache(t *testing.T) {
	const listed = "Llama-3.1-8B"
	for _, tc := range []struct {
		name           string
		a              Arguments
		weights, cache float64
	}{
		{listed, Arguments{Numbers: "auto", CacheNumbers: "auto"}, 2, 2},
		{listed, Arguments{Numbers: "float32"}, 4, 4},
		{listed, Arguments{Numbers: "float32", CacheNumbers: "bfloat16"}, 4, 2},
		{listed + "-BF16", Arguments{}, 2, 2},
		{listed + "-BF16", Arguments{Quantization: "fp8"}, 1, 2},
		{"gpt-oss-20b-FP8", Arguments{}, 1, 2},
		{"DeepSeek-R1-NVFP4", Arguments{}, 0.5625, 2},
		{listed, Arguments{Quantization: "bitsandbytes"}, 0.5625, 2},
		{listed + "-AWQ-INT4", Arguments{Quantization: "awq_marlin"}, 0.52, 2},
		{listed + "-AWQ-4bit", Arguments{}, 0.5625, 2},
		{listed + "-FP8", Arguments{Quantization: "compressed-tensors"}, 1, 2},
		{listed + "-GPTQ-Int4", Arguments{Quantization: "gptq_marlin"}, 0.52, 2},
		{listed, Arguments{Quantization: "gptq"}, 0, 2},
		{"DeepSeek-R1", Arguments{Quantization: "fp8"}, 1, 2},
		{"DeepSeek-R1-FP8", Arguments{}, 1, 2},
		{"DeepSeek-R1-AWQ", Arguments{}, 0.52, 2},
		{"DeepSeek-R1", Arguments{CacheNumbers: "fp8_ds_mla"}, 1, 0},
		{"gpt-oss-20b", Arguments{Quantization: "mxfp4"}, 0.578, 2},
		{"gpt-oss-20b-BF16", Arguments{}, 2, 2},
	} {
		m := FiguresOf(tc.name, tc.a)
		assert.InDelta(t, tc.weights, m.WeightBytes, 0, "%s %+v", tc.name, tc.a)
		assert.InDelta(t, tc.cache, m.CacheBytes, 0, "%s %+v", tc.name, tc.a)
	}
	// Embedding and head stay as they are: 6.98e9 numbers of a byte and 1.05e9 of two.
	assert.InDelta(t, 9.081e9, FiguresOf(listed+"-FP8", Arguments{}).Weights(), 1e6, "the files have 9.08 GB")
}

func TestTheMemoryOfDevices(t *testing.T) {
	for _, tc := range []struct {
		name   string
		device capacity.Device
		want   float64
	}{
		{"as it is said", capacity.Device{Accelerator: "A100", MemoryGiB: 40}, 40},
		{"of a type with one memory", capacity.Device{Accelerator: "H100"}, 80},
		{"another form of it", capacity.Device{Accelerator: "H100", MemoryGiB: 94}, 94},
		{"sold as 48", capacity.Device{Accelerator: "L40S", MemoryGiB: 48}, 45},
		{"smaller than usual", capacity.Device{Accelerator: "H100", MemoryGiB: 64}, 64},
		{"of a type with several", capacity.Device{Accelerator: "A100"}, 0},
		{"of no known type", capacity.Device{Accelerator: "Abacus"}, 0},
		{"that is said alone", capacity.Device{Accelerator: "Abacus", MemoryGiB: 12}, 12},
		{"that cannot be", capacity.Device{Accelerator: "A100", MemoryGiB: -1}, 0},
	} {
		assert.InDelta(t, tc.want, DeviceGiB(tc.device), 0, tc.name)
	}
}

// OpenAI publishes 3.61e9 and 5.13e9 parameters that are used for one token, without the
// table. Each of 24 * 32 experts has three matrices of 2880 * 2880 and biases of 2 * 2880 and
// 2880.
func TestActiveParametersAreThePublishedOnes(t *testing.T) {
	small, large := published["gpt-oss-20b"], published["gpt-oss-120b"]
	assert.InEpsilon(t, 3.61e9, small.Active()-small.Embedding, 1e-3)
	assert.InEpsilon(t, 5.13e9, large.Active()-large.Embedding, 1e-3)
	assert.InDelta(t, 19_116_933_120, small.Experts.Parameters, 0.5)
}

func TestFiguresThatCannotBeSayNothing(t *testing.T) {
	assert.Zero(t, ModelFigures{Parameters: 10, Embedding: 4, Head: 6, WeightBytes: 2}.Weights(), "nothing beside the tables")
	assert.Zero(t, ModelFigures{Layers: 3, HeadSize: 64, CacheBytes: 2}.CachePerToken(1), "no heads are known")
}

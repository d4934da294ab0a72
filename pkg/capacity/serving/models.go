package serving

import (
	"maps"
	"slices"
)

// ModelFigures are the published figures of a transformer.
type ModelFigures struct {
	// Parameters is the number of all parameters, Embedding that of the table in
	// which input tokens are looked up (0 where the head uses the same one), and Head
	// that of the matrix that only sampled tokens are multiplied by.
	Parameters, Embedding, Head float64
	// Layers is the number of layers, Hidden how many numbers a token takes from one to
	// the next, Width the number of query heads times the head size, KVHeads and
	// HeadSize what each token keeps in the cache of a layer.
	Layers, Hidden, Width, KVHeads, HeadSize int
	// Latent is how many numbers each token keeps in the cache of a layer where all
	// heads share them (multi-head latent attention); KVHeads and HeadSize are then 0.
	Latent int
	// Windowed of the layers keep the last Window tokens alone.
	Windowed, Window int
	// Experts are the part of a mixture of experts of which a token uses a part.
	Experts ExpertFigures
	// WeightBytes and CacheBytes are the bytes per number of the weights and of the
	// KV cache; 0 means unknown. Embedding and Head never have less than two.
	WeightBytes, CacheBytes float64
}

// ExpertFigures say which part of a model a token uses a part of; zero for a model of
// which a token uses all.
type ExpertFigures struct {
	// Count is the number of experts in each layer that has them, and Used how many of
	// them a token uses. Experts that every token uses do not count.
	Count, Used int
	// Parameters is the number of the parameters of all experts in all layers.
	Parameters float64
}

// Share is the share of the experts that one token uses.
func (e ExpertFigures) Share() float64 {
	if e.Count < 1 {
		return 0
	}
	return float64(e.Used) / float64(e.Count)
}

// Active is how many of its parameters the model uses for one token.
func (m ModelFigures) Active() float64 {
	if m.Experts.Count < 1 {
		return m.Parameters
	}
	return m.Parameters - m.Experts.Parameters*(1-m.Experts.Share())
}

// Weights is the size of the weights in bytes; 0 means unknown.
func (m ModelFigures) Weights() float64 {
	tables := m.Embedding + m.Head
	if !(m.WeightBytes > 0) || !(m.Parameters > tables) {
		return 0
	}
	return (m.Parameters-tables)*m.WeightBytes + tables*max(m.WeightBytes, plainBytes)
}

// CachePerToken is what one token takes in the KV cache, in bytes over all devices of
// which so many share each layer; 0 means unknown. Heads that are fewer than those
// devices are kept several times, and a latent vector by every device. A layer with a
// window counts as it does for a sequence of usualContext tokens; longer ones take
// less.
func (m ModelFigures) CachePerToken(sharing int) float64 {
	numbers := m.Latent * sharing
	if m.Latent == 0 && m.KVHeads > 0 {
		numbers = 2 * max(m.KVHeads, sharing) * m.HeadSize
	}
	if sharing < 1 || m.Layers < m.Windowed {
		return 0
	}
	layers := float64(m.Layers-m.Windowed) + float64(m.Windowed)*min(1, float64(m.Window)/usualContext)
	return layers * float64(numbers) * m.CacheBytes
}

const (
	// plainBytes are those of the numbers of a model as it was published, if nothing
	// else is said: bfloat16 or float16.
	plainBytes = 2
	// usualContext is a length that most requests have or exceed.
	usualContext = 1024
)

// dense are the figures of a model by its config.json: parameters as they add up,
// vocab_size and hidden_size, num_hidden_layers, num_attention_heads,
// num_key_value_heads and head_dim. Own tells a head apart from the embedding
// (tie_word_embeddings is false).
func dense(parameters float64, own bool, vocabulary, hidden, layers, heads, kvHeads, headSize int) ModelFigures {
	m := ModelFigures{
		Parameters: parameters, Head: float64(vocabulary * hidden), Layers: layers, Hidden: hidden, Width: heads * headSize,
		KVHeads: kvHeads, HeadSize: headSize, WeightBytes: plainBytes, CacheBytes: plainBytes,
	}
	if own {
		m.Embedding = m.Head
	}
	return m
}

// experts are the figures of a mixture of so many experts per layer, of which a token
// uses so many: num_experts (num_local_experts), num_experts_per_tok, and
// moe_intermediate_size (intermediate_size). Each expert has three matrices.
func (m ModelFigures) experts(count, used, inner int) ModelFigures {
	m.Experts = ExpertFigures{Count: count, Used: used, Parameters: float64(m.Layers*count) * float64(3*m.Hidden*inner)}
	return m
}

// biased says that each of an expert's matrices has a bias.
func (m ModelFigures) biased(inner int) ModelFigures {
	m.Experts.Parameters += float64(m.Layers*m.Experts.Count) * float64(2*inner+m.Hidden)
	return m
}

// windowed says that so many layers see a window alone.
func (m ModelFigures) windowed(layers, window int) ModelFigures {
	m.Windowed, m.Window = layers, window
	return m
}

// at is the model as it is published at another precision.
func (m ModelFigures) at(weightBytes float64) ModelFigures {
	m.WeightBytes = weightBytes
	return m
}

// latent are DeepSeek-V3's figures: kv_lora_rank 512 and qk_rope_head_dim 64; all layers
// but the first three have experts, of 2048. The layer that predicts further tokens is
// left out, as servers do without speculation.
var latent = ModelFigures{
	Parameters: 671_026_419_200, Embedding: 129280 * 7168, Head: 129280 * 7168, Layers: 61, Hidden: 7168, Width: 128 * 128,
	Latent: 512 + 64, Experts: ExpertFigures{Count: 256, Used: 8, Parameters: 58 * 256 * 3 * 7168 * 2048}, WeightBytes: 1, CacheBytes: plainBytes,
}

// published are the models by their names without what versions of one size differ in;
// see modelKey. Llama-3.1-405B at fp8 is as Meta publishes it, which keeps attention
// at two bytes (vLLM loads 57.75 GiB on each of eight devices). Of gpt-oss the experts
// have 4.25 bits, which vLLM pads: it loads 64.4 GiB of the larger one on H100; the
// smaller one is reckoned alike. Gemma 3 from 4B and Mistral-Small from 3.1 on have
// a vision encoder among their parameters.
var published = map[string]ModelFigures{
	"llama-2-7b":         dense(6_738_415_616, true, 32000, 4096, 32, 32, 32, 128),
	"llama-2-13b":        dense(13_015_864_320, true, 32000, 5120, 40, 40, 40, 128),
	"llama-2-70b":        dense(68_976_648_192, true, 32000, 8192, 80, 64, 8, 128),
	"llama-3.1-8b":       dense(8_030_261_248, true, 128256, 4096, 32, 32, 8, 128),
	"llama-3.1-70b":      dense(70_553_706_496, true, 128256, 8192, 80, 64, 8, 128),
	"llama-3.1-405b":     dense(405_853_388_800, true, 128256, 16384, 126, 128, 8, 128),
	"llama-3.1-405b-fp8": dense(405_853_388_800, true, 128256, 16384, 126, 128, 8, 128).at(1.214),
	"llama-3.2-1b":       dense(1_235_814_400, false, 128256, 2048, 16, 32, 8, 64),
	"llama-3.2-3b":       dense(3_212_749_824, false, 128256, 3072, 28, 24, 8, 128),

	"qwen2.5-0.5b":                  dense(494_032_768, false, 151936, 896, 24, 14, 2, 64),
	"qwen2.5-1.5b":                  dense(1_543_714_304, false, 151936, 1536, 28, 12, 2, 128),
	"qwen2.5-3b":                    dense(3_085_938_688, false, 151936, 2048, 36, 16, 2, 128),
	"qwen2.5-7b":                    dense(7_615_616_512, true, 152064, 3584, 28, 28, 4, 128),
	"qwen2.5-14b":                   dense(14_770_033_664, true, 152064, 5120, 48, 40, 8, 128),
	"qwen2.5-32b":                   dense(32_763_876_352, true, 152064, 5120, 64, 40, 8, 128),
	"qwen2.5-72b":                   dense(72_706_203_648, true, 152064, 8192, 80, 64, 8, 128),
	"deepseek-r1-distill-qwen-1.5b": dense(1_777_088_000, true, 151936, 1536, 28, 12, 2, 128),
	"qwen3-0.6b":                    dense(596_049_920, false, 151936, 1024, 28, 16, 8, 128),
	"qwen3-1.7b":                    dense(1_720_574_976, false, 151936, 2048, 28, 16, 8, 128),
	"qwen3-4b":                      dense(4_022_468_096, false, 151936, 2560, 36, 32, 8, 128),
	"qwen3-8b":                      dense(8_190_735_360, true, 151936, 4096, 36, 32, 8, 128),
	"qwen3-14b":                     dense(14_768_307_200, true, 151936, 5120, 40, 40, 8, 128),
	"qwen3-32b":                     dense(32_762_123_264, true, 151936, 5120, 64, 64, 8, 128),
	"qwen3-30b-a3b":                 dense(30_532_122_624, true, 151936, 2048, 48, 32, 4, 128).experts(128, 8, 768),
	"qwen3-235b-a22b":               dense(235_093_634_560, true, 151936, 4096, 94, 64, 4, 128).experts(128, 8, 1536),
	"qwen3-coder-480b-a35b":         dense(480_154_875_392, true, 151936, 6144, 62, 96, 8, 128).experts(160, 8, 2560),

	"mistral-7b":            dense(7_248_023_552, true, 32768, 4096, 32, 32, 8, 128),
	"mistral-nemo":          dense(12_247_782_400, true, 131072, 5120, 40, 32, 8, 128),
	"mistral-small-2409":    dense(22_247_282_688, true, 32768, 6144, 56, 48, 8, 128),
	"mistral-small-24b":     dense(23_572_403_200, true, 131072, 5120, 40, 32, 8, 128),
	"mistral-small-3.1-24b": dense(24_010_000_000, true, 131072, 5120, 40, 32, 8, 128),
	"mistral-small-3.2-24b": dense(24_010_000_000, true, 131072, 5120, 40, 32, 8, 128),
	"mistral-large-2407":    dense(122_610_069_504, true, 32768, 12288, 88, 96, 8, 128),
	"mixtral-8x7b":          dense(46_702_792_704, true, 32000, 4096, 32, 32, 8, 128).experts(8, 2, 14336),
	"mixtral-8x22b":         dense(140_620_634_112, true, 32000, 6144, 56, 48, 8, 128).experts(8, 2, 16384),

	"gemma-2-2b":  dense(2_614_341_888, false, 256000, 2304, 26, 8, 4, 256).windowed(13, 4096),
	"gemma-2-9b":  dense(9_241_705_984, false, 256000, 3584, 42, 16, 8, 256).windowed(21, 4096),
	"gemma-2-27b": dense(27_227_128_320, false, 256000, 4608, 46, 32, 16, 128).windowed(23, 4096),
	"gemma-3-1b":  dense(999_885_952, false, 262144, 1152, 26, 4, 1, 256).windowed(22, 512),
	"gemma-3-4b":  dense(4_300_079_472, false, 262208, 2560, 34, 8, 4, 256).windowed(29, 1024),
	"gemma-3-12b": dense(12_187_325_040, false, 262208, 3840, 48, 16, 8, 256).windowed(40, 1024),
	"gemma-3-27b": dense(27_432_406_640, false, 262208, 5376, 62, 32, 16, 128).windowed(52, 1024),

	"phi-4":          dense(14_659_507_200, true, 100352, 5120, 40, 40, 10, 128),
	"phi-4-mini":     dense(3_836_021_760, false, 200064, 3072, 32, 24, 8, 128),
	"granite-3.1-8b": dense(8_170_848_256, false, 49155, 4096, 40, 32, 8, 128),

	"deepseek-v3":  latent,
	"gpt-oss-20b":  dense(20_914_757_184, true, 201088, 2880, 24, 64, 8, 64).experts(32, 4, 2880).biased(2880).windowed(12, 128).at(0.578),
	"gpt-oss-120b": dense(116_829_156_672, true, 201088, 2880, 36, 64, 8, 64).experts(128, 4, 2880).biased(2880).windowed(18, 128).at(0.578),
}

// PublishedModels are the names that FiguresOf knows as they are, sorted.
func PublishedModels() []string { return slices.Sorted(maps.Keys(published)) }

// sameAs are beginnings of names that mean the model of another one, because its
// figures are the same. The first that fits is taken.
var sameAs = [][2]string{
	{"llama-3-8b", "llama-3.1-8b"},
	{"llama-3-70b", "llama-3.1-70b"},
	{"llama-3.3-70b", "llama-3.1-70b"},
	{"deepseek-r1-distill-llama-", "llama-3.1-"},
	{"deepseek-r1-distill-qwen-7b", "qwen2.5-7b"},
	{"deepseek-r1-distill-qwen-14b", "qwen2.5-14b"},
	{"deepseek-r1-distill-qwen-32b", "qwen2.5-32b"},
	{"deepseek-r1", "deepseek-v3"},
	{"deepseek-v3.1", "deepseek-v3"},
	{"qwq-32b", "qwen2.5-32b"},
	{"qwen2.5-coder-", "qwen2.5-"},
	{"qwen2.5-math-", "qwen2.5-"},
	{"qwen2-", "qwen2.5-"},
	{"qwen3-coder-30b-", "qwen3-30b-"},
	{"codestral-22b", "mistral-small-2409"},
	{"devstral-small-2505", "mistral-small-24b"},
	{"devstral-small-2507", "mistral-small-24b"},
	{"mistral-large-2411", "mistral-large-2407"},
	{"granite-3.0-8b", "granite-3.1-8b"},
	{"granite-3.2-8b", "granite-3.1-8b"},
	{"granite-3.3-8b", "granite-3.1-8b"},
}

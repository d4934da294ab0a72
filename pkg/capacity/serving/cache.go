package serving

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// CacheConfig is what a running server says about its KV cache.
type CacheConfig struct {
	// Blocks and BlockSize are num_gpu_blocks and block_size of
	// vllm:cache_config_info.
	Blocks, BlockSize int
	// Tokens is the size in tokens, where the server says it so
	// (sglang:max_total_num_tokens).
	Tokens capacity.Tokens
}

// Memory is what the KV cache's size follows from when nobody says it.
type Memory struct {
	// DeviceGiB is the memory of one device as its driver tells it, and Devices how many
	// a replica has.
	DeviceGiB float64
	Devices   int
	// WeightsGiB is the size of the model's weights over all devices.
	WeightsGiB float64
	// BytesPerToken is what one token takes in the KV cache over all devices of one
	// engine: 2 * layers * key-value heads * head size * bytes per number.
	BytesPerToken float64
}

// CacheSource says where a KV capacity is from.
type CacheSource string

// The sources, the surest first.
const (
	CacheUnknown   CacheSource = ""
	CacheReported  CacheSource = "reported by the server"
	CacheArguments CacheSource = "the server's arguments"
	CacheComputed  CacheSource = "memory and model size"
)

const (
	// usableShare is what a program can have of the memory that the driver tells:
	// 79.1 to 79.3 GiB of 80 on H100 and A100, 23.5 of 24 on RTX 4090.
	usableShare = 0.99
	// deviceOverheadGiB and tokenOverheadKiB are what a device needs beside weights and
	// cache: for each one, and for each token that a batch may have. The second is what
	// the widest layer and the state take, two bytes each of 2*(14336+4096) numbers in
	// Llama-3.1-8B. Both together are 1.34 GiB for 2,048 tokens and 1.76 for 8,192; what
	// was left out of the cache by servers' logs is 1.15 (RTX 4090) and 1.56 (H100), and
	// 2.1 for Qwen2.5-14B on H100.
	deviceOverheadGiB = 1.2
	tokenOverheadKiB  = 72
	// leastCacheShare is the share of the memory that has to be left for the cache. With
	// less, what is not known of the overhead is as large as the cache.
	leastCacheShare = 0.1
	// defaultMemoryShare and defaultBlockSize are vLLM's, and so are the tokens in a batch
	// by the size of the device.
	defaultMemoryShare   = 0.9
	defaultBlockSize     = 16
	defaultBatchedTokens = 2048
	largeBatchedTokens   = 8192
	largeDeviceGiB       = 70
)

const gib = 1 << 30

// MemoryOf is the memory of a replica with so many devices of one size that holds the
// model as the arguments lay it out. Its bytes per token are 0, so that nothing follows
// from it, where they do not say where the model is: an argument that is not modelled,
// another number of devices than the replica has, or experts that several engines
// share.
func MemoryOf(m ModelFigures, a Arguments, deviceGiB float64, devices int) Memory {
	tensor, pipeline, data := max(1, a.TensorParallel), max(1, a.PipelineParallel), max(1, a.DataParallel)
	memory := Memory{DeviceGiB: deviceGiB, Devices: devices, WeightsGiB: float64(data) * m.Weights() / gib}
	laidOut := tensor <= devices && pipeline <= devices && data <= devices && tensor*pipeline*data == devices
	if laidOut && a.Unmodelled == "" && (data == 1 || m.Experts.Count == 0) {
		memory.BytesPerToken = m.CachePerToken(tensor)
	}
	return memory
}

// KVCapacity is the number of tokens that the KV cache of a replica holds: what the
// server reports, else what its arguments fix, else what is left of the memory when
// the weights are loaded. It is 0 when none of them is known.
func KVCapacity(reported CacheConfig, arguments Arguments, memory Memory) (capacity.Tokens, CacheSource) {
	if reported.Tokens > 0 && !math.IsInf(float64(reported.Tokens), 0) {
		return reported.Tokens, CacheReported
	}
	if reported.Blocks > 0 && reported.BlockSize > 0 {
		return capacity.Tokens(reported.Blocks) * capacity.Tokens(reported.BlockSize), CacheReported
	}
	if arguments.MaxTotalTokens > 0 {
		return capacity.Tokens(arguments.MaxTotalTokens), CacheArguments
	}
	if arguments.BlocksOverride > 0 {
		size := arguments.BlockSize
		if size <= 0 {
			size = defaultBlockSize
		}
		return capacity.Tokens(arguments.BlocksOverride) * capacity.Tokens(size), CacheArguments
	}
	if tokens := memory.tokens(arguments); tokens > 0 {
		return tokens, CacheComputed
	}
	return 0, CacheUnknown
}

// tokens is what fits into the memory:
//
//	(devices*(share*usable - overhead) - weights) / bytes per token
//
// in which SGLang's share has no overhead. It is 0 when anything is unknown, and when
// too little is left.
func (m Memory) tokens(a Arguments) capacity.Tokens {
	for _, x := range [...]float64{m.DeviceGiB, float64(m.Devices), m.WeightsGiB, m.BytesPerToken} {
		if !(x > 0) || math.IsInf(x, 0) {
			return 0
		}
	}
	share := a.MemoryShare
	if !(share > 0) || share > 1 {
		share = defaultMemoryShare
	}
	usable := usableShare * m.DeviceGiB
	each := share * usable
	if !a.Static {
		each -= m.overhead(a)
	}
	free := float64(m.Devices)*each - m.WeightsGiB
	if free < leastCacheShare*float64(m.Devices)*usable {
		return 0
	}
	return capacity.Tokens(math.Floor(free * gib / m.BytesPerToken))
}

// overhead is what each device needs beside weights and cache, in GiB.
func (m Memory) overhead(a Arguments) float64 {
	batched := a.MaxBatchedTokens
	if batched <= 0 {
		batched = defaultBatchedTokens
		if m.DeviceGiB >= largeDeviceGiB {
			batched = largeBatchedTokens
		}
	}
	return deviceOverheadGiB + tokenOverheadKiB*float64(batched)/(1<<20)
}

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
	// DeviceGiB is the memory of one device, and Devices how many a replica has.
	DeviceGiB float64
	Devices   int
	// WeightsGiB is the size of the model's weights over all devices.
	WeightsGiB float64
	// BytesPerToken is what one token takes in the KV cache over all devices:
	// 2 * layers * key-value heads * head size * bytes per number.
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
	// cacheOverheadGiB is what activations and CUDA graphs take of each device;
	// measured are 2.0 to 2.6 on H100 and 1.3 on smaller ones.
	cacheOverheadGiB = 2
	// defaultMemoryShare and defaultBlockSize are vLLM's.
	defaultMemoryShare = 0.9
	defaultBlockSize   = 16
)

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
	share := arguments.MemoryShare
	if share <= 0 || share > 1 {
		share = defaultMemoryShare
	}
	if memory.DeviceGiB <= 0 || memory.Devices <= 0 || memory.WeightsGiB <= 0 || memory.BytesPerToken <= 0 {
		return 0, CacheUnknown
	}
	free := float64(memory.Devices)*(share*memory.DeviceGiB-cacheOverheadGiB) - memory.WeightsGiB
	if tokens := math.Floor(free * (1 << 30) / memory.BytesPerToken); tokens > 0 {
		return capacity.Tokens(tokens), CacheComputed
	}
	return 0, CacheUnknown
}

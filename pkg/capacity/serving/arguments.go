package serving

import (
	"strconv"
	"strings"
)

// Arguments are the server's arguments that its capacity follows from. 0 means not
// given.
type Arguments struct {
	// MemoryShare is gpu_memory_utilization of vLLM, mem_fraction_static of SGLang.
	MemoryShare float64
	// BlockSize and BlocksOverride are block_size and num_gpu_blocks_override.
	BlockSize, BlocksOverride int
	// MaxTotalTokens is SGLang's max_total_tokens.
	MaxTotalTokens int
	// MaxSequences is max_num_seqs of vLLM, max_running_requests of SGLang.
	MaxSequences int
	// MaxBatchedTokens is max_num_batched_tokens, and MaxModelLength max_model_len.
	MaxBatchedTokens, MaxModelLength int
	// TensorParallel is tensor_parallel_size.
	TensorParallel int
}

// ParseArguments reads a container's command and arguments: --name=value or --name
// value, hyphens or underscores, also within one string for a shell. What it does not
// know or cannot read it leaves out. The last of several counts, as it does for the
// servers.
func ParseArguments(command []string) Arguments {
	var a Arguments
	whole := map[string]*int{
		"block-size": &a.BlockSize, "num-gpu-blocks-override": &a.BlocksOverride,
		"max-total-tokens": &a.MaxTotalTokens, "max-num-seqs": &a.MaxSequences, "max-running-requests": &a.MaxSequences,
		"max-num-batched-tokens": &a.MaxBatchedTokens, "max-model-len": &a.MaxModelLength, "context-length": &a.MaxModelLength,
		"tensor-parallel-size": &a.TensorParallel, "tp-size": &a.TensorParallel, "tp": &a.TensorParallel,
	}
	shares := map[string]*float64{"gpu-memory-utilization": &a.MemoryShare, "mem-fraction-static": &a.MemoryShare}
	words := strings.Fields(strings.Join(command, " "))
	for i, word := range words {
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		name, value = strings.ReplaceAll(name, "_", "-"), strings.Trim(value, `"'`)
		if target, ok := whole[name]; ok {
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				*target = n
			}
		}
		if target, ok := shares[name]; ok {
			if x, err := strconv.ParseFloat(value, 64); err == nil && x > 0 && x <= 1 {
				*target = x
			}
		}
	}
	return a
}

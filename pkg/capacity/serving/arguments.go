package serving

import (
	"slices"
	"strconv"
	"strings"
)

// Arguments are the server's arguments that its capacity follows from. 0 and empty
// mean not given.
type Arguments struct {
	// Model is the name or the path of the model.
	Model string
	// Quantization, Numbers and CacheNumbers are quantization, dtype and
	// kv_cache_dtype.
	Quantization, Numbers, CacheNumbers string
	// MemoryShare is gpu_memory_utilization of vLLM, mem_fraction_static of SGLang,
	// which leaves out what the server needs beside weights and cache: Static is then
	// set.
	MemoryShare float64
	Static      bool
	// BlockSize and BlocksOverride are block_size and num_gpu_blocks_override.
	BlockSize, BlocksOverride int
	// MaxTotalTokens is SGLang's max_total_tokens.
	MaxTotalTokens int
	// MaxSequences is max_num_seqs of vLLM, max_running_requests of SGLang.
	MaxSequences int
	// MaxBatchedTokens is max_num_batched_tokens, and MaxModelLength max_model_len.
	MaxBatchedTokens, MaxModelLength int
	// TensorParallel, PipelineParallel and DataParallel are tensor_parallel_size,
	// pipeline_parallel_size and data_parallel_size.
	TensorParallel, PipelineParallel, DataParallel int
	// Unmodelled is an argument because of which the cache does not follow from the
	// memory and the model's size; empty without one.
	Unmodelled string
}

// unmodelled are arguments that put something else into the memory, take something out
// of it, or hide other arguments.
var unmodelled = []string{
	"config", "hf-overrides", "kv-cache-memory-bytes", "kv-cache-memory", "cpu-offload-gb", "decode-context-parallel-size", "dcp",
	"speculative-config", "speculative-model", "speculative-algorithm", "speculative-draft-model-path",
}

// ParseArguments reads a container's command and arguments: --name=value or --name
// value, hyphens or underscores, also within one string for a shell. What it does not
// know or cannot read it leaves out. The last of several counts, as it does for the
// servers.
func ParseArguments(command []string) Arguments {
	var a Arguments
	words := slices.DeleteFunc(strings.Fields(strings.Join(command, " ")), func(word string) bool { return word == `\` })
	for i, word := range words {
		if word == "serve" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			a.Model = strings.Trim(words[i+1], `"'`)
		}
		if !strings.HasPrefix(word, "-") {
			continue
		}
		name, value, given := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !given && i+1 < len(words) {
			value = words[i+1]
		}
		a.set(strings.ReplaceAll(name, "_", "-"), strings.Trim(value, `"'`))
	}
	return a
}

// set takes over one argument.
func (a *Arguments) set(name, value string) {
	if slices.Contains(unmodelled, name) {
		a.Unmodelled = name
	}
	if target := a.text(name); target != nil && !strings.HasPrefix(value, "-") {
		*target = value
	}
	if target := a.whole(name); target != nil {
		if n, err := strconv.Atoi(value); err == nil && n > 0 {
			*target = n
		}
	}
	if name == "gpu-memory-utilization" || name == "mem-fraction-static" {
		if x, err := strconv.ParseFloat(value, 64); err == nil && x > 0 && x <= 1 {
			a.MemoryShare, a.Static = x, name == "mem-fraction-static"
		}
	}
}

// text is where the value of an argument with words goes; nil for any other.
func (a *Arguments) text(name string) *string {
	switch name {
	case "model", "model-path":
		return &a.Model
	case "quantization", "q":
		return &a.Quantization
	case "dtype":
		return &a.Numbers
	case "kv-cache-dtype":
		return &a.CacheNumbers
	}
	return nil
}

// whole is where the value of an argument with a whole number goes; nil for any other.
func (a *Arguments) whole(name string) *int {
	switch name {
	case "block-size":
		return &a.BlockSize
	case "num-gpu-blocks-override":
		return &a.BlocksOverride
	case "max-total-tokens":
		return &a.MaxTotalTokens
	case "max-num-seqs", "max-running-requests":
		return &a.MaxSequences
	case "max-num-batched-tokens":
		return &a.MaxBatchedTokens
	case "max-model-len", "context-length":
		return &a.MaxModelLength
	case "tensor-parallel-size", "tp-size", "tp":
		return &a.TensorParallel
	case "pipeline-parallel-size", "pp-size", "pp":
		return &a.PipelineParallel
	case "data-parallel-size", "dp-size", "dp":
		return &a.DataParallel
	}
	return nil
}

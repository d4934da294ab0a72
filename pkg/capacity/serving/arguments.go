package serving

import (
	"slices"
	"strconv"
	"strings"
)

// Arguments are the server's arguments that its capacity follows from. 0 and empty
// mean not given, unless the argument is among the unread.
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
	// Unread are the names of the arguments with a number that are given one which
	// cannot be read here, such as a variable of a ConfigMap: not the default, but unknown.
	Unread []string
}

// SequencesUnread says that the server is given a batch limit, and nobody knows which.
func (a *Arguments) SequencesUnread() bool {
	return slices.ContainsFunc(a.Unread, func(name string) bool { return a.whole(name) == &a.MaxSequences })
}

// unmodelled are arguments that put something else into the memory, take something out
// of it, or hide other arguments.
var unmodelled = []string{
	"config", "hf-overrides", "kv-cache-memory-bytes", "kv-cache-memory", "cpu-offload-gb", "decode-context-parallel-size", "dcp",
	"speculative-config", "speculative-model", "speculative-algorithm", "speculative-draft-model-path",
}

// ParseArguments reads a container's command and arguments: --name=value or --name
// value, hyphens or underscores, also within one string for a shell. What it does not
// know it leaves out. The last of several counts, as it does for the servers.
func ParseArguments(command []string) Arguments {
	var a Arguments
	words := wordsOf(command)
	for i, word := range words {
		if word == "serve" && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
			a.Model = words[i+1]
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
	if len(a.Unread) > 0 && a.Unmodelled == "" {
		a.Unmodelled = a.Unread[0]
	}
	if slices.Contains(a.Unread, "block-size") {
		// A number of blocks of an unknown size says nothing.
		a.BlocksOverride = 0
	}
	return a
}

// wordsOf are the words of a command line, without a shell's quotes around them and
// without what continues a line or ends a command.
func wordsOf(command []string) []string {
	words := strings.Fields(strings.Join(command, " "))
	for i, word := range words {
		words[i] = strings.Trim(word, `\"';`)
	}
	return slices.DeleteFunc(words, func(word string) bool { return word == "" })
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
		n, err := strconv.Atoi(value)
		read := err == nil && n > 0
		if !read {
			n = 0
		}
		*target = n
		a.note(name, read || target == &a.MaxModelLength)
	}
	if name == "gpu-memory-utilization" || name == "mem-fraction-static" {
		x, err := strconv.ParseFloat(value, 64)
		read := err == nil && x > 0 && x <= 1
		if !read {
			x = 0
		}
		a.MemoryShare, a.Static = x, name == "mem-fraction-static"
		a.note(name, read)
	}
}

// note keeps whether the last value of an argument could be read. (Nothing follows from
// the length of the context, which may also be auto or 32k.)
func (a *Arguments) note(name string, read bool) {
	a.Unread = slices.DeleteFunc(a.Unread, func(other string) bool { return other == name })
	if !read {
		a.Unread = append(a.Unread, name)
	} else if len(a.Unread) == 0 {
		a.Unread = nil
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

package serving

import (
	"math"
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
	// MaxSequences is max_num_seqs of vLLM, max_running_requests of SGLang. Each engine of a
	// server takes as many: see Engines.
	MaxSequences int
	// MaxBatchedTokens is max_num_batched_tokens, and MaxModelLength max_model_len.
	MaxBatchedTokens, MaxModelLength int
	// TensorParallel, PipelineParallel and DataParallel are tensor_parallel_size,
	// pipeline_parallel_size and data_parallel_size.
	TensorParallel, PipelineParallel, DataParallel int
	// DataParallelLocal is vLLM's data_parallel_size_local: how many of the engines run here.
	DataParallelLocal int
	// Balancing says who sends requests to which of the engines.
	Balancing Balancing
	// PortPerRank is set where each engine of a node answers at a port of its own.
	PortPerRank bool
	// SharesSequences is set where the engines share MaxSequences: SGLang's do with
	// enable_dp_attention.
	SharesSequences bool
	// Elsewhere is set where a file may give further arguments (config), and Tuned where an
	// argument changes what the server takes without one (performance_mode of vLLM).
	Elsewhere, Tuned bool
	// Unmodelled is an argument because of which the cache does not follow from the
	// memory and the model's size; empty without one.
	Unmodelled string
	// Unread are the names of the arguments with a number that are given one which
	// cannot be read here, such as a variable of a ConfigMap: not the default, but unknown.
	Unread []string
}

// Balancing says who sends requests to the engines of a server with data parallelism.
type Balancing string

// The ways of it. The server that balances among all engines shows the metrics of all of them;
// one behind a balancer shows those that it runs.
const (
	BalancedInside Balancing = ""
	BalancedByNode Balancing = "by node"
	BalancedByRank Balancing = "by rank"
)

// SequencesUnread says that the server is given a batch limit, and nobody knows which: its
// number, how many engines take as many, or what a file says of both.
func (a *Arguments) SequencesUnread() bool {
	unread := slices.ContainsFunc(a.Unread, func(name string) bool {
		target := a.whole(name)
		return target == &a.MaxSequences || target == &a.DataParallel || target == &a.DataParallelLocal
	})
	return unread || a.Elsewhere && (a.MaxSequences == 0 || a.DataParallel == 0)
}

// Engines is how many engines take MaxSequences each. The server's metrics add up what all of
// them run. (vLLM 0.9 to 0.29: vllm/config/parallel.py and vllm/v1/metrics/loggers.py, which has a
// series for each engine. SGLang 0.5: each data-parallel worker has max_running_requests of its
// own, but with enable_dp_attention that is divided by their number.)
func (a *Arguments) Engines() int {
	switch {
	case a.SharesSequences, a.Balancing == BalancedByRank:
		return 1
	case a.Balancing == BalancedByNode && a.DataParallelLocal > 0:
		return a.DataParallelLocal
	}
	return max(1, a.DataParallel)
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
	switch name {
	case "config":
		a.Elsewhere = true
	case "performance-mode":
		a.Tuned = true
	case "enable-dp-attention":
		a.SharesSequences = true
	case "data-parallel-hybrid-lb", "dph", "data-parallel-start-rank", "dpr":
		a.Balancing = BalancedByNode
	case "data-parallel-multi-port-external-lb":
		a.Balancing, a.PortPerRank = BalancedByNode, true
	case "data-parallel-external-lb", "dpe", "data-parallel-rank", "dpn":
		a.Balancing = BalancedByRank
	}
	if target := a.text(name); target != nil && !strings.HasPrefix(value, "-") {
		*target = value
	}
	if target := a.whole(name); target != nil {
		n, err := strconv.Atoi(value)
		if target == &a.MaxBatchedTokens {
			n, err = readable(value)
		}
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

// readable is a number as people may write it for vLLM: 8k is 8000, 8K 8192 (human_readable_int in
// vllm/engine/arg_utils.py, 0.9 to 0.19).
func readable(value string) (int, error) {
	for i, unit := range []string{"k", "m", "g", "K", "M", "G"} {
		if digits, found := strings.CutSuffix(value, unit); found {
			x, err := strconv.ParseFloat(digits, 64)
			if !(x > 0) {
				return 0, strconv.ErrRange
			}
			return int(min(x*[]float64{1e3, 1e6, 1e9, 1 << 10, 1 << 20, 1 << 30}[i], math.MaxInt32)), err
		}
	}
	return strconv.Atoi(value)
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
	case "data-parallel-size-local", "dpl":
		return &a.DataParallelLocal
	}
	return nil
}

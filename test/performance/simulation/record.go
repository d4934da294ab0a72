package simulation

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// record is a recorded run of a vLLM server: its limits, what it is, and what its
// requests saw inside the engine.
type record struct {
	name     string
	meta     meta
	requests []request
	measured []served
	// prompts are what the requests' prompts begin with, nil for those of which the run
	// does not say it.
	prompts []*workload.Prompt
	// engines is how many engines requests are divided among, each with the limits of
	// meta; sharing is set when they are one server, which share its experts.
	engines int
	sharing bool
	// memory is the size of a device in GiB, for a KV cache whose size is not recorded.
	memory float64
}

// meta is what a run's meta.json says of the server.
type meta struct {
	Model   string `json:"model"`
	Version string `json:"vllm_version"`
	Engine  struct {
		Sequences     int    `json:"max_num_seqs"`
		BatchedTokens int    `json:"max_num_batched_tokens"`
		Type          string `json:"dtype"`
		CacheType     string `json:"kv_cache_dtype"`
		Tensor        int    `json:"tensor_parallel_size"`
		Data          int    `json:"data_parallel_size"`
		Pipeline      int    `json:"pipeline_parallel_size"`
		Quantization  string `json:"quantization"`
	} `json:"engine_kwargs"`
	Cache struct {
		Tokens int `json:"num_kv_tokens"`
		// Share is the part of a device's memory that the server may use.
		Share float64 `json:"gpu_memory_utilization"`
		// Prefix says whether prefixes are cached, which they are if nothing is said.
		Prefix *bool `json:"enable_prefix_caching"`
	} `json:"kv_cache"`
	Hardware struct {
		Device string  `json:"device_name"`
		Memory float64 `json:"device_total_memory_bytes"`
	} `json:"hardware"`
	Resolved struct {
		Scheduler struct {
			Ahead *bool `json:"async_scheduling"`
		} `json:"scheduler_config"`
	} `json:"resolved_config"`
}

// entry is a line of requests.jsonl. Times are in seconds: the arrival of the wall
// clock, the others of the engine's own clock.
type entry struct {
	ID         string   `json:"request_id"`
	Input      int      `json:"input_toks"`
	Output     int      `json:"output_toks"`
	Arrival    *float64 `json:"arrival_time"`
	Queued     *float64 `json:"queued_ts"`
	FirstToken *float64 `json:"first_token_ts"`
	LastToken  *float64 `json:"last_token_ts"`
	// Blocks are those of the prompt, in the form of the Mooncake traces.
	Blocks []uint64 `json:"hash_ids"`
	prompt *workload.Prompt
}

// readRecord reads a run's folder: meta.json and requests.jsonl, there or in a folder
// vllm within it, and config.json for what meta.json does not say of the hardware.
func readRecord(folder string) (record, error) {
	r := record{name: filepath.Base(filepath.Clean(folder))}
	within := folder
	if _, err := os.Stat(filepath.Join(folder, "vllm", "meta.json")); err == nil {
		within = filepath.Join(folder, "vllm")
	}
	path := filepath.Join(within, "meta.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the run: %w", err)
	}
	if err := json.Unmarshal(text, &r.meta); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	c, described, err := readCluster(filepath.Join(folder, "config.json"))
	if err != nil {
		return r, err
	}
	r.engines, r.sharing = max(1, r.meta.Engine.Data), r.meta.Engine.Data > 1
	r.memory = r.meta.Hardware.Memory / (1 << 30)
	if described {
		if err := r.complete(c); err != nil {
			return r, fmt.Errorf("%s and config.json: %w", path, err)
		}
	}
	if err := r.check(); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	path = filepath.Join(within, "requests.jsonl")
	if text, err = os.ReadFile(path); err != nil {
		return r, fmt.Errorf("read the run: %w", err)
	}
	if r.requests, r.measured, r.prompts, err = parseRequests(text); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// complete takes over what config.json alone says, and refuses two that contradict each
// other.
func (r *record) complete(c cluster) error {
	e := r.meta.Engine
	switch {
	case c.Model != "" && c.Model != r.meta.Model:
		return fmt.Errorf("the models differ: %q and %q", r.meta.Model, c.Model)
	case c.Tensor > 0 && e.Tensor > 0 && c.Tensor != e.Tensor:
		return fmt.Errorf("tensor_parallel_size is %d and tp_size %d", e.Tensor, c.Tensor)
	case e.Data > 1 && e.Data != c.engines:
		return fmt.Errorf("data_parallel_size is %d, and there are %d instances", e.Data, c.engines)
	}
	if e.Tensor == 0 {
		r.meta.Engine.Tensor = c.Tensor
	}
	r.engines, r.sharing = c.engines, r.sharing || c.grouped
	if r.memory == 0 {
		r.memory = c.Memory.Size
	}
	if r.meta.Hardware.Device != "" {
		return nil
	}
	var err error
	r.meta.Hardware.Device, err = c.product()
	return err
}

// check says what is missing.
func (r *record) check() error {
	m := r.meta
	switch {
	case m.Model == "" || m.Hardware.Device == "":
		return fmt.Errorf("expected the names model (%q) and hardware.device_name (%q), the latter or the hardware of an instance in a config.json beside it",
			m.Model, m.Hardware.Device)
	case m.Engine.Sequences < 1 || m.Engine.BatchedTokens < 1:
		return fmt.Errorf("expected the limits engine_kwargs.max_num_seqs (%d) and max_num_batched_tokens (%d) above 0", m.Engine.Sequences, m.Engine.BatchedTokens)
	case m.Cache.Tokens < 0 || m.Cache.Tokens == 0 && !(r.memory > 0):
		return fmt.Errorf("expected the size of the KV cache, kv_cache.num_kv_tokens (%d), or of a device's memory, hardware.device_total_memory_bytes "+
			"or npu_mem.mem_size of an instance in a config.json beside it", m.Cache.Tokens)
	case m.Engine.Data < 0 || m.Engine.Tensor < 0 || m.Engine.Pipeline > 1:
		return fmt.Errorf("data_parallel_size is %d, tensor_parallel_size %d, pipeline_parallel_size %d; expected none below 0, and no pipeline, which is not modelled",
			m.Engine.Data, m.Engine.Tensor, m.Engine.Pipeline)
	case m.Engine.Quantization != "":
		return fmt.Errorf("no published figures for the quantization %q", m.Engine.Quantization)
	}
	return nil
}

// aheadSince is the first version of vLLM, 0.14, that schedules asynchronously if nothing is
// said (its release notes).
const aheadSince = 14

// ahead says whether the server chose the requests of an iteration, and prepared it, while
// the one before ran. A server of which nobody knows the version is taken not to.
func (r *record) ahead() bool {
	if said := r.meta.Resolved.Scheduler.Ahead; said != nil {
		return *said
	}
	var major, minor int
	read, _ := fmt.Sscanf(strings.TrimPrefix(r.meta.Version, "v"), "%d.%d", &major, &minor)
	return read == 2 && (major > 0 || minor >= aheadSince)
}

// prefixes says whether the server cached prefixes, and whether the run says which prompts
// begin alike.
func (r *record) prefixes() (cached, said bool) {
	cached = r.meta.Cache.Prefix == nil || *r.meta.Cache.Prefix
	return cached, slices.ContainsFunc(r.prompts, func(p *workload.Prompt) bool { return p != nil })
}

// parseRequests reads the requests in order of arrival. The two clocks are tied
// where the first request was queued, which found an idle engine.
func parseRequests(text []byte) ([]request, []served, []*workload.Prompt, error) {
	var entries []entry
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for line := 1; scanner.Scan(); line++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		if err := e.check(); err != nil {
			return nil, nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		entries = append(entries, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, nil, err
	}
	if len(entries) == 0 {
		return nil, nil, nil, fmt.Errorf("it has no requests")
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(*a.Arrival, *b.Arrival) })
	begin, queued := *entries[0].Arrival, *entries[0].Queued
	requests, measured, prompts := make([]request, len(entries)), make([]served, len(entries)), make([]*workload.Prompt, len(entries))
	for i, e := range entries {
		arrived := *e.Arrival - begin
		requests[i], prompts[i] = request{at: seconds(arrived), input: e.Input, output: e.Output}, e.prompt
		measured[i] = served{ttft: seconds(*e.FirstToken - queued - arrived), output: e.Output}
		if e.Output > 1 {
			measured[i].perToken = seconds((*e.LastToken - *e.FirstToken) / float64(e.Output-1))
		}
	}
	return requests, measured, prompts, nil
}

func (e *entry) check() (err error) {
	for _, time := range []*float64{e.Arrival, e.Queued, e.FirstToken, e.LastToken} {
		if time == nil || math.IsNaN(*time) {
			return fmt.Errorf("request %q: expected arrival_time, queued_ts, first_token_ts and last_token_ts", e.ID)
		}
	}
	if e.Input < 1 || e.Output < 1 || *e.FirstToken < *e.Queued || *e.LastToken < *e.FirstToken {
		return fmt.Errorf("request %q: expected lengths of at least 1 and times in order", e.ID)
	}
	if e.prompt, err = workload.NewPrompt(e.Input, e.Blocks); err != nil {
		return fmt.Errorf("request %q: hash_ids has %w", e.ID, err)
	}
	return nil
}

package main

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
)

// record is a recorded run of a vLLM server: its limits, what it is, and what its
// requests saw inside the engine.
type record struct {
	name     string
	meta     meta
	requests []request
	measured []served
}

// meta is what a run's meta.json says of the server.
type meta struct {
	Model  string `json:"model"`
	Engine struct {
		Sequences     int    `json:"max_num_seqs"`
		BatchedTokens int    `json:"max_num_batched_tokens"`
		Type          string `json:"dtype"`
		CacheType     string `json:"kv_cache_dtype"`
		Tensor        int    `json:"tensor_parallel_size"`
		Data          int    `json:"data_parallel_size"`
		Quantization  string `json:"quantization"`
	} `json:"engine_kwargs"`
	Cache struct {
		Tokens int `json:"num_kv_tokens"`
	} `json:"kv_cache"`
	Hardware struct {
		Device string `json:"device_name"`
	} `json:"hardware"`
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
}

// readRecord reads a run's folder.
func readRecord(folder string) (record, error) {
	r := record{name: filepath.Base(filepath.Clean(folder))}
	path := filepath.Join(folder, "meta.json")
	text, err := os.ReadFile(path)
	if err != nil {
		return r, fmt.Errorf("read the run: %w", err)
	}
	if err := json.Unmarshal(text, &r.meta); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if err := r.meta.check(); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	path = filepath.Join(folder, "requests.jsonl")
	if text, err = os.ReadFile(path); err != nil {
		return r, fmt.Errorf("read the run: %w", err)
	}
	if r.requests, r.measured, err = parseRequests(text); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

func (m meta) check() error {
	if m.Model == "" || m.Hardware.Device == "" {
		return fmt.Errorf("expected the names model (%q) and hardware.device_name (%q)", m.Model, m.Hardware.Device)
	}
	if m.Engine.Sequences < 1 || m.Engine.BatchedTokens < 1 || m.Cache.Tokens < 1 {
		return fmt.Errorf("expected the limits engine_kwargs.max_num_seqs (%d) and max_num_batched_tokens (%d) and kv_cache.num_kv_tokens (%d) above 0",
			m.Engine.Sequences, m.Engine.BatchedTokens, m.Cache.Tokens)
	}
	if m.Engine.Data > 1 || m.Engine.Tensor < 0 {
		return fmt.Errorf("data_parallel_size is %d and tensor_parallel_size %d: expected one engine", m.Engine.Data, m.Engine.Tensor)
	}
	if m.Engine.Quantization != "" {
		return fmt.Errorf("no published figures for the quantization %q", m.Engine.Quantization)
	}
	return nil
}

// parseRequests reads the requests in order of arrival. The two clocks are tied
// where the first request was queued, which found an idle engine.
func parseRequests(text []byte) ([]request, []served, error) {
	var entries []entry
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	for line := 1; scanner.Scan(); line++ {
		if len(bytes.TrimSpace(scanner.Bytes())) == 0 {
			continue
		}
		var e entry
		if err := json.Unmarshal(scanner.Bytes(), &e); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		if err := e.check(); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", line, err)
		}
		entries = append(entries, e)
	}
	if err := scanner.Err(); err != nil {
		return nil, nil, err
	}
	if len(entries) == 0 {
		return nil, nil, fmt.Errorf("it has no requests")
	}
	slices.SortStableFunc(entries, func(a, b entry) int { return cmp.Compare(*a.Arrival, *b.Arrival) })
	begin, queued := *entries[0].Arrival, *entries[0].Queued
	requests, measured := make([]request, len(entries)), make([]served, len(entries))
	for i, e := range entries {
		arrived := *e.Arrival - begin
		requests[i] = request{at: seconds(arrived), input: e.Input, output: e.Output}
		measured[i] = served{ttft: seconds(*e.FirstToken - queued - arrived), output: e.Output}
		if e.Output > 1 {
			measured[i].perToken = seconds((*e.LastToken - *e.FirstToken) / float64(e.Output-1))
		}
	}
	return requests, measured, nil
}

func (e entry) check() error {
	for _, time := range []*float64{e.Arrival, e.Queued, e.FirstToken, e.LastToken} {
		if time == nil || math.IsNaN(*time) {
			return fmt.Errorf("request %q: expected arrival_time, queued_ts, first_token_ts and last_token_ts", e.ID)
		}
	}
	if e.Input < 1 || e.Output < 1 || *e.FirstToken < *e.Queued || *e.LastToken < *e.FirstToken {
		return fmt.Errorf("request %q: expected lengths of at least 1 and times in order", e.ID)
	}
	return nil
}

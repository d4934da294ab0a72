package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func on(accelerator capacity.Accelerator, devices int) capacity.Shape {
	return capacity.Shape{Accelerator: accelerator, Devices: devices, Pods: 1}
}

// Llama-3.1-70B fp8 on H200, as measured and published.
var h200x2 = Profile{Base: 13.13, PerRequest: 0.0314, PerResidentToken: 3.97e-5, PerPrefillToken: 0.0719, KVTokens: 500000}

func TestBorrowingPredictsPublishedMeasurements(t *testing.T) {
	for devices, want := range map[int]Profile{
		4: {Base: 9.13, PerResidentToken: 2.21e-5, PerPrefillToken: 0.0438},
		8: {Base: 7.74, PerResidentToken: 9.45e-6, PerPrefillToken: 0.0270},
		1: {Base: 20.56, PerResidentToken: 7.07e-5, PerPrefillToken: 0.1241},
	} {
		loan, ok := Borrow(on("H200", devices), []Lender{{"pair", on("H200", 2), h200x2, 1}})
		require.True(t, ok)
		assert.InEpsilon(t, float64(want.Base), float64(loan.Profile.Base), 0.2, "base, %d", devices)
		assert.InEpsilon(t, float64(want.PerPrefillToken), float64(loan.Profile.PerPrefillToken), 0.2, "prefill, %d", devices)
		assert.InEpsilon(t, float64(want.PerResidentToken), float64(loan.Profile.PerResidentToken), 0.2, "resident, %d", devices)
		assert.Zero(t, loan.Profile.KVTokens, "another shape has another cache")
		assert.Contains(t, loan.Reason, "borrowed from pair on 2xH200")
	}
}

func TestBorrowTakesTheMostAlike(t *testing.T) {
	lenders := []Lender{
		{"far", on("L4", 1), h200x2, 1},
		{"near", on("H100", 2), h200x2, 1},
		{"unknown", on("Abacus", 2), h200x2, 1},
		{"empty", on("H200", 2), Profile{}, 1},
	}
	loan, ok := Borrow(on("H200", 2), lenders)
	require.True(t, ok)
	assert.Equal(t, "near", loan.From)
	assert.InEpsilon(t, 13.13*3.35/4.8, float64(loan.Profile.Base), 1e-9)
	assert.Less(t, loan.Confidence, 1.0)

	loan, ok = Borrow(on("Abacus", 2), lenders)
	require.True(t, ok)
	assert.Equal(t, "unknown", loan.From, "the same type needs no data sheet")
	assert.Equal(t, capacity.Tokens(500000), loan.Profile.KVTokens)
	assert.InDelta(t, 1, loan.Confidence, 1e-12)

	_, ok = Borrow(on("Orrery", 1), lenders)
	assert.False(t, ok)
	_, ok = Borrow(on("H200", 2), nil)
	assert.False(t, ok)
}

func TestKVCapacityTakesTheSurestSource(t *testing.T) {
	// Llama-3.1-8B on one H100: 27,996 blocks of 16 were logged.
	memory := Memory{DeviceGiB: 79.65, Devices: 1, WeightsGiB: 14.99, BytesPerToken: 128 << 10}
	for name, tc := range map[string]struct {
		reported  CacheConfig
		arguments Arguments
		memory    Memory
		want      float64
		source    CacheSource
	}{
		"reported in blocks": {CacheConfig{Blocks: 27996, BlockSize: 16}, Arguments{BlocksOverride: 1000}, memory, 447936, CacheReported},
		"reported in tokens": {CacheConfig{Tokens: 400000}, Arguments{}, memory, 400000, CacheReported},
		"fixed in blocks":    {CacheConfig{Blocks: 27996}, Arguments{BlocksOverride: 1000}, memory, 16000, CacheArguments},
		"fixed in tokens":    {CacheConfig{}, Arguments{MaxTotalTokens: 9000}, memory, 9000, CacheArguments},
		"computed":           {CacheConfig{}, Arguments{}, memory, 447936, CacheComputed},
		"too small a device": {CacheConfig{}, Arguments{}, Memory{DeviceGiB: 16, Devices: 1, WeightsGiB: 15, BytesPerToken: 1}, 0, CacheUnknown},
		"nothing is known":   {CacheConfig{}, Arguments{}, Memory{}, 0, CacheUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, source := KVCapacity(tc.reported, tc.arguments, tc.memory)
			assert.Equal(t, tc.source, source)
			assert.InDelta(t, tc.want, float64(got), 0.02*tc.want)
		})
	}
}

func TestParseArguments(t *testing.T) {
	for name, tc := range map[string]struct {
		command []string
		want    Arguments
	}{
		"separate words":   {[]string{"vllm", "serve", "--max-num-seqs", "64", "--block_size=32"}, Arguments{MaxSequences: 64, BlockSize: 32}},
		"for a shell":      {[]string{"sh", "-c", "vllm serve m --gpu-memory-utilization=0.85 --tensor-parallel-size 4"}, Arguments{MemoryShare: 0.85, TensorParallel: 4}},
		"SGLang":           {[]string{"--max-total-tokens", "5000", "--mem-fraction-static", "0.8", "--tp", "2"}, Arguments{MaxTotalTokens: 5000, MemoryShare: 0.8, TensorParallel: 2}},
		"the last counts":  {[]string{"--max-model-len=100", "--max-model-len=200"}, Arguments{MaxModelLength: 200}},
		"what cannot be":   {[]string{"--max-num-seqs=-3", "--gpu-memory-utilization=90", "--block-size"}, Arguments{}},
		"quoted":           {[]string{`--num-gpu-blocks-override="700"`, "--max-num-batched-tokens='2048'"}, Arguments{BlocksOverride: 700, MaxBatchedTokens: 2048}},
		"nothing":          {nil, Arguments{}},
		"values look like": {[]string{"--name", "max-num-seqs", "7"}, Arguments{}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, ParseArguments(tc.command)) })
	}
}

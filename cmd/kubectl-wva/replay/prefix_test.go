package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A scenario with a prefix cache reads what prompts begin with from a trace that says it,
// and refuses one that does not.
func TestPrefixCacheOfAScenario(t *testing.T) {
	const scenario = `
nodes:
- {name: gpu, count: 2, accelerator: H100, devices: 8}
prices: {H100: 7}
models:
- id: llama
  slo: {ttft: 200, itl: 50}
  variants:
  - {name: v, accelerator: H100, acceleratorCount: 8, profile: {base: 10, perPrefillToken: 0.1, CACHE}}
`
	var trace strings.Builder
	for i := range 120 {
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": 4096, "output_length": 2, "hash_ids": [1, 2, 3, 4, 5, 6, 7, %d]}`+"\n", 1000*i+40, 100+i)
	}
	path := write(t, "trace.jsonl", trace.String())
	attains := func(cache, path string) (float64, error) {
		out, _, err := run(t.Context(), "--trace", path, "--scenario", write(t, "scenario.yaml", strings.Replace(scenario, "CACHE", cache, 1)), "--policy", "static:1", "-o", "json")
		if err != nil {
			return 0, err
		}
		var list []struct {
			Attainment float64 `json:"attainment"`
		}
		require.NoError(t, json.Unmarshal([]byte(out), &list))
		require.Len(t, list, 1)
		return list[0].Attainment, nil
	}
	without, err := attains("prefixCache: false", path)
	require.NoError(t, err)
	assert.Less(t, without, 0.1, "420 ms for each prompt")
	with, err := attains("prefixCache: true", path)
	require.NoError(t, err)
	assert.Greater(t, with, 0.9, "61 ms")
	share, err := attains("prefixHits: 0.875", path)
	require.NoError(t, err)
	assert.Greater(t, share, 0.9)
	silent := write(t, "silent.csv", tinyTrace)
	_, err = attains("prefixCache: true", silent)
	assert.ErrorContains(t, err, "the variant v caches what prompts begin with (prefixCache), and no request says it")
	_, err = attains("prefixCache: true", write(t, "wrong.jsonl", strings.Replace(trace.String(), "[1, 2,", "[2,", 1)))
	assert.ErrorContains(t, err, "wrong.jsonl:1: hash_ids has 7 blocks of a prompt of 4096 tokens")
}

package workload_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

func TestTheSizeOfBlocksFollowsFromTheirNumber(t *testing.T) {
	for name, c := range map[string]struct {
		input, blocks, size int
	}{
		"one block": {512, 1, 512}, "a part of one": {1, 1, 512}, "one token more": {513, 2, 512}, "Mooncake's first": {6758, 14, 512},
		"small ones": {6758, 423, 16}, "a part of a small one": {17, 2, 16},
	} {
		p, err := workload.NewPrompt(c.input, make([]uint64, c.blocks))
		require.NoError(t, err, name)
		assert.Equal(t, c.size, p.Block, name)
		assert.Equal(t, c.blocks, p.Blocks(), name)
	}
	for name, c := range map[string]struct{ input, blocks int }{"one too many": {512, 2}, "one too few": {1025, 2}, "far too many": {100, 8}} {
		_, err := workload.NewPrompt(c.input, make([]uint64, c.blocks))
		assert.ErrorContains(t, err, fmt.Sprintf("%d blocks of a prompt of %d tokens; expected one for each 512 tokens, or for each 16", c.blocks, c.input), name)
	}
	none, err := workload.NewPrompt(100, nil)
	require.NoError(t, err)
	assert.Nil(t, none)
	assert.Zero(t, none.Blocks())
}

func TestMooncakeSaysWhatPromptsBeginWithWhereAsked(t *testing.T) {
	const text = `{"timestamp": 1040, "input_length": 600, "output_length": 5, "hash_ids": [46, 47]}
{"timestamp": 1041, "input_length": 512, "output_length": 5, "hash_ids": [46]}
`
	all, err := readAll(workload.NewMooncake(strings.NewReader(text), "trace.jsonl", 1).Prompts())
	require.NoError(t, err)
	assert.Equal(t, []workload.Request{
		{Arrival: 0, Input: 600, Output: 5, Prompt: &workload.Prompt{Block: 512, Numbers: []uint64{46, 47}}},
		{Arrival: time.Millisecond, Input: 512, Output: 5, Prompt: &workload.Prompt{Block: 512, Numbers: []uint64{46}}},
	}, all)
	for _, asked := range []bool{true, false} {
		trace, err := workload.Open((&disk{files: map[string]string{"trace.jsonl": text}}).Open, "trace.jsonl", workload.OpenOptions{Prompts: asked})
		require.NoError(t, err)
		all, err := readAll(trace)
		require.NoError(t, err)
		for _, r := range all {
			assert.Equal(t, asked, r.Prompt != nil)
		}
	}
	for name, c := range map[string]struct{ row, want string }{
		"none":         {`{"timestamp": 0, "input_length": 600, "output_length": 5}`, `trace.jsonl:1: hash_ids is missing, so that nothing says what the prompt begins with; expected {"timestamp": MILLISECONDS`},
		"empty":        {`{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": []}`, "hash_ids is missing"},
		"words":        {`{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": ["a", "b"]}`, "trace.jsonl:1: hash_ids is not a list of whole numbers of at least 0"},
		"negative":     {`{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, -1]}`, "hash_ids is not a list"},
		"another size": {`{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [1, 2, 3]}`, "trace.jsonl:1: hash_ids has 3 blocks of a prompt of 600 tokens; expected one for each 512"},
	} {
		_, err := readAll(workload.NewMooncake(strings.NewReader(c.row), "trace.jsonl", 1).Prompts())
		require.ErrorContains(t, err, c.want, name)
		_, err = readAll(workload.NewMooncake(strings.NewReader(c.row), "trace.jsonl", 1))
		assert.NoError(t, err, "%s: nobody asks", name)
	}
}

// Three copies of a conversation: each shares its beginnings with itself, and with no
// other.
func TestCopiesBeginWithSomethingElse(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": 5, "hash_ids": [7`, 1000*i+1, 512*(i+1))
		for j := range i {
			fmt.Fprintf(&text, ", %d", 100+j)
		}
		text.WriteString("]}\n")
	}
	for _, spread := range []time.Duration{time.Second, time.Minute} {
		stream, err := workload.Rate(workload.NewMooncake(strings.NewReader(text.String()), "trace.jsonl", 1).Prompts(), 3, spread, 1)
		require.NoError(t, err)
		all, err := readAll(stream)
		require.NoError(t, err)
		require.Len(t, all, 150)
		firsts, conversation, count := map[uint64]int{}, map[uint64]int{}, map[int]int{}
		for _, r := range all {
			assert.Equal(t, r.Input, 512*r.Prompt.Blocks(), "what a prompt begins with moves with its length")
			count[r.Prompt.Copy]++
			for i := range r.Prompt.Blocks() {
				number := r.Prompt.Number(i)
				if of, known := conversation[number]; known {
					assert.Equal(t, of, r.Prompt.Copy, "no two copies share a block")
				}
				conversation[number] = r.Prompt.Copy
			}
			firsts[r.Prompt.Number(0)]++
		}
		assert.Equal(t, map[int]int{0: 50, 1: 50, 2: 50}, count)
		assert.Len(t, firsts, 3, "every copy is one conversation")
		assert.Len(t, conversation, 3*50)
	}
}

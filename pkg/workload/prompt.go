package workload

import (
	"fmt"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Prompt says what a prompt begins with, for servers that keep what they computed of
// earlier ones (prefix caching): its tokens in blocks, each with a number that stands for
// the tokens of the block and of all blocks before it. Two prompts whose n-th blocks have
// the same number begin with the same n blocks.
type Prompt struct {
	// Block is the number of tokens of a block. The last one may have fewer.
	Block int
	// Numbers are those of the blocks, as the trace has them. They are shared between the
	// copies of a request and must not be changed.
	Numbers []uint64
	// Copy tells the copies of a request apart: those of other clients, whose prompts begin
	// with something else. It is 0 for the request itself.
	Copy int
}

// Blocks is the number of blocks.
func (p *Prompt) Blocks() int {
	if p == nil {
		return 0
	}
	return len(p.Numbers)
}

// Number stands for the i-th block in the copy that this is.
func (p *Prompt) Number(i int) uint64 {
	n := p.Numbers[i]
	if p.Copy == 0 {
		return n
	}
	// No two numbers of one copy become the same.
	draws := capacity.Draws(n)
	draws.Skip(uint64(p.Copy) - 1) // #nosec G115: a copy is above 0 here
	return draws.Next()
}

// copied is the prompt of a copy of the request; nil for one that says nothing.
func (p *Prompt) copied(number int) *Prompt {
	if p == nil || number == 0 {
		return p
	}
	return &Prompt{Block: p.Block, Numbers: p.Numbers, Copy: number}
}

// blockSizes are the sizes of blocks that published traces have: Mooncake's and that of
// the Qwen-Bailian traces, which is vLLM's own.
var blockSizes = [...]int{512, 16}

// NewPrompt is a prompt of so many tokens with these numbers of its blocks, whose size
// follows from how many there are. It is nil without numbers.
func NewPrompt(input int, numbers []uint64) (*Prompt, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	for _, size := range blockSizes {
		if len(numbers) == (input+size-1)/size {
			return &Prompt{Block: size, Numbers: numbers}, nil
		}
	}
	return nil, fmt.Errorf("%d blocks of a prompt of %d tokens; expected one for each %d tokens, or for each %d", len(numbers), input, blockSizes[0], blockSizes[1])
}

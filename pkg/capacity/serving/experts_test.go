package serving_test

import (
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// What their publishers say a token uses: 12.9 and 39 billion of Mixtral, 3.3 of Qwen3-30B,
// 22 and 35 of the larger ones, 3.6 and 5.1 of gpt-oss, 37 of DeepSeek-V3, and all of a
// dense model. The tables are not part of all of these numbers.
func TestActiveParameters(t *testing.T) {
	for name, billions := range map[string]float64{
		"mixtral-8x7b": 12.9, "mixtral-8x22b": 39, "qwen3-30b-a3b": 3.3, "qwen3-235b-a22b": 22, "qwen3-coder-480b-a35b": 35,
		"gpt-oss-20b": 3.6, "gpt-oss-120b": 5.1, "deepseek-v3": 37, "llama-3.1-8b": 8.03,
	} {
		m := serving.FiguresOf(name, serving.Arguments{})
		active := m.Active()
		if name == "gpt-oss-20b" || name == "gpt-oss-120b" {
			active -= m.Embedding
		}
		assert.InEpsilon(t, billions*1e9, active, 0.02, name)
	}
}

func TestTheShareOfExperts(t *testing.T) {
	assert.InDelta(t, 0, serving.ExpertFigures{}.Share(), 0)
	assert.InDelta(t, 1, serving.ExpertFigures{Count: 1, Used: 1}.Share(), 0)
	assert.InDelta(t, 0.25, serving.ExpertFigures{Count: 8, Used: 2}.Share(), 0)
	assert.InDelta(t, 10-4*0.75, serving.ModelFigures{Parameters: 10, Experts: serving.ExpertFigures{Count: 8, Used: 2, Parameters: 4}}.Active(), 1e-12)
	assert.InDelta(t, 10, serving.ModelFigures{Parameters: 10, Experts: serving.ExpertFigures{Count: 1, Used: 1, Parameters: 4}}.Active(), 1e-12)
}

// How many of five experts tokens use that use two each, by counting all that can happen,
// against the time of reading them.
func TestHowManyExpertsTokensUse(t *testing.T) {
	const experts, used = 5, 2
	var choices []uint
	for set := range uint(1 << experts) {
		if bits.OnesCount(set) == used {
			choices = append(choices, set)
		}
	}
	p := serving.Profile{
		Form: serving.Overlapped, Base: 1e-9, Experts: serving.ExpertTimes{Reading: experts, Share: float64(used) / experts},
	}
	sets := []uint{0}
	for tokens := 1; tokens <= 4; tokens++ {
		var next []uint
		total := 0
		for _, before := range sets {
			for _, c := range choices {
				next = append(next, before|c)
				total += bits.OnesCount(before | c)
			}
		}
		sets = next
		assert.InDelta(t, float64(total)/float64(len(sets)), float64(p.Iteration(tokens, 0, 0)), 1e-6, "%d tokens", tokens)
	}
}

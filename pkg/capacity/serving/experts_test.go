package serving_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
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

// mixed is small with 6e8 of its parameters in ten experts, of which a token uses two.
func mixed() serving.ModelFigures {
	m := small
	m.Hidden = 500
	m.Experts = serving.ExpertFigures{Count: 10, Used: 2, Parameters: 6e8}
	return m
}

func TestRooflineOfAMixtureByHand(t *testing.T) {
	p := serving.Roofline(mixed(), plainDevice, serving.Efficiency{Overhead: 2, Arithmetic: 0.5})
	require.True(t, p.Known())
	assert.InDelta(t, 0.6, float64(p.Base), 1e-9, "3e8 parameters that every token uses")
	assert.InDelta(t, 1.2, float64(p.Experts.Reading), 1e-9, "6e8 of experts")
	assert.InDelta(t, 0.0128, float64(p.PerPrefillToken), 1e-9, "2*(1e9-4.8e8-2e8) operations")
	assert.InDelta(t, 8e-6, float64(p.PerResidentToken), 1e-12, "as ever")
	for tokens, experts := range map[int]float64{1: 0.2, 2: 0.36, 3: 0.488, 200: 1} {
		want := math.Hypot(0.6+1.2*experts, 0.0128*float64(tokens))
		assert.InDelta(t, 2+0.004+want, float64(p.Iteration(1, 0, capacity.Tokens(tokens-1))), 1e-6, "%d tokens", tokens)
	}
	// The means read as many: two requests decode, hardly a prompt among them.
	at := p.Steady(2, capacity.TokenShape{Input: 1, Output: 1e6})
	assert.InDelta(t, 2+2*0.004+2*5e5*8e-6+math.Hypot(0.6+1.2*0.36, 2*0.0128), float64(at.ITL), 1e-3)
	assert.InDelta(t, 2+2*0.004+2*5e5*8e-6+math.Hypot(0.6+1.2*0.488, 3*0.0128), float64(at.TTFT), 1e-3)
}

func TestEnginesThatShareExpertsByHand(t *testing.T) {
	two := plainDevice
	two.Link, two.Engines = plainLink, 2
	good := serving.Efficiency{Overhead: 2, Arithmetic: 0.5}
	p := serving.Roofline(mixed(), two, good)
	require.True(t, p.Known())
	// 20 ways of (10+1) us, and (6+2) as for much
	assert.InDelta(t, 2.38, float64(p.Overhead), 1e-9)
	// half of the experts; 2*6e8*0.2 operations; 20 * 1/2*1000 bytes
	assert.Equal(t, 2, p.Experts.Engines)
	assert.InDelta(t, 0.6, float64(p.Experts.Reading), 1e-9)
	assert.InDelta(t, 0.0048, float64(p.Experts.PerToken), 1e-9)
	assert.InDelta(t, 0.001, float64(p.Experts.PerExchanged), 1e-9)
	// 72 of 100 tokens are its own, and it does the experts' work of 50.
	want := 2.38 + 0.004 + math.Hypot(0.6+0.6, 0.0128*72-0.0048*22) + 0.1
	assert.InDelta(t, want, float64(p.IterationAmong(1, 0, 71, 100)), 1e-6)
	assert.InDelta(t, float64(p.IterationAmong(1, 0, 71, 144)), float64(p.Iteration(1, 0, 71)), 1e-12, "the other is taken to have as many")

	assert.False(t, serving.Roofline(mixed(), serving.DeviceFigures{Bandwidth: 1e12, Arithmetic: 1e14, Engines: 2}, good).Known(), "no word of the link")
	two.Devices = 2
	assert.False(t, serving.Roofline(mixed(), two, good).Known(), "engines of two devices each")
	assert.True(t, serving.Roofline(small, serving.DeviceFigures{Bandwidth: 1e12, Arithmetic: 1e14, Engines: 2}, good).Known(), "a dense model shares nothing")
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

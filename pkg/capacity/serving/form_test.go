package serving

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// everything is a profile in which every parameter plays a part.
func everything(form Form) Profile {
	return Profile{
		Form: form, Base: 7, PerRequest: 0.02, PerResidentToken: 5e-5, PerPrefillToken: 0.025, Gamma: 15,
		Overhead: 0.7, PerExchanged: 0.003, LongExchange: 0.9, PerPrompt: 0.4,
		First: FirstToken{Fixed: 1.5, Iterations: 1.3, Cold: 12, ColdBelow: 0.7},
	}
}

// fourEngines share experts of which a token uses a tenth.
var fourEngines = ExpertTimes{Reading: 6, Share: 0.1, Engines: 4, PerToken: 0.004, PerExchanged: 0.0008 / 3}

// The formulas of decode and first, worked out by another program.
func TestTheOverlappedFormByHand(t *testing.T) {
	for _, c := range []struct {
		experts                           bool
		pair                              capacity.Milliseconds
		n, in, out, rate                  float64
		decode, prefill, first, residence float64
	}{
		{false, 0, 17.5, 900, 150, 2, 11.516069362, 30.190595347, 49.772596628, 1727.4104042},
		{false, 0, 3, 40, 500, 0.4, 7.826236009, 8.544063612, 27.854534059, 3913.1180044},
		{false, 2e-6, 17.5, 900, 150, 2, 11.581038112, 30.747470347, 50.413931003, 1737.1557167},
		{false, 2e-6, 3, 40, 500, 0.4, 7.826242609, 8.545163612, 27.855642639, 3913.1213044},
		{true, 0, 17.5, 900, 150, 2, 17.194670993, 33.308047386, 60.272230788, 2579.2006489},
		{true, 0, 3, 40, 500, 0.4, 12.144009000, 14.540771311, 39.464346647, 6072.0044999},
		{true, 2e-6, 17.5, 900, 150, 2, 17.259639743, 33.864922386, 60.913565163, 2588.9459614},
		{true, 2e-6, 3, 40, 500, 0.4, 12.144015600, 14.541871311, 39.465455227, 6072.0077999},
	} {
		p := everything(Overlapped)
		p.PerPair = c.pair
		if c.experts {
			p.Experts = fourEngines
		}
		shape := capacity.TokenShape{Input: capacity.Tokens(c.in), Output: capacity.Tokens(c.out)}
		assert.InDelta(t, c.decode, p.decode(c.n, shape), 1e-8, "%+v", c)
		assert.InDelta(t, c.prefill, p.prefill(c.n, shape), 1e-8, "%+v", c)
		assert.InDelta(t, c.first, p.first(c.n, shape, capacity.Rate(c.rate)), 1e-8, "%+v", c)
		assert.InDelta(t, c.residence, p.residence(c.n, shape), 1e-6, "%+v", c)
	}
}

// What a cold prefill adds needs both: how much it is, and the rate at which half is left.
func TestAColdPrefillNeedsBothOfItsFigures(t *testing.T) {
	p := everything(Overlapped)
	warm := p
	warm.First.Cold, warm.First.ColdBelow = 0, 0
	want := warm.first(2, conv, 0.7)
	assert.InDelta(t, want+6, p.first(2, conv, 0.7), 1e-9, "half of 12 ms")
	p.First.ColdBelow = 0
	assert.InDelta(t, want, p.first(2, conv, 0.7), 1e-9)
	p.First.Cold, p.First.ColdBelow = -1, 0.7
	assert.InDelta(t, want, p.first(2, conv, 0.7), 1e-9)
}

// With nobody in service an iteration is that of no tokens: 0.7 + 7 + nothing of prompts.
func TestAnIterationOfNobody(t *testing.T) {
	p := everything(Overlapped)
	assert.InDelta(t, 7.7, p.decode(0, conv), 1e-9)
	p.Experts = fourEngines
	assert.InDelta(t, 7.7, p.decode(0, conv), 1e-9, "no expert is read")
	p.Experts.Reading = 0
	plain := everything(Overlapped)
	assert.InDelta(t, float64(plain.Iteration(3, 100, 0)), float64(p.Iteration(3, 100, 0)), 1e-9, "nor is anything sent to experts that are not there")
}

// The published form and the linear one, worked out by another program.
func TestTheOtherFormsByHand(t *testing.T) {
	shape := capacity.TokenShape{Input: 900, Output: 150}
	four := everything(FourParameters)
	four.PerPrefillToken = 0.0004
	for name, c := range map[string]struct {
		p                                 Profile
		decode, prefill, first, residence float64
	}{
		"linear": {everything(Linear), 10.828125, 22.5, 33.328125, 1624.21875},
		"four":   {four, 7.35, 21.3, 21.3, 1116.45},
	} {
		assert.InDelta(t, c.decode, c.p.decode(17.5, shape), 1e-8, name)
		assert.InDelta(t, c.prefill, c.p.prefill(17.5, shape), 1e-8, name)
		assert.InDelta(t, c.first, c.p.first(17.5, shape, 2), 1e-8, name)
		assert.InDelta(t, c.residence, c.p.residence(17.5, shape), 1e-5, name)
	}
	// The published form counts the first token as part of the prefill, unless there is none.
	for shape, want := range map[capacity.TokenShape]float64{
		{Output: 1}: 15 + 7.35, {Output: 2}: 15 + 7.35, {Input: 5, Output: 1}: 15 + 0.0004*5*17.5,
	} {
		assert.InDelta(t, want, four.residence(17.5, shape), 1e-9, "%+v", shape)
	}
}

// One iteration with 17 requests that hold 9,000 tokens, and 500 of a prompt beside them.
func TestOneIterationByHand(t *testing.T) {
	linear, overlapped := everything(Linear), everything(Overlapped)
	assert.InDelta(t, 20.29, float64(linear.Iteration(17, 9000, 500)), 1e-9, "7 + 17*0.02 + 9000*5e-5 + 500*0.025")
	assert.InDelta(t, 18.639830736, float64(overlapped.Iteration(17, 9000, 500)), 1e-8)
	assert.InDelta(t, 7.783401774, float64(overlapped.Iteration(3, 100, 0)), 1e-8)
	overlapped.Experts = fourEngines
	assert.InDelta(t, 22.686420013, float64(overlapped.Iteration(17, 9000, 500)), 1e-8)
	assert.InDelta(t, 12.091071553, float64(overlapped.Iteration(3, 100, 0)), 1e-8)
	assert.InDelta(t, 22.444859815, float64(overlapped.IterationAmong(17, 9000, 500, 1800, 450)), 1e-8)
	assert.InDelta(t, 22.444859815+0.0008/3*400, float64(overlapped.IterationAmong(17, 9000, 500, 1800, 50)), 1e-8, "one has few of its own, so that it waits for 400 more")
	overlapped.PerPair = 2e-6
	assert.InDelta(t, 0.003, float64(overlapped.Attention(1500)), 1e-12)
}

// What 12 requests hold costs 1e-5 ms more per token beside prompts.
func TestReadingTheCacheBesidePromptsByHand(t *testing.T) {
	plain := everything(Overlapped)
	beside := plain
	beside.PerResidentBeside = plain.PerResidentToken + 1e-5
	more := func(n int, resident, prefill capacity.Tokens) float64 {
		return float64(beside.Iteration(n, resident, prefill) - plain.Iteration(n, resident, prefill))
	}
	assert.InDelta(t, 0, more(12, 9000, 0), 1e-12, "decoding alone")
	assert.InDelta(t, 0.09, more(12, 9000, 1), 1e-9, "9,000 tokens")
	assert.InDelta(t, 0, more(0, 0, 500), 1e-12, "a prompt alone")

	// 12 requests of 400 and 100 tokens hold 5,400 in the mean. Of the iterations, the share
	// 1-exp(-12/100) has prompts; a first token's own has always.
	shape := capacity.TokenShape{Input: 400, Output: 100}
	assert.InDelta(t, -math.Expm1(-0.12)*0.054, beside.decode(12, shape)-plain.decode(12, shape), 1e-9)
	assert.InDelta(t, 0.054, beside.prefill(12, shape)-plain.prefill(12, shape), 1e-9)
	alone, linear := everything(Linear), everything(Linear)
	linear.PerResidentBeside = 1
	assert.InDelta(t, alone.decode(12, shape), linear.decode(12, shape), 0, "another form")
	assert.InDelta(t, float64(alone.Iteration(12, 9000, 1)), float64(linear.Iteration(12, 9000, 1)), 0, "another form")
}

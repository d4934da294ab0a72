package serving_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// small is a model whose times can be computed by hand: 1e9 parameters of which 1e8
// each are table and head, 10 layers of width 1000, 2 KV heads of 100 numbers.
var small = serving.ModelFigures{
	Parameters: 1e9, Embedding: 1e8, Head: 1e8,
	Layers: 10, Width: 1000, KVHeads: 2, HeadSize: 100, WeightBytes: 2, CacheBytes: 2,
}

// plainDevice reads 1e12 bytes and does 1e14 operations per second.
var plainDevice = serving.DeviceFigures{Bandwidth: 1e12, Arithmetic: 1e14}

func TestRooflineByHand(t *testing.T) {
	p := serving.Roofline(small, plainDevice, serving.Efficiency{Overhead: 2, Arithmetic: 0.5})
	assert.True(t, p.Known())
	assert.Equal(t, serving.Overlapped, p.Form)
	near := func(want float64, got capacity.Milliseconds, what string) {
		assert.InDelta(t, want, float64(got), want*1e-9, what)
	}
	near(2, p.Overhead, "as given")
	near(1.8, p.Base, "9e8 parameters of 2 bytes at 1e12 bytes/s")
	near(8e-6, p.PerResidentToken, "2*10*2*100 numbers of 2 bytes")
	near(0.032, p.PerPrefillToken, "2*8e8 operations at 5e13/s")
	near(0.004, p.PerRequest, "2*1e8 operations")
	near(8e-7, p.PerPair, "4*10*1000 operations")
	assert.Zero(t, p.KVTokens)
	assert.Zero(t, p.BatchLimit)

	// 2 + 3*0.004 + 1000*8e-6 + hypot(1.8, 0.032*(3+72)=2.4)=3
	near(5.02, p.Iteration(3, 1000, 72), "an iteration")
	// Two chunks, of 60 tokens and of 40 after those: 60*30.5 + 40*(60+20.5) pairs.
	near(0.00404, p.Attention(60*30.5+40*80.5), "the pairs of a prompt of 100: 100*101/2")
}

func TestRooflineScalesWithTheDevice(t *testing.T) {
	e := serving.Efficiency{Overhead: 1, Arithmetic: 0.8}
	one := serving.Roofline(small, plainDevice, e)
	double := serving.Roofline(small, serving.DeviceFigures{Bandwidth: 2e12, Arithmetic: 2e14}, e)
	assert.InDelta(t, float64(one.Iteration(8, 1e5, 500)-1), 2*float64(double.Iteration(8, 1e5, 500)-1), 1e-9)
	// With an empty cache and one sequence, decoding is reading the weights.
	assert.InDelta(t, 1+1.8, float64(one.Iteration(1, 0, 0)), 0.01)
}

func TestRooflineOfWhatCannotBe(t *testing.T) {
	good := serving.Efficiency{Overhead: 1, Arithmetic: 0.8}
	for name, p := range map[string]serving.Profile{
		"no parameters":       serving.Roofline(serving.ModelFigures{Layers: 1, Width: 1}, plainDevice, good),
		"no bandwidth":        serving.Roofline(small, serving.DeviceFigures{Arithmetic: 1}, good),
		"no arithmetic":       serving.Roofline(small, serving.DeviceFigures{Bandwidth: 1}, good),
		"no share":            serving.Roofline(small, plainDevice, serving.Efficiency{Overhead: 1}),
		"a negative overhead": serving.Roofline(small, plainDevice, serving.Efficiency{Overhead: -1, Arithmetic: 1}),
	} {
		assert.False(t, p.Known(), name)
	}
}

func TestTheOverheadIsPartOfEveryIteration(t *testing.T) {
	shape := capacity.TokenShape{Input: 500, Output: 100}
	without := serving.Roofline(small, plainDevice, serving.Efficiency{Arithmetic: 0.5})
	with := serving.Roofline(small, plainDevice, serving.Efficiency{Overhead: 2, Arithmetic: 0.5})
	assert.InDelta(t, 2, float64(with.Steady(20, shape).ITL-without.Steady(20, shape).ITL), 1e-9)
	// The prefill of a prompt is an iteration too.
	assert.InDelta(t, 2, float64(with.Steady(20, shape).TTFT-without.Steady(20, shape).TTFT), 1e-9)
	// Longer prompts have more pairs.
	costly := with
	costly.PerPair *= 100
	assert.Greater(t, float64(costly.Steady(20, shape).ITL), float64(with.Steady(20, shape).ITL))
}

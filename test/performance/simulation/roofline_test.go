package simulation

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
var plainDevice = deviceFigures{Bandwidth: 1e12, Arithmetic: 1e14}

func TestRooflineByHand(t *testing.T) {
	p := roofline(small, plainDevice, efficiency{Overhead: 2, Arithmetic: 0.5})
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
	e := efficiency{Overhead: 1, Arithmetic: 0.8}
	one := roofline(small, plainDevice, e)
	double := roofline(small, deviceFigures{Bandwidth: 2e12, Arithmetic: 2e14}, e)
	assert.InDelta(t, float64(one.Iteration(8, 1e5, 500)-1), 2*float64(double.Iteration(8, 1e5, 500)-1), 1e-9)
	// With an empty cache and one sequence, decoding is reading the weights.
	assert.InDelta(t, 1+1.8, float64(one.Iteration(1, 0, 0)), 0.01)
}

func TestRooflineOfWhatCannotBe(t *testing.T) {
	good := efficiency{Overhead: 1, Arithmetic: 0.8}
	for name, p := range map[string]serving.Profile{
		"no parameters":       roofline(serving.ModelFigures{Layers: 1, Width: 1}, plainDevice, good),
		"no bandwidth":        roofline(small, deviceFigures{Arithmetic: 1}, good),
		"no arithmetic":       roofline(small, deviceFigures{Bandwidth: 1}, good),
		"no share":            roofline(small, plainDevice, efficiency{Overhead: 1}),
		"a negative overhead": roofline(small, plainDevice, efficiency{Overhead: -1, Arithmetic: 1}),
	} {
		assert.False(t, p.Known(), name)
	}
}

func TestTheOverheadIsPartOfEveryIteration(t *testing.T) {
	shape := capacity.TokenShape{Input: 500, Output: 100}
	without := roofline(small, plainDevice, efficiency{Arithmetic: 0.5})
	with := roofline(small, plainDevice, efficiency{Overhead: 2, Arithmetic: 0.5})
	assert.InDelta(t, 2, float64(with.Steady(20, shape).ITL-without.Steady(20, shape).ITL), 1e-9)
	// The prefill of a prompt is an iteration too.
	assert.InDelta(t, 2, float64(with.Steady(20, shape).TTFT-without.Steady(20, shape).TTFT), 1e-9)
	// Longer prompts have more pairs.
	costly := with
	costly.PerPair *= 100
	assert.Greater(t, float64(costly.Steady(20, shape).ITL), float64(with.Steady(20, shape).ITL))
}

// plainLink sends 1e10 bytes per second and takes 10 us and 1 us per step; where much
// is sent, 6 us and 2 us more.
var plainLink = serving.Link{
	Name: "plain", Bandwidth: 2e10, Share: 0.5, Start: 0.010, Step: 0.001, LongStart: 0.006, LongStep: 0.002,
}

func TestSeveralDevicesNeedALink(t *testing.T) {
	model := small
	model.Hidden = 500
	two := plainDevice
	two.Devices = 2
	good := efficiency{Overhead: 1, Arithmetic: 0.8}
	assert.False(t, roofline(model, two, good).Known(), "two devices and no word of the link")
	two.Link = plainLink
	assert.True(t, roofline(model, two, good).Known())
}

// mixed is small with 6e8 of its parameters in ten experts, of which a token uses two.
func mixed() serving.ModelFigures {
	m := small
	m.Hidden = 500
	m.Experts = serving.ExpertFigures{Count: 10, Used: 2, Parameters: 6e8}
	return m
}

func TestRooflineOfAMixtureByHand(t *testing.T) {
	p := roofline(mixed(), plainDevice, efficiency{Overhead: 2, Arithmetic: 0.5})
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
	one := plainDevice
	one.Link = plainLink
	good := efficiency{Overhead: 2, Arithmetic: 0.5}
	shared := func(d deviceFigures, engines int) serving.Profile {
		return sharing(roofline(mixed(), d, good), mixed(), d, good, engines)
	}
	p := shared(one, 2)
	require.True(t, p.Known())
	// 20 ways of (10+1) us, and (6+2) as for much
	assert.InDelta(t, 2.38, float64(p.Overhead), 1e-9)
	// half of the experts; 2*6e8*0.2 operations; 20 * 1000 bytes
	assert.Equal(t, 2, p.Experts.Engines)
	assert.InDelta(t, 0.6, float64(p.Experts.Reading), 1e-9)
	assert.InDelta(t, 0.0048, float64(p.Experts.PerToken), 1e-9)
	assert.InDelta(t, 0.002, float64(p.Experts.PerExchanged), 1e-9)
	// 72 of 100 tokens are its own, and it does the experts' work of 50. The other one has 28 of
	// its own and waits for 72.
	want := 2.38 + 0.004 + math.Hypot(0.6+0.6, 0.0128*72-0.0048*22) + 0.144
	assert.InDelta(t, want, float64(p.IterationAmong(1, 0, 71, 100, 28)), 1e-6)
	assert.InDelta(t, float64(p.IterationAmong(1, 0, 71, 144, 72)), float64(p.Iteration(1, 0, 71)), 1e-12, "the other is taken to have as many")

	// Four have a quarter of the experts each; 20 ways of (10+3) us and (6+6); 1000 bytes.
	p = shared(one, 4)
	assert.InDelta(t, 2.5, float64(p.Overhead), 1e-9)
	assert.InDelta(t, 0.3, float64(p.Experts.Reading), 1e-9)
	assert.InDelta(t, 0.0048, float64(p.Experts.PerToken), 1e-9)
	assert.InDelta(t, 0.002, float64(p.Experts.PerExchanged), 1e-9)
	// Over three links at a time.
	peers := one
	peers.Link.PerPeer = true
	assert.InDelta(t, 0.002/3, float64(shared(peers, 4).Experts.PerExchanged), 1e-9)

	assert.False(t, shared(plainDevice, 2).Known(), "no word of the link")
	two := one
	two.Devices = 2
	assert.False(t, shared(two, 2).Known(), "engines of two devices each")
	stateless := mixed()
	stateless.Hidden = 0
	assert.False(t, sharing(roofline(stateless, one, good), stateless, one, good, 2).Known(), "no state of a token is known")
}

// An iteration of two devices, by the figures of TestExchangeByHand and of
// TestRooflineByHand with half the times for two devices.
func TestRooflineOfTwoDevicesByHand(t *testing.T) {
	model := small
	model.Hidden = 500
	device := deviceFigures{Bandwidth: 2e12, Arithmetic: 2e14, Devices: 2, Link: plainLink}
	p := roofline(model, device, efficiency{Overhead: 2, Arithmetic: 0.5})
	// 2 + 0.263 + 3*(0.002+0.020) + 1000*4e-6 + hypot(0.9, 0.016*75=1.2)=1.5
	// and 75*0.0021 = 0.1575, twice because that is less than 0.21
	assert.InDelta(t, 2.263+0.066+0.004+1.5+2*0.1575, float64(p.Iteration(3, 1000, 72)), 1e-9)
	// hypot(0.9, 0.016*750=12) = 12.0337; 750*0.0021 = 1.575, and 0.21 at most
	assert.InDelta(t, 2.263+0.066+0.004+12.033703+1.575+0.21, float64(p.Iteration(3, 1000, 747)), 1e-6)

	// The means have it too: a request and another, decoded together, with next to no
	// prompt.
	alone, shape := p, capacity.TokenShape{Input: 1, Output: 1000}
	alone.PerExchanged, alone.LongExchange = 0, 0
	assert.InDelta(t, 2*2*0.0021, float64(p.Steady(2, shape).ITL-alone.Steady(2, shape).ITL), 1e-4)
	// A prompt of 1,000 tokens is more than a little.
	shape = capacity.TokenShape{Input: 1000, Output: 1000}
	assert.InDelta(t, 1001*0.0021+0.21, float64(p.Steady(1, shape).TTFT-alone.Steady(1, shape).TTFT), 1e-9)
}

// What was fitted on published measurements of vLLM with Qwen3-32B at 16 bits on two,
// four and eight H100, against the figures with the two constants of Llama-3.1-8B on
// one: the base of an iteration, and what a prefilled token adds.
func TestTheFiguresMeetMeasuredServersWithNVLink(t *testing.T) {
	model := serving.FiguresOf("Qwen/Qwen3-32B", serving.Arguments{})
	link, known := serving.LinkOf(capacity.Device{Accelerator: "H100"})
	require.True(t, known)
	for devices, measured := range map[int]struct{ base, prefill float64 }{
		2: {14.36, 0.0557}, 4: {9.081, 0.03282}, 8: {6.947, 0.0203},
	} {
		n := float64(devices)
		p := roofline(model, deviceFigures{
			Bandwidth: n * 3350e9, Arithmetic: n * 789.2e12, Devices: devices, Link: link,
		}, efficiency{Overhead: 3.3, Arithmetic: 0.79})
		assert.InEpsilon(t, measured.base, float64(p.Iteration(1, 0, 0)), 0.15, "%d devices", devices)
		perToken := (p.Iteration(1, 0, 8192) - p.Iteration(1, 0, 4096)) / 4096
		assert.InEpsilon(t, measured.prefill, float64(perToken), 0.08, "%d devices", devices)
		silent := p
		silent.PerExchanged = 0
		without := (silent.Iteration(1, 0, 8192) - silent.Iteration(1, 0, 4096)) / 4096
		assert.Greater(t, math.Abs(measured.prefill-float64(without)), math.Abs(measured.prefill-float64(perToken)), "%d devices that send nothing", devices)
	}
}

// What attention takes in a layer for 128 requests with 1,024 tokens each, beside 256 tokens
// of a prompt, over what it takes for them alone (LLMServingSim at 5daddb2, attention.csv of
// profiler/perf, vLLM 0.19), the prompt's own time taken off.
func TestDecodingBesidePromptsIsAsSlowAsMeasured(t *testing.T) {
	for name, c := range map[string]struct {
		model, device string
		devices       int
		measured      float64
	}{
		"four heads share a key, RTX 4090":           {"Llama-3.1-8B", "NVIDIA GeForce RTX 4090", 1, (1495.4 - 15) / 606.2},
		"four heads share a key, RTX PRO 6000":       {"Llama-3.1-8B", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1, (699 - 11.1) / 404.9},
		"eight heads share a key, half on each":      {"Qwen/Qwen3-32B", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 2, (674.9 - 11.1) / 228.9},
		"eight heads share a key, all on one device": {"Qwen/Qwen3-30B-A3B", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1, (672.2 - 11) / 230.3},
	} {
		model, err := modelNamed(c.model, "bfloat16", "auto")
		require.NoError(t, err)
		device, err := deviceNamed(c.device, c.devices, false)
		require.NoError(t, err)
		p := roofline(model, device, usual(efficiency{Arithmetic: 0.77}))
		assert.InEpsilon(t, c.measured, float64(p.PerResidentBeside/p.PerResidentToken), 0.15, name)
	}
	// FlashAttention 3 packs the heads.
	model, err := modelNamed("Llama-3.1-8B", "bfloat16", "auto")
	require.NoError(t, err)
	device, err := deviceNamed("NVIDIA H100 80GB HBM3", 1, false)
	require.NoError(t, err)
	assert.Zero(t, roofline(model, device, usual(efficiency{Arithmetic: 0.77})).PerResidentBeside)
}

package serving_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// plainLink sends 1e10 bytes per second and takes 10 us and 1 us per step; where much
// is sent, 6 us and 2 us more.
var plainLink = serving.Link{
	Name: "plain", Bandwidth: 2e10, Share: 0.5, Start: 0.010, Step: 0.001, LongStart: 0.006, LongStep: 0.002,
}

// small has 10 layers, so 21 sums, and a state of 500 numbers, so 1,000 bytes; 1e8/500
// words are 4e5 bytes of logits.
func TestExchangeByHand(t *testing.T) {
	model := small
	model.Hidden = 500
	perPeer := plainLink
	perPeer.PerPeer = true
	for name, tc := range map[string]struct {
		link                          serving.Link
		devices                       int
		iteration, token, long, logit float64
	}{
		"one device sends nothing": {plainLink, 1, 0, 0, 0, 0},
		"nobody counted them":      {plainLink, 0, 0, 0, 0, 0},
		// 21*(10+2*1) + (10+1) us; 21 * 2*1/2*1000 bytes; 21*(6+2*2) us; 1/2*4e5 bytes
		"two": {plainLink, 2, 0.263, 0.0021, 0.210, 0.020},
		// 21*(10+6*1) + (10+3) us; 21 * 2*3/4*1000 bytes; 21*(6+6*2) us; 3/4*4e5 bytes
		"four": {plainLink, 4, 0.349, 0.00315, 0.378, 0.030},
		// the same latencies, and three links at a time
		"four with links of their own": {perPeer, 4, 0.349, 0.00105, 0.378, 0.010},
	} {
		t.Run(name, func(t *testing.T) {
			e, known := model.Exchange(tc.link, tc.devices)
			require.True(t, known)
			assert.InDelta(t, tc.iteration, float64(e.PerIteration), 1e-9)
			assert.InDelta(t, tc.token, float64(e.PerToken), 1e-9)
			assert.InDelta(t, tc.long, float64(e.Long), 1e-9)
			assert.InDelta(t, tc.logit, float64(e.PerSampled), 1e-9)
		})
	}
}

func TestWhatIsNotKnownIsNotExchangedForNothing(t *testing.T) {
	model := small
	model.Hidden = 500
	for name, unknown := range map[string]func() bool{
		"the link":      func() bool { _, known := model.Exchange(serving.Link{}, 2); return known },
		"no state":      func() bool { _, known := small.Exchange(plainLink, 2); return known },
		"no model":      func() bool { _, known := serving.ModelFigures{}.Exchange(plainLink, 2); return known },
		"not how it is": func() bool { _, ok := serving.LinkOf(capacity.Device{Accelerator: "H100", Form: "NVL"}); return ok },
		"no such card":  func() bool { _, ok := serving.LinkOf(capacity.Device{Accelerator: "H200", Form: "PCIE"}); return ok },
		"no such type":  func() bool { _, ok := serving.LinkOf(capacity.Device{Accelerator: "TPUV5E"}); return ok },
	} {
		assert.False(t, unknown(), name)
	}
	two := plainDevice
	two.Devices = 2
	good := serving.Efficiency{Overhead: 1, Arithmetic: 0.8}
	assert.False(t, serving.Roofline(model, two, good).Known(), "two devices and no word of the link")
	two.Link = plainLink
	assert.True(t, serving.Roofline(model, two, good).Known())
}

func TestWhichProductsHaveNVLink(t *testing.T) {
	for device, want := range map[capacity.Device]struct {
		name      string
		bandwidth float64
	}{
		{Accelerator: "H100"}:                              {"NVLink 4", 450e9},
		{Accelerator: "H100", MemoryGiB: 80, Form: "HBM3"}: {"NVLink 4", 450e9},
		{Accelerator: "H100", Form: "PCIE"}:                {"PCIe 5 x16", 63e9},
		{Accelerator: "H200"}:                              {"NVLink 4", 450e9},
		{Accelerator: "A100", Form: "SXM4"}:                {"NVLink 3", 300e9},
		{Accelerator: "A100", MemoryGiB: 80, Form: "PCIE"}: {"PCIe 4 x16", 31.5e9},
		{Accelerator: "V100"}:                              {"NVLink 2", 150e9},
		{Accelerator: "B200"}:                              {"NVLink 5", 900e9},
		{Accelerator: "L40S"}:                              {"PCIe 4 x16", 31.5e9},
		{Accelerator: "L4"}:                                {"PCIe 4 x16", 31.5e9},
		{Accelerator: "A10G"}:                              {"PCIe 4 x16", 31.5e9},
		{Accelerator: "T4"}:                                {"PCIe 3 x16", 15.75e9},
		{Accelerator: "RTX4090"}:                           {"PCIe 4 x16", 31.5e9},
		{Accelerator: "RTXPRO6000"}:                        {"PCIe 5 x16", 63e9},
		{Accelerator: "MI300X"}:                            {"Infinity Fabric", 64e9},
		{Accelerator: "Gaudi2"}:                            {"3 x 100 GbE", 37.5e9},
	} {
		link, known := serving.LinkOf(device)
		require.True(t, known, device)
		assert.Equal(t, want.name, link.Name, device)
		assert.InDelta(t, want.bandwidth, link.Bandwidth, 1, device)
	}
}

// An iteration of two devices, by the figures of TestExchangeByHand and of
// TestRooflineByHand with half the times for two devices.
func TestRooflineOfTwoDevicesByHand(t *testing.T) {
	model := small
	model.Hidden = 500
	device := serving.DeviceFigures{Bandwidth: 2e12, Arithmetic: 2e14, Devices: 2, Link: plainLink}
	p := serving.Roofline(model, device, serving.Efficiency{Overhead: 2, Arithmetic: 0.5})
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
		p := serving.Roofline(model, serving.DeviceFigures{
			Bandwidth: n * 3350e9, Arithmetic: n * 789.2e12, Devices: devices, Link: link,
		}, serving.Efficiency{Overhead: 3.3, Arithmetic: 0.79})
		assert.InEpsilon(t, measured.base, float64(p.Iteration(1, 0, 0)), 0.15, "%d devices", devices)
		perToken := (p.Iteration(1, 0, 8192) - p.Iteration(1, 0, 4096)) / 4096
		assert.InEpsilon(t, measured.prefill, float64(perToken), 0.08, "%d devices", devices)
		silent := p
		silent.PerExchanged = 0
		without := (silent.Iteration(1, 0, 8192) - silent.Iteration(1, 0, 4096)) / 4096
		assert.Greater(t, math.Abs(measured.prefill-float64(without)), math.Abs(measured.prefill-float64(perToken)), "%d devices that send nothing", devices)
	}
}

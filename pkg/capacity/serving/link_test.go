package serving_test

import (
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

// What four cards took over PCIe 5 to add up so many bytes, in microseconds
// (github.com/voipmonitor/rtx6kpro), and what the link says that they take. One token of this
// model has a state of 128 KiB, which a layer and the table add up three times.
func TestAllReduceOverPCIeMeetsMeasurements(t *testing.T) {
	link, known := serving.LinkOf(capacity.Device{Accelerator: "RTXPRO6000"})
	require.True(t, known)
	e, known := serving.ModelFigures{Layers: 1, Hidden: 65536}.Exchange(link, 4)
	require.True(t, known)
	gather := link.Start + 3*link.Step
	for tokens, c := range map[capacity.Milliseconds]struct{ measured, said float64 }{1: {25, 27}, 2: {41, 41}, 4: {72, 69}, 8: {85, 99}} {
		took := float64(e.PerIteration-gather+e.PerToken*tokens+min(e.PerToken*tokens, e.Long)) / 3 * 1000
		assert.InDelta(t, c.said, took, 0.5, "%v x 128 KiB", tokens)
		assert.InEpsilon(t, c.measured, took, 0.17, "%v x 128 KiB", tokens)
	}
}

func TestALinkIsKnownByBandwidthAndShare(t *testing.T) {
	for want, links := range map[bool][]serving.Link{true: {{Bandwidth: 1, Share: 0.5}}, false: {{}, {Bandwidth: 1}, {Share: 0.5}}} {
		for _, l := range links {
			assert.Equal(t, want, l.Known(), "%+v", l)
		}
	}
}

// A model of one layer sends what one layer sends, and a state is at least one number; a
// model of none is not known.
func TestExchangeOfOneLayer(t *testing.T) {
	m, _, _ := rooflineFigures()
	m.Hidden = 1
	for layers, want := range map[int]bool{0: false, 1: true} {
		m.Layers = layers
		_, ok := m.Exchange(plainLink, 2)
		assert.Equal(t, want, ok, "%d layers", layers)
	}
}

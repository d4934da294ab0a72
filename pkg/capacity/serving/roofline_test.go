package serving_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// The fit of published silicon measurements of Llama-3.1-8B on one H100 is 6.46 ms an
// iteration and 0.0220 ms for each prompt token. They time the device alone; a server takes
// up to 3.3 ms more.
func TestReckonedMeetsMeasuredServers(t *testing.T) {
	model := serving.FiguresOf("meta-llama/Llama-3.1-8B-Instruct", serving.Arguments{})
	p, ok := serving.Reckoned(model, capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1})
	require.True(t, ok)
	assert.Greater(t, float64(p.Iteration(1, 0, 0)), 6.46)
	assert.Less(t, float64(p.Iteration(1, 0, 0)), 6.46+3.3)
	assert.InEpsilon(t, 0.0220, float64(p.Iteration(1, 0, 8192)-p.Iteration(1, 0, 4096))/4096, 0.2)
	two, ok := serving.Reckoned(model, capacity.Shape{Accelerator: "H100", Devices: 2, Pods: 1})
	require.True(t, ok)
	assert.Less(t, two.Iteration(1, 0, 8192), p.Iteration(1, 0, 8192), "two devices are faster")
	slow, ok := serving.Reckoned(model, capacity.Shape{Accelerator: "L4", Devices: 1, Pods: 1})
	require.True(t, ok)
	assert.Greater(t, slow.Iteration(1, 0, 0), 5*p.Iteration(1, 0, 0), "a tenth of the bandwidth")
}

// One layer is the least that a model has.
func TestReckonedOfOneLayer(t *testing.T) {
	m, _, _ := rooflineFigures()
	for layers, want := range map[int]bool{0: false, 1: true} {
		m.Layers = layers
		_, ok := serving.Reckoned(m, capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1})
		assert.Equal(t, want, ok, "%d", layers)
	}
}

func TestReckonedKnowsWhatItDoesNotKnow(t *testing.T) {
	llama := serving.FiguresOf("meta-llama/Llama-3.1-8B", serving.Arguments{})
	one := capacity.Shape{Accelerator: "H100", Devices: 1, Pods: 1}
	for name, c := range map[string]struct {
		model serving.ModelFigures
		shape capacity.Shape
	}{
		"a model without figures":      {serving.FiguresOf("acme/own-8b", serving.Arguments{}), one},
		"layers with a window":         {serving.FiguresOf("google/gemma-3-27b-it", serving.Arguments{}), one},
		"a device without figures":     {llama, capacity.Shape{Accelerator: "X1", Devices: 1, Pods: 1}},
		"several pods":                 {llama, capacity.Shape{Accelerator: "H100", Devices: 8, Pods: 2}},
		"no device":                    {llama, capacity.Shape{Pods: 1}},
		"several with an unknown link": {llama, capacity.Shape{Accelerator: "H100", Form: "NVL", Devices: 2, Pods: 1}},
	} {
		p, ok := serving.Reckoned(c.model, c.shape)
		assert.False(t, ok, name)
		assert.False(t, p.Known(), name)
	}
}

// A model of 9e9 parameters in two bytes, on devices that read 3e12 bytes and reach half
// of 1e15 operations per second.
func rooflineFigures() (serving.ModelFigures, serving.DeviceFigures, serving.Efficiency) {
	return serving.ModelFigures{
			Parameters: 9e9, Embedding: 4e8, Head: 5e8, Layers: 30, Hidden: 4000, Width: 5000, KVHeads: 8, HeadSize: 100, WeightBytes: 2, CacheBytes: 2,
		},
		serving.DeviceFigures{Bandwidth: 3e12, Arithmetic: 1e15, Devices: 2, Link: plainLink},
		serving.Efficiency{Overhead: 3, Arithmetic: 0.5}
}

func TestRooflineByHand(t *testing.T) {
	m, d, e := rooflineFigures()
	sent, ok := m.Exchange(plainLink, 2)
	require.True(t, ok)
	p := serving.Roofline(m, d, e)
	require.True(t, p.Known())
	is := func(want float64, got capacity.Milliseconds, what string) {
		t.Helper()
		assert.InEpsilon(t, want, float64(got), 1e-9, what)
	}
	is(3+float64(sent.PerIteration), p.Overhead, "overhead")
	is(1000*8.6e9*2/3e12, p.Base, "all weights but the table")
	is(1000*2*30*8*100*2/3e12, p.PerResidentToken, "keys and values of two bytes")
	is(1000*2*8.1e9/5e14, p.PerPrefillToken, "all products but table and head")
	is(1000*2*5e8/5e14+float64(sent.PerSampled), p.PerRequest, "the head")
	is(1000*4*30*5000/5e14, p.PerPair, "attention")
	assert.Equal(t, sent.PerToken, p.PerExchanged)
	assert.Equal(t, sent.Long, p.LongExchange)
	assert.Zero(t, p.PerResidentBeside, "the same as alone")

	// Nine tenths of the bandwidth, 0.02 ms for each of 30 layers and 0.0001 for each token in it.
	better := e
	better.Bandwidth, better.PerLayer, better.PerSequence = 0.9, 0.02, 0.0001
	slower := serving.Roofline(m, d, better)
	is(float64(p.Overhead)+30*0.02, slower.Overhead, "each layer")
	is(float64(p.PerRequest)+30*0.0001, slower.PerRequest, "each layer of each token")
	is(float64(p.Base)/0.9, slower.Base, "the bandwidth")
	is(float64(p.PerResidentToken)/0.9, slower.PerResidentToken, "the bandwidth")
	assert.Equal(t, p.PerPrefillToken, slower.PerPrefillToken, "arithmetic")

	// Blocks of 64 rows: 64 pairs for each resident token, beside reading it.
	d.Rows = 64
	is(math.Hypot(1000*2*30*8*100*2/3e12, 64*1000*4*30*5000/5e14), serving.Roofline(m, d, e).PerResidentBeside, "a block of rows")
	d.Rows = 1
	assert.Zero(t, serving.Roofline(m, d, e).PerResidentBeside, "one row is no block")

	// Of sixteen experts a token uses four.
	m.Experts = serving.ExpertFigures{Count: 16, Used: 4, Parameters: 6e9}
	p = serving.Roofline(m, d, e)
	require.True(t, p.Known())
	is(1000*2.6e9*2/3e12, p.Base, "all weights but the table and the experts")
	is(1000*2*3.6e9/5e14, p.PerPrefillToken, "a quarter of the experts")
	is(1000*6e9*2/3e12, p.Experts.Reading, "all experts")
	assert.InDelta(t, 0.25, p.Experts.Share, 1e-12)
}

func TestRooflineOfFiguresThatSayNothing(t *testing.T) {
	for name, spoil := range map[string]func(*serving.ModelFigures, *serving.DeviceFigures, *serving.Efficiency){
		"no bandwidth":                      func(_ *serving.ModelFigures, d *serving.DeviceFigures, _ *serving.Efficiency) { d.Bandwidth = 0 },
		"no arithmetic":                     func(_ *serving.ModelFigures, d *serving.DeviceFigures, _ *serving.Efficiency) { d.Arithmetic = 0 },
		"none of the arithmetic is reached": func(_ *serving.ModelFigures, _ *serving.DeviceFigures, e *serving.Efficiency) { e.Arithmetic = 0 },
		"less than no overhead":             func(_ *serving.ModelFigures, _ *serving.DeviceFigures, e *serving.Efficiency) { e.Overhead = -1 },
		"less than nothing of a layer":      func(_ *serving.ModelFigures, _ *serving.DeviceFigures, e *serving.Efficiency) { e.PerLayer = -1 },
		"less than nothing of a sequence":   func(_ *serving.ModelFigures, _ *serving.DeviceFigures, e *serving.Efficiency) { e.PerSequence = -1 },
		"less than no bandwidth is reached": func(_ *serving.ModelFigures, _ *serving.DeviceFigures, e *serving.Efficiency) { e.Bandwidth = -1 },
		"nothing beside the tables":         func(m *serving.ModelFigures, _ *serving.DeviceFigures, _ *serving.Efficiency) { m.Parameters = 9e8 },
		"nothing beside the experts": func(m *serving.ModelFigures, _ *serving.DeviceFigures, _ *serving.Efficiency) {
			m.Experts = serving.ExpertFigures{Count: 16, Used: 4, Parameters: 8.1e9}
		},
		"an unknown link": func(_ *serving.ModelFigures, d *serving.DeviceFigures, _ *serving.Efficiency) {
			d.Link = serving.Link{}
		},
		"a latent vector": func(m *serving.ModelFigures, _ *serving.DeviceFigures, _ *serving.Efficiency) { m.Latent = 576 },
		"a window":        func(m *serving.ModelFigures, _ *serving.DeviceFigures, _ *serving.Efficiency) { m.Windowed = 3 },
	} {
		m, d, e := rooflineFigures()
		spoil(&m, &d, &e)
		assert.Equal(t, serving.Profile{}, serving.Roofline(m, d, e), name)
	}
	m, d, e := rooflineFigures()
	e.Overhead = 0
	assert.True(t, serving.Roofline(m, d, e).Known(), "a server may take nothing beside reading and arithmetic")
}

package serving_test

import (
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

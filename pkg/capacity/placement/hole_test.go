package placement

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestAReplicaTakesHoles(t *testing.T) {
	four, ok := HoleOf(gpus(4, "H100").Shape)
	assert.True(t, ok)
	assert.Equal(t, capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 1}, four.Request().Shape)
	_, ok = HoleOf(capacity.Shape{MilliCPU: 1000})
	assert.False(t, ok)
	for name, c := range map[string]struct {
		shape capacity.Shape
		takes int
	}{
		"of its own size":   {gpus(4, "H100").Shape, 1},
		"of half its size":  {gpus(8, "H100").Shape, 2},
		"a smaller replica": {gpus(3, "H100").Shape, 0},
		"what is left over": {gpus(7, "H100").Shape, 1},
		"several pods":      {capacity.Shape{Accelerator: "H100", Devices: 8, Pods: 3}, 6},
		"pods unsaid":       {capacity.Shape{Accelerator: "H100", Devices: 4}, 1},
		"another type":      {gpus(8, "A100").Shape, 0},
	} {
		assert.Equal(t, c.takes, four.In(c.shape), name)
	}
	assert.Zero(t, Hole{Accelerator: "H100"}.In(gpus(8, "H100").Shape), "a hole of nothing")
}

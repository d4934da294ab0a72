package serving

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

func TestFaster(t *testing.T) {
	on := func(a capacity.Accelerator, devices int) capacity.Shape {
		return capacity.Shape{Accelerator: a, Devices: devices, Pods: 1}
	}
	// Of each token, over PCIe 4 at 0.44 of 31.5 GB/s instead of NVLink 4 at 0.82 of 450.
	overPCIe := 0.75 * 362e12 / (3 * 6000) * (1/(0.44*31.5e9) - 1/(0.82*450e9))
	for name, c := range map[string]struct {
		from, to capacity.Shape
		want     float64
	}{
		"the same":                     {on("H100", 2), on("H100", 2), 1},
		"eight devices for one":        {on("H100", 1), on("H100", 8), math.Pow(8, 0.75)},
		"one for eight":                {on("H100", 8), on("H100", 1), math.Pow(8, -0.75)},
		"more memory bandwidth":        {on("H100", 1), on("H200", 1), math.Pow(4.8/3.35, 2.0/3)},
		"more of a type nobody knows":  {on("Abacus", 1), on("Abacus", 2), math.Pow(2, 0.75)},
		"two types of which one is":    {on("Abacus", 1), on("H100", 1), 0},
		"no devices":                   {on("H100", 1), capacity.Shape{}, 0},
		"two pods of four are eight":   {on("H100", 8), capacity.Shape{Accelerator: "H100", Devices: 4, Pods: 2}, 1},
		"two of a slower type for one": {on("H100", 1), on("L40S", 2), math.Cbrt(0.864 / 3.35 * 0.864 / 3.35 * 362 / 989 * math.Pow(2, 2.25) / (1 + overPCIe))},
	} {
		t.Run(name, func(t *testing.T) {
			factor, ok := Faster(c.from, c.to)
			assert.Equal(t, c.want > 0, ok)
			assert.InDelta(t, c.want, factor, 1e-9)
		})
	}
}

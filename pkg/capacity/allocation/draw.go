package allocation

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// draws are numbers without order, the same each time.
type draws struct{ capacity.Draws }

// below is one of the n numbers from 0 on, at most a thousand million of them.
func (d *draws) below(n int) int { return int(d.Next() >> 32 * uint64(n) >> 32) }

// excess is exponential with a mean of 1.
func (d *draws) excess() float64 { return -math.Log(1 - float64(d.Next()>>11)/(1<<53)) }

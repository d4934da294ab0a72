package allocation

import (
	"math"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// draws are numbers without order, the same each time.
type draws struct{ capacity.Draws }

// part is evenly spread from 0 up to, but not, 1.
func (d *draws) part() float64 { return float64(d.Next()>>11) / (1 << 53) }

// below is one of the n numbers from 0 on.
func (d *draws) below(n int) int { return int(d.part() * float64(n)) }

// excess is exponential with a mean of 1.
func (d *draws) excess() float64 { return -math.Log(1 - d.part()) }

package replay

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Source opens the requests of a run from their beginning: every policy gets the same.
type Source func() (workload.Stream, error)

// Load is what is asked of each model, minute by minute: Load[model][minute].
type Load [][]Minute

// minute is the grain of a Load.
const minute = time.Minute

// Minute is what arrives at a model within one minute. In the last one, which may be
// shorter, Length says for how long.
type Minute struct {
	Length time.Duration
	// Rate is the mean arrival rate, and Shape the mean tokens of the requests; without
	// requests both are zero.
	Rate  capacity.Rate
	Shape capacity.TokenShape
}

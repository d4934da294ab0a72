package need

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision/rate"
)

// Model is a model with what it wants.
type Model struct {
	rate.Model

	// Lead is how long a new replica takes to serve, Ahead the arrival rate that is
	// expected then, and SizeFor the one that replicas are sized for.
	Lead           time.Duration
	Ahead, SizeFor capacity.Rate
	Need           Need
	// Retries is set when it may be tried again what was too few before.
	Retries bool
}

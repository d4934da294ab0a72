package demand

import (
	"llmd.ai/workload-variant-autoscaler/pkg/decision/fleet"
)

// Model is a model with what is asked of it.
type Model struct {
	fleet.Model

	Demand Demand
}

package decision

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Memory is what must survive from one round to the next. It is a value: Decide
// returns the next one and changes nothing in the one that it was given.
type Memory struct {
	// Since is the time of the first round.
	Since time.Time
	// Curves are the throughput curves learned from the replicas of each variant.
	Curves map[Key]serving.Curve
	// Arrivals are the latest arrival rates of each model, oldest first.
	Arrivals map[ModelKey][]Observation
	// Recommendations are each variant's wanted replicas before stabilisation,
	// oldest first.
	Recommendations map[Key][]Recommendation
	// Changes are each variant's changes of replicas, oldest first.
	Changes map[Key][]Change
}

// Observation is a rate at a time.
type Observation struct {
	Time time.Time
	Rate capacity.Rate
}

// Recommendation is a number of replicas that was wanted at a time.
type Recommendation struct {
	Time     time.Time
	Replicas int
}

// Change is a number of replicas that was added (or, negative, removed) at a time.
type Change struct {
	Time     time.Time
	Replicas int
}

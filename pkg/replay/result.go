package replay

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/decision"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// Result is what one policy cost and kept in one run. Its JSON names are a published
// format.
type Result struct {
	Policy         string      `json:"policy"`
	Parameters     []Parameter `json:"parameters"`
	StartupSeconds float64     `json:"startupSeconds"`
	// Requests is the number of requests; Failed those that never got their last token.
	Requests int `json:"requests"`
	Failed   int `json:"failed"`
	// TooLong says why requests failed that fit no replica of the variant which got them;
	// nil where all fitted.
	TooLong *TooLong `json:"tooLong,omitempty"`
	// Attainment is the share of all requests that met the SLO, 0 to 1.
	Attainment float64     `json:"attainment"`
	TTFT       Percentiles `json:"ttftMs"`
	ITL        Percentiles `json:"itlMs"`
	// ReplicaHours and GPUHours count from the moment that a node holds a replica
	// until it has left; Cost is what these cost.
	ReplicaHours float64 `json:"replicaHours"`
	GPUHours     float64 `json:"gpuHours"`
	Cost         float64 `json:"cost"`
	// Unpriced says that nobody gave the price of a variant: Cost then counts memory of devices, and is
	// no sum of money.
	Unpriced bool `json:"unpriced,omitempty"`
	// CostOverBound is the cost as a multiple of the Bound's.
	CostOverBound float64 `json:"costOverBound"`
	// ScaleEvents is how often the wanted replicas of a variant changed, Flips how often
	// such a change went the other way than the variant's change before.
	ScaleEvents int `json:"scaleEvents"`
	Flips       int `json:"flips"`
	// UnderProvisionedSeconds is the time during which the replicas that served could
	// not, by the capacity model, keep the SLO at the mean load of that minute.
	UnderProvisionedSeconds float64 `json:"underProvisionedSeconds"`
	// UnplaceableReplicas is the largest number of replicas at one time that were asked
	// for and fitted on no node.
	UnplaceableReplicas int `json:"unplaceableReplicas"`
	// LearningSeconds is how much of the beginning counts in nothing of this.
	LearningSeconds float64 `json:"learningSeconds,omitempty"`
	// Dispersion is how the requests scatter in time, and TraceDispersion how they did
	// before somebody multiplied them; nil where nobody did.
	Dispersion      []workload.Index `json:"dispersion,omitempty"`
	TraceDispersion []workload.Index `json:"traceDispersion,omitempty"`
}

// keepsThePromise is the parameter that says whether a searched fleet keeps the SLO for the
// promised share of the requests, as "true" or "false".
const keepsThePromise = "keepsThePromise"

// BreaksPromise reports whether no fleet was found that keeps the SLO, so that the result
// is that of one which attains the most. It is false for policies that search for none.
func (r *Result) BreaksPromise() bool {
	return slices.Contains(r.Parameters, Parameter{keepsThePromise, "false"})
}

// Percentiles of a latency in milliseconds over all requests that ended.
type Percentiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// Recording is the course of one run, for pictures.
type Recording struct {
	// Policy, Startup and Length are those of the run.
	Policy  string
	Startup time.Duration
	Length  time.Duration
	// Step is the time between two Samples.
	Step   time.Duration
	Models []RecordedModel
	// Nodes are those of the cluster.
	Nodes []RecordedNode
	// Moves are the steps in the lives of the replicas, in the order of time.
	Moves []simulation.Move
	// Decisions are those that changed something, in the order of time.
	Decisions []RecordedDecision
}

// RecordedModel is the course of one model.
type RecordedModel struct {
	ID  string
	SLO capacity.SLO
	// Samples are Step apart; the first one is that of the time from 0 to Step.
	Samples  []Sample
	Variants []RecordedVariant
}

// Sample is what happened to a model within one step.
type Sample struct {
	// Requests arrived, and Met of those that arrived kept the SLO.
	Requests, Met int
	// TTFT and ITL are the 95th percentiles of the requests that arrived, in
	// milliseconds; 0 without any.
	TTFT, ITL float64
	// Cost is what the replicas of the model cost per hour at the end of the step, and
	// Bound the least price of the load then (Bound.CostAt).
	Cost, Bound float64
}

// RecordedVariant is the course of one variant.
type RecordedVariant struct {
	Name        string
	Accelerator capacity.Accelerator
	Devices     int
	Cost        capacity.Cost
	// Unpriced says that nobody gave that price.
	Unpriced bool
	// Wanted and Ready are the replicas at the end of each step.
	Wanted, Ready []int
}

// RecordedNode is one node.
type RecordedNode struct {
	Name        string
	Accelerator capacity.Accelerator
	// Devices is how many it has, and Others how many of them other work holds.
	Devices, Others int
}

// RecordedDecision is one change of the wanted replicas.
type RecordedDecision struct {
	At      time.Duration
	Variant string
	// From and To are the wanted replicas.
	From, To int
	// Reason and Message are empty for policies that give none.
	Reason  decision.Reason
	Message decision.Finding
	Steps   []decision.Step
}

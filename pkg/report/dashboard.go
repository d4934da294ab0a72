package report

import (
	"cmp"
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/simulation"
)

// Dashboard is what is known of a live cluster at one moment. Every instant in it is
// counted from Start. A nil number is unknown.
type Dashboard struct {
	// Where names the cluster and the namespaces that are looked at.
	Where string
	Start time.Time
	// Now is the moment, and Every how often it is worth to look again.
	Now, Every time.Duration
	// Since is when the pods were first looked at: those that were gone by then are not
	// known, and neither is the cost of before.
	Since time.Duration
	// PodsKnown says that Moves has the pods of all variants. Without it, the ready replicas
	// are those of the status.
	PodsKnown bool
	Models    []DashboardModel
	Variants  []DashboardVariant
	Nodes     []ObservedNode
	// Moves are the steps in the lives of the pods, in the order of time.
	Moves     []ObservedMove
	Decisions []DashboardDecision
	// Notes say what could not be read, and what to do.
	Notes []string
}

// DashboardModel is one model of one namespace.
type DashboardModel struct {
	// Key names the model in this dashboard.
	Key string
	// SLO is the promise of the service class Class; zero targets are none.
	SLO   capacity.SLO
	Class string
	// Step is the time between two points. Point i is about the time from i*Step on, and
	// the last one may be before now.
	Step   time.Duration
	Points []LoadPoint
	// Waiting is the number of requests that wait in front of the model's replicas.
	Waiting *float64
}

// LoadPoint is the load of a model and the latencies of its requests.
type LoadPoint struct {
	// Rate is in requests per second. TTFT and ITL are 95th percentiles in milliseconds.
	Rate, TTFT, ITL *float64
	// WithinTTFT and WithinITL are the shares, 0 to 1, that surely were within the target of
	// the promise, without what is in the bucket of a target: of the first tokens, and of the requests' mean times per further token or,
	// where the servers do not count those, of the further tokens. Without a target they
	// are nil.
	WithinTTFT, WithinITL *float64
}

// attained is the share of requests that surely kept the whole promise. Nobody counts those
// that kept both targets: it is all but those that may have missed one of them.
func (p LoadPoint) attained(slo capacity.SLO) *float64 {
	switch {
	case slo.TTFT <= 0:
		return p.WithinITL
	case slo.ITL <= 0:
		return p.WithinTTFT
	case p.WithinTTFT == nil || p.WithinITL == nil:
		return nil
	}
	return new(max(0, *p.WithinTTFT+*p.WithinITL-1))
}

// DashboardVariant is one variant.
type DashboardVariant struct {
	// Key names the variant in this dashboard, and Model its model.
	Key, Model  string
	Accelerator capacity.Accelerator
	// Shape is what one replica takes, such as 2xH100; empty means unknown.
	Shape string
	// Devices is how many devices one pod takes, Pods how many pods one replica has.
	Devices, Pods int
	// Cost is the price of one replica per hour.
	Cost *float64
	// Wanted is what the last decision wants, Current what the target asks for. Fit is
	// how many more replicas fit, or a number that they do not exceed.
	Wanted, Current, Pending, Fit *int32
	FitIsBound                    bool
	// State is the reason of the condition that matters most, and Message its text.
	State, Message string
	// Reason is that of the last decision.
	Reason string
	// KVUse is the mean use of the KV caches, 0 to 1, Waiting the number of requests in
	// the queues of the replicas.
	KVUse, Waiting *float64
	// Replicas are in the order of time.
	Replicas []ReplicaState
}

// DashboardDecision is a decision that changed the wanted replicas of a variant.
type DashboardDecision struct {
	At              time.Duration
	Variant         string
	From, To        int
	Reason, Message string
	Steps           []DashboardStep
}

// DashboardStep is one step of a decision.
type DashboardStep struct {
	Stage, Reason, Detail string
	Before, After         int
}

// PodLife is what was seen of one pod. A time that is zero has not come.
type PodLife struct {
	// Variant is the key of its variant, Node the node that holds it.
	Name, Variant, Node string
	// When it was made, held by a node, Ready, on its way out, and gone.
	Made, Placed, Serving, Leaving, Gone time.Time
}

// Moves are the steps of the life, counted from a start.
func (l *PodLife) Moves(start time.Time) []ObservedMove {
	var moves []ObservedMove
	for _, step := range []struct {
		at    time.Time
		stage simulation.Stage
	}{
		{l.Made, simulation.Created},
		{l.Placed, simulation.Placed},
		{l.Serving, simulation.Serving},
		{l.Leaving, simulation.Leaving},
		{l.Gone, simulation.Gone},
	} {
		if step.at.IsZero() {
			continue
		}
		move := ObservedMove{At: step.at.Sub(start), Pod: l.Name, Variant: l.Variant, Stage: step.stage}
		if step.stage > simulation.Created {
			move.Node = l.Node
		}
		moves = append(moves, move)
	}
	return moves
}

// SortMoves brings moves into the order of time.
func SortMoves(moves []ObservedMove) {
	slices.SortFunc(moves, func(a, b ObservedMove) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Stage, b.Stage))
	})
}

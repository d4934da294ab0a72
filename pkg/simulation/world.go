package simulation

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/workload"
)

// WorldOptions describe a world before its first request.
type WorldOptions struct {
	// Cluster is what the nodes hold and have free before the first replica. It is
	// copied.
	Cluster *placement.Cluster
	// Models are what clients ask for.
	Models []ServedModel
	// Startup is how long a replica takes from the moment that a node holds it until
	// it serves.
	Startup Startup
	// Drain is how long a replica that goes may still take for the requests that it
	// has. What is not done by then has failed.
	Drain time.Duration
	// Events happen to the nodes. Several at one time happen in the order in which they
	// are given.
	Events []NodeEvent
	// Seed decides every random number.
	Seed uint64
	// Done, unless nil, is told of every request once, when it has ended.
	Done func(Outcome)
	// Moved, unless nil, is told of every step in the life of a replica.
	Moved func(Move)
	// Latencies, unless nil, keeps histograms with these buckets.
	Latencies *Buckets
}

// Startup is a distribution of start-up times: log-normal, so never below zero.
type Startup struct {
	// Mean is the mean time.
	Mean time.Duration
	// Variation is the coefficient of variation, standard deviation over mean; 0 makes
	// every start-up take the mean.
	Variation float64
}

// ServedModel is one model and the ways to serve it.
type ServedModel struct {
	ID string
	// SLO is what Missed is counted by; what is 0 in it no request misses.
	SLO      capacity.SLO
	Variants []ServedVariant
}

// ServedVariant is one way to serve a model.
type ServedVariant struct {
	Name string
	// Profile is the latency of one replica, TokenBudget the most tokens in one
	// iteration of its engine; 0 means DefaultTokenBudget.
	Profile     serving.Profile
	TokenBudget int
	// PrefixCache and PrefixHits are those of its engine.
	PrefixCache bool
	PrefixHits  float64
	// Request is what one replica takes and where it may go.
	Request *placement.Request
	// Weight is how much load one replica takes compared with those of the other
	// variants: the router sends a request to where in-flight requests over weight are
	// fewest. 0 means 1.
	Weight float64
	// Max is the explicit bound of its replicas, for the outlook; negative means none.
	Max int
	// Initial is the number of replicas that serve from the beginning.
	Initial int
}

// Outcome is what became of one request.
type Outcome struct {
	// Model and Variant are indexes: of the model, and of the variant that served it,
	// which is -1 for a request that no replica ever got.
	Model, Variant int
	// Arrived is when it reached the router, FirstToken and Finished when its first
	// and its last token came; both are 0 for one that failed.
	Arrived, FirstToken, Finished time.Duration
	// Input and Output are its tokens.
	Input, Output int
	// Failed is set when it did not get its last token.
	Failed bool
}

// Stage is a stage in the life of a replica.
type Stage uint8

// The stages in their order, and last the one that few go through.
const (
	// Created: it was asked for.
	Created Stage = iota + 1
	// Placed: a node holds it, and it starts.
	Placed
	// Serving: it takes requests, for all that the cluster knows.
	Serving
	// Leaving: it takes no more requests and finishes those that it has.
	Leaving
	// Gone: it has left its node.
	Gone
	// NotReady: it served, and the cluster knows that its node does not answer. It goes,
	// or is Placed again when the node comes back before.
	NotReady
)

// Move is one step in the life of a replica.
type Move struct {
	At      time.Duration
	Variant VariantIndex
	// Replica is its name, unique in the world.
	Replica string
	Stage   Stage
	// Node is the index of its node, or -1.
	Node int
}

// VariantIndex names a variant by its place: of its model among the models, and of
// itself among the variants of the model.
type VariantIndex struct{ Model, Variant int }

// Replica is one replica as the cluster and its metrics endpoint show it.
type Replica struct {
	// Name is unique in the world.
	Name  string
	Stage Stage
	// Node is the index of its node, or -1.
	Node int
	// Created, Placed and Ready are when it came to that stage; -1 means not yet.
	Created, Placed, Ready time.Duration
	// Silent is set while nothing answers, because its node does not.
	Silent bool
	// Unready is when it came to be NotReady, else 0, and Restarts how often it started
	// again on its node after it had served.
	Unready  time.Duration
	Restarts int
	// Metrics is what its server says of itself; the zero value before it serves.
	Metrics Metrics
}

// Answers reports whether its server serves, which the cluster may not know to be over.
func (r *Replica) Answers() bool { return r.Stage == Serving && !r.Silent }

// Metrics is what a model server says of itself at one instant: gauges, and sums since
// it started, as vLLM has them.
type Metrics struct {
	Running, Waiting int
	// KVUsed and KVCapacity are in tokens; a capacity of 0 means unknown.
	KVUsed, KVCapacity int
	// Finished is the number of requests that ended.
	Finished uint64
	// Missed is the number of those that missed the promise of their model.
	Missed uint64
	// Input and Output are the sums of their tokens, InService that of the times from
	// the begin of their service to their last token.
	Input, Output uint64
	InService     time.Duration
	// FirstTokens is the number of first tokens, and FirstToken the sum of the times
	// from arrival to them.
	FirstTokens uint64
	FirstToken  time.Duration
	// Prefilling is the number of tokens in the prompts of requests that came to it and have
	// no first token yet: a gauge.
	Prefilling int
	// Tokens is the number of further tokens, and BetweenTokens the sum of the times
	// before them.
	Tokens        uint64
	BetweenTokens time.Duration
}

// Gateway is what the router says of one model.
type Gateway struct {
	// Queue is the number of requests that wait because no replica serves.
	Queue int
	// Dispatched is the number of requests that were sent to a replica.
	Dispatched uint64
}

// Arrival is a request of one model.
type Arrival struct {
	Model int
	workload.Request
}

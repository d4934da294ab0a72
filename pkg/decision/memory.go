package decision

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Memory is what must survive from one round to the next. It is a value: Decide
// returns the next one and changes nothing in the one that it was given.
type Memory struct {
	// Curves are the throughput curves learned from the replicas of each variant.
	Curves map[Key]serving.Curve
	// Arrivals are the latest arrival rates of each model, oldest first.
	Arrivals map[ModelKey][]Observation
	// Dispersion is how irregular each model's arrivals are.
	Dispersion map[ModelKey]Dispersion
	// Tokens is the slow mean of each model's token shape.
	Tokens map[ModelKey]TokenMean
	// Recommendations are each variant's wanted replicas before stabilisation,
	// oldest first.
	Recommendations map[Key][]Recommendation
	// Replicas are what each variant's target asked for in the round before.
	Replicas map[Key]int
	// Asked is what each variant was last planned to have.
	Asked map[Key]int
	// Changes are the changes of Replicas that were seen, whoever made them, oldest
	// first.
	Changes map[Key][]Change
	// Missing is since when a target asks for replicas of which there is no pod.
	Missing map[Key]time.Time
	// Refused is since when the scheduler finds no node for a pod that the model
	// would place.
	Refused map[Key]time.Time
	// Learned is what each variant's replicas showed of their latency, and Sizes what
	// one replica of it serves within the promise.
	Learned map[Key]Learning
	Sizes   map[Key]Sizing
	// Cheaper is since when another mix of variants would serve each model for less.
	Cheaper map[ModelKey]time.Time
	// Blind is since when nothing at all is known of a model's serving replicas.
	Blind map[ModelKey]time.Time
	// Active is when something was last asked of each model.
	Active map[ModelKey]time.Time
	// Gateways is what was seen of the gateway of each model.
	Gateways map[ModelKey]Gateway
	// Wanted is what each variant was to have when there were data to decide by.
	Wanted map[Key]int
	// Overwriting is what others did to each target's replicas.
	Overwriting map[Key]Overwriting
	// Backoffs are the variants whose replicas found no node lately.
	Backoffs map[Key]Backoff
}

func (m Memory) withMaps() Memory {
	m.Curves = map[Key]serving.Curve{}
	m.Arrivals = map[ModelKey][]Observation{}
	m.Dispersion = map[ModelKey]Dispersion{}
	m.Tokens = map[ModelKey]TokenMean{}
	m.Recommendations = map[Key][]Recommendation{}
	m.Replicas = map[Key]int{}
	m.Asked = map[Key]int{}
	m.Changes = map[Key][]Change{}
	m.Missing = map[Key]time.Time{}
	m.Refused = map[Key]time.Time{}
	m.Backoffs = map[Key]Backoff{}
	m.Learned = map[Key]Learning{}
	m.Sizes = map[Key]Sizing{}
	m.Active = map[ModelKey]time.Time{}
	m.Gateways = map[ModelKey]Gateway{}
	m.Cheaper = map[ModelKey]time.Time{}
	m.Blind = map[ModelKey]time.Time{}
	m.Wanted = map[Key]int{}
	m.Overwriting = map[Key]Overwriting{}
	return m
}

// Observation is a rate at a time.
type Observation struct {
	Time time.Time
	// Sampled is the time of the newest sample in it.
	Sampled time.Time
	Rate    capacity.Rate
	// Newest is the rate between the newest scrapes, which were Span apart; without
	// them Span is 0. Gateway is set when a gateway counted.
	Newest  capacity.Rate
	Span    time.Duration
	Gateway bool
	// Output is the mean number of output tokens that the requests were taken to
	// have; 0 means unknown.
	Output capacity.Tokens
	// Backlog is the number of requests that waited, and Ready the number of replicas
	// that served.
	Backlog float64
	Ready   int
}

// Gateway is what was seen of a model's gateway.
type Gateway struct {
	// Queued is when it last showed a queue of the model; the zero time means never.
	Queued time.Time
	// Unseen is when it was last not known what waits there.
	Unseen time.Time
}

// TokenMean is a mean token shape that forgets slowly.
type TokenMean struct {
	Time   time.Time
	Shape  capacity.TokenShape
	Weight float64
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

// Backoff says until when a variant is left alone after its replicas found no node.
type Backoff struct {
	Until time.Time
	// Pause is how long it was left alone; the next time, twice as long.
	Pause time.Duration
	// Ready is the number of its replicas that served when the pause began.
	Ready int
}

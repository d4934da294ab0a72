package contract

import (
	"slices"
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/placement"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
	"llmd.ai/workload-variant-autoscaler/pkg/forecast"
)

// Snapshot holds all facts at one instant.
type Snapshot struct {
	// Time is the instant of the round.
	Time time.Time
	// Models are sorted by namespace, then by model ID.
	Models []Model
	// Cluster is what the nodes hold and have free; nil means that it could not be
	// read, which is unknown and neither empty nor endless.
	Cluster *placement.Cluster
}

// Sample is one observed number with its time and its presence. The zero Sample
// is absent, which is never read as zero.
type Sample struct {
	Value   float64
	Time    time.Time
	Present bool
}

// Kept is a share of requests that kept a promise, as the buckets of histograms tell it.
// What is in the bucket of a target may have kept it or not: nobody knows. The Sample is the
// greatest share that may have; it is the one that may say that more missed the promise than
// may.
type Kept struct {
	Sample

	// Sure is the share that surely did, at most Value.
	Sure float64
	// TTFT and ITL are the buckets in which the targets lie. The zero Bucket is that of a
	// target at the end of one: everything is known then.
	TTFT, ITL Bucket
}

// Bucket has the latencies above Above and up to UpTo, where 0 is no end.
type Bucket struct{ Above, UpTo capacity.Milliseconds }

// Exactly is a share that is known of each request.
func Exactly(s Sample) Kept { return Kept{Sample: s, Sure: s.Value} }

// Model is what clients ask for by one name within one namespace.
type Model struct {
	Namespace string
	ID        string
	// Names are further names by which clients ask for it; what the gateway counts under them is
	// in its count.
	Names []string
	// Arrival is the rate in requests per second at which requests reach the
	// model, as the gateway counts them. It is absent without a gateway; then the
	// arrival rate is derived from the replicas.
	Arrival Sample
	// Recent is the same between the last two scrapes alone, so that a step is seen at
	// once; RecentSpan is the time between them.
	Recent     Sample
	RecentSpan time.Duration
	// Queue is the number of requests that wait in front of the replicas, in the
	// gateway.
	Queue Sample
	// Pace is how the gateway is scraped.
	Pace Pace
	// Met is the share, 0 to 1, of the requests that kept the promised latency, of those that
	// completed within the metrics window. It is absent where servers do not tell.
	Met Kept
	// History is how the load went around the same time earlier, where that is known.
	History []forecast.History
	// Variants are sorted by name.
	Variants []Variant
}

// Variant is one way to serve a model.
type Variant struct {
	// Name is the name of the VariantAutoscaling object.
	Name string
	// Target says whether the scale target was found and may be scaled. Anything
	// but TargetFound takes the variant out of the decision.
	Target TargetState
	// TargetUID tells a target from another one, or from an earlier one of its name; empty
	// means unknown.
	TargetUID string
	// Current is the number of replicas that the target's scale asks for now.
	Current int
	// Before is what was wanted last by what the object shows; nil where it shows nothing.
	// It counts for a memory that knows nothing of the variant.
	Before *int
	// Ready is the number of replicas that serve.
	Ready int
	// Starting are the replicas that exist and do not serve yet, oldest first.
	Starting []Starting
	// Replicas are the serving replicas, sorted by name.
	Replicas []Replica
	// Request is what one replica takes and where it may go. A nil Request means
	// that the shape is unknown: the variant is held.
	Request *placement.Request
	// Cost is the price of one replica per hour.
	Cost capacity.Cost
	// Unpriced says that nobody gave that price. Cost then counts the memory of the devices: it
	// orders variants, and is no sum of money.
	Unpriced bool
	// Profile is the given latency model of one replica; the zero Profile means
	// that none was given.
	Profile serving.Profile
	// BatchLimit is the largest number of requests in service at once, of all engines of a
	// replica together, and BatchSource says whether anybody stated it; 0 means unknown.
	BatchLimit  int
	BatchSource serving.BatchSource
	// KVTokens is the number of tokens that the KV cache of a replica holds by the
	// server's arguments, or by the memory and the model's size, and KVSource says which
	// of them; 0 means unknown. What a replica reports itself comes before it.
	KVTokens capacity.Tokens
	KVSource serving.CacheSource
	// Rolling is set while a rolling update is under way: pods come and go that no
	// load asked for.
	Rolling bool
	// Paused is set while the rollout is paused and nothing makes pods: a Deployment that was
	// paused before it made its first ones.
	Paused bool
	// Writer is the field manager that changed the target's replicas last, where it is
	// not this program's own; empty means unknown.
	Writer string
	// Surge is how many pods beyond Current the rolling update under way may still
	// make; 0 without one.
	Surge int
	// Ordered is set where a replica is made only once those before it serve, and have done
	// so for Settling: a StatefulSet does that unless podManagementPolicy is Parallel.
	Ordered  bool
	Settling time.Duration
	// ChoosesVictims is set when we may choose which replicas go on a scale-down. Numbered is set where
	// the one with the highest number goes: of a StatefulSet or a LeaderWorkerSet.
	ChoosesVictims, Numbered bool
	// First is the number of the first replica where they are numbered: a StatefulSet may begin
	// with another one than 0.
	First int
	// Startup is how long a replica takes from its creation until it serves, as
	// seen lately; 0 means not seen yet.
	Startup time.Duration
}

// Key names a variant: an object's name is unique within its namespace.
type Key struct {
	Namespace string
	Name      string
}

// As is the variant's name in what is told in a namespace: nobody is told names of another one.
func (k Key) As(namespace string) Finding {
	if k.Namespace == namespace {
		return SaysName.With(k.Name)
	}
	return SaysVariantElsewhere.With()
}

// TargetState says what became of looking for the scale target.
type TargetState string

// The states of a scale target.
const (
	TargetFound     TargetState = ""
	TargetMissing   TargetState = "Missing"
	TargetForbidden TargetState = "Forbidden"
	// TargetConflict means that something else decides this target's replicas.
	TargetConflict TargetState = "Conflict"
	// TargetShared means that another object counts this target's replicas.
	TargetShared TargetState = "Shared"
)

// Starting is one replica that was created and does not serve yet.
type Starting struct {
	Name string
	// Since is when the replica began to start: when it was created, a node began to hold it,
	// or it stopped serving, whichever came last.
	Since time.Time
	// Placed is set once a node holds it.
	Placed bool
	// Node is the node that holds it, or empty.
	Node string
	// Held is set once a node keeps its room, bound or nominated.
	Held bool
	// Pending is set while a node holds it and none of its containers was started.
	Pending bool
	// Marked is set when it was chosen to go, in a scale-down that is under way.
	Marked bool
	// Unschedulable is set while the scheduler says that no node can hold it.
	Unschedulable bool
	// Failing is set when it cannot come up by itself: its containers keep failing, or
	// its image cannot be had.
	Failing bool
}

// Replica is one serving replica as its metrics show it. Means are over the
// metrics window.
type Replica struct {
	Name string
	// Node is the node that holds it.
	Node string
	// Marked is set when it was chosen to go, in a scale-down that is under way.
	Marked bool
	// Since is when it began to serve; the zero time means unknown.
	Since time.Time
	// KVUse is the used share of the KV cache, 0 to 1.
	KVUse Sample
	// Waiting is the mean number of requests that wait in the replica's queue.
	Waiting Sample
	// Running is the mean number of requests in service.
	Running Sample
	// Served is the rate of completed requests per second.
	Served Sample
	// InService is the mean time in seconds that the requests which completed had
	// been in service, without their waiting. Without it the time follows from
	// Running and Served, which errs while the load changes.
	InService Sample
	// InFlightGrowth is the rate in requests per second at which running plus
	// waiting grows; negative while it shrinks.
	InFlightGrowth Sample
	// Recent is the rate in requests per second at which requests reached the replica
	// between the last two scrapes: completions and the change of what is running and
	// waiting. RecentSpan is the time between them, positive wherever Recent is present.
	Recent     Sample
	RecentSpan time.Duration
	// TTFT is the mean time to first token and ITL the mean time per further token,
	// in seconds, of the requests that got theirs.
	TTFT, ITL Sample
	// KVTokens is the number of tokens that the replica says its KV cache holds.
	KVTokens Sample
	// Input and Output are the mean prompt and generated tokens of the requests that
	// completed.
	Input, Output Sample
	// Pace is how the replica is scraped.
	Pace Pace
}

// Pace is how samples came to be known. The zero Pace says nothing of it.
type Pace struct {
	// Interval is about the time between two scrapes.
	Interval time.Duration
	// Lag is how much older than an interval the newest sample is.
	Lag time.Duration
	// Window is what means and rates are taken over where that is not as usual, because scrapes are
	// far apart or known late; 0 means that it is, over the policy's window.
	Window time.Duration
}

// Exists reports whether the target is there, so that its replicas count.
func (v *Variant) Exists() bool { return v.Target == TargetFound || v.Target == TargetConflict }

// BegunAfter reports whether a replica began to serve after an instant.
func (v *Variant) BegunAfter(at time.Time) bool {
	return slices.ContainsFunc(v.Replicas, func(p Replica) bool { return p.Since.After(at) })
}

// Unscheduled is the number of pods for which no node keeps room.
func (v *Variant) Unscheduled() int {
	n := 0
	for i := range v.Starting {
		if v.Starting[i].Unscheduled() {
			n++
		}
	}
	return n
}

// Unscheduled reports whether no node keeps room for it.
func (s *Starting) Unscheduled() bool { return !s.Placed && !s.Held }

// NoPod is the number of replicas that were asked for and have no pod.
func (v *Variant) NoPod() int {
	return max(0, v.Current-v.Ready-len(v.Starting))
}

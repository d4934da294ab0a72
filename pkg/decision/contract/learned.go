package contract

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
	"llmd.ai/workload-variant-autoscaler/pkg/capacity/serving"
)

// Attained is how well the promise was kept for about a day, of the time in which the
// fleet was what sizing asks for. It corrects what latency models get wrong: where more
// requests miss the promise than may, a replica is counted to serve less, until that many
// miss it. The zero value is that of a model of which nothing was seen.
type Attained struct {
	// SLO and Share are the promise that it speaks of.
	SLO   capacity.SLO
	Share float64
	// Sampled is the time of the newest sample, and Short that of the newest one that found
	// the fleet less than what sizing asks for.
	Sampled, Short time.Time
	// Span is the time that it speaks of, Requests how many arrived in it and Missed how
	// many of these missed the promise. What is older counts less.
	Span             time.Duration
	Requests, Missed float64
	// Unsure is how many of them may have missed it or not, beside those that surely did.
	// They correct nothing.
	Unsure float64
	// Counted is the sum of Caution over the requests.
	Counted float64
	// Caution says what a replica is counted to serve: exp(-Caution) of what its latency
	// model says. It is at least 0.
	Caution float64
}

// Batch is what was seen of how many requests a replica takes into service at once. The zero
// value is that of a variant of which nothing was seen.
type Batch struct {
	// Most is the most that one had in service, or two of them where there were more, and Waited the most beside which requests
	// waited.
	Most, Waited float64
}

// Cache is whether the replicas of a variant show how full their KV cache is. The zero value is that of
// a variant of which nothing is known.
type Cache struct {
	// Shown is set once one showed it: where it is not shown any more, it is missing.
	Shown bool
	// Lacks is since when those that are heard show none; zero where one did.
	Lacks time.Time
	// Held is the most that one of them had in service and completed: it holds so many at least.
	Held float64
}

// ObservedLimit is what a replica of a variant does which others wait for: it may be full with few
// requests in service, as where long prompts keep it busy, and its KV cache does not tell.
type ObservedLimit struct {
	// InService is how many requests it has in service then, and 0 means unknown; Rate is what
	// it serves then.
	InService float64
	Rate      capacity.Rate
	// Unfed is the most that one without such a queue was seen to serve, and Shape what of all
	// that is.
	Unfed capacity.Rate
	Shape capacity.TokenShape
	// Fed is since when most of the replicas, but for those that just began, have more waiting than
	// in service, zero while they have not, and Sure is set once they had for a whole metrics window.
	Fed  time.Time
	Sure bool
}

// LatencyMemory is what is known of one variant's latency from what its replicas showed.
type LatencyMemory struct {
	// Learned holds what was seen, FittedTo what of it an estimate was last made of, and
	// Fitted is when.
	Learned, FittedTo serving.Learned
	Fitted            time.Time
	// Estimate is the last one that could be used: what was seen then does not become
	// wrong because it is long ago.
	Estimate serving.Estimate
	// Changed is since when it may be another server, after a rolling update or by what it shows, as
	// long as nobody knows.
	Changed time.Time
	// Pace is how many times as long as by Given, the profile that was given then, a token
	// took in what an estimate was last made of; 1 as long as Given is not known to be wrong.
	Given serving.Profile
	Pace  float64
}

// Sizing is the greatest rate that one replica of a variant serves within a promise,
// with everything that it was found for.
type Sizing struct {
	// Profile is the latency model, Shape the requests, SLO what is promised, and Share the
	// share of the requests that is to keep it.
	Profile serving.Profile
	Shape   capacity.TokenShape
	SLO     capacity.SLO
	Share   float64
	// PeakShare is the share that is to keep the promise at the expected peak.
	PeakShare float64
	// Burst is how bursty the arrivals are at one of the replicas that share them.
	Burst float64
	// Rate is the greatest at which Share keeps it, in requests per second.
	Rate capacity.Rate
	// PeakRate is the rate at which PeakShare keeps it.
	PeakRate capacity.Rate
	// Keeps is set while the variant is taken to keep the promise.
	Keeps bool
	// Found is when Rate was found.
	Found time.Time
	// Doubted is since when it would be less by the latency model alone (doubt).
	Doubted time.Time
	// Shown is the most that a replica was seen to serve while the promise was kept, of requests
	// of the shape ShownOf.
	Shown   capacity.Rate
	ShownOf capacity.TokenShape
}

package decision

import (
	"time"

	"llmd.ai/workload-variant-autoscaler/pkg/capacity"
)

// Full is what a replica of a variant does which others wait for: it may be full with few
// requests in service, as where long prompts keep it busy, and its KV cache does not tell.
type Full struct {
	// InService is how many requests it has in service then, 0 means unknown; Rate is what it
	// serves, and Shape what of.
	InService float64
	Rate      capacity.Rate
	Shape     capacity.TokenShape
	// Fed is since when most of the replicas have more waiting than in service, zero while they
	// have not.
	Fed time.Time
}

// fullOf is what the variant's replicas do when they are full. It is seen when most of them
// were fed for a whole metrics window, so that what they show is of nothing else, and stands
// until one has more in service, or serves more, or the requests have other lengths.
func (r *round) fullOf(v *variant, shape capacity.TokenShape) Full {
	full, fed, running, served := v.old.Full, 0, 0.0, 0.0
	mostRunning, mostServed := 0.0, 0.0
	for i := range v.in.Replicas {
		p := &v.in.Replicas[i]
		if r.age(p.Running) != ageFresh || r.age(p.Served) != ageFresh || p.Served.Value == 0 || !r.settled(p) {
			continue
		}
		mostRunning, mostServed = max(mostRunning, p.Running.Value), max(mostServed, p.Served.Value)
		if r.fed(p) {
			fed, running, served = fed+1, running+p.Running.Value, served+p.Served.Value
		}
	}
	if v.in.Ready-fed >= fed {
		full.Fed = time.Time{}
	} else if full.Fed = r.since(full.Fed); r.snapshot.Time.Sub(full.Fed) >= r.policy.Window && running > full.InService*float64(fed) {
		// A queue that drains leaves fewer in service before it is gone from the window's mean.
		full.InService, full.Rate, full.Shape = running/float64(fed), capacity.Rate(served/float64(fed)), shape
	}
	const beyond = 1 + settledWithin
	switch {
	case v.in.Rolling, mostRunning > beyond*full.InService, mostServed > beyond*float64(full.Rate),
		!near(float64(full.Shape.Input), float64(shape.Input), settledWithin), !near(float64(full.Shape.Output), float64(shape.Output), settledWithin):
		return Full{Fed: full.Fed}
	}
	return full
}
